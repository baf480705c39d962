package experiment

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dahl/stats"
)

// Chart is one picture over a part of the grid.
type Chart struct {
	Figure
	Name   string       // of its file without extension
	Part   []Coordinate // the part of the grid, on the axes that the picture does not have
	Series []Series
	Runs   [2]int // the least and the greatest number of runs of a point
}

// Series is the points of one colour.
type Series struct {
	Name      string // its label on the axis By; empty means none
	Points    []Point
	Predicted bool // it is the prediction of the series before it
}

// Point is the median of a group of runs.
type Point struct {
	Label           string  // on the axis X
	X               float64 // the label as a number; 0 means none
	Y, Low, High    float64
	SecondsPer      float64 // a sample; NaN means not known
	JoulesPerSample float64
}

// Charts are the pictures of the file's figures, or of those that fit, one for each part of the
// grid. Those without a point are left out.
func (t *Table) Charts() []Chart {
	figures := t.File.Figures
	if len(figures) == 0 {
		figures = t.File.Suggested(slices.Contains(t.columns(), JoulesPerSample))
	}
	var charts []Chart
	for _, f := range figures {
		charts = append(charts, t.chartsOf(f)...)
	}
	return charts
}

// chartsOf divides the groups by the axes that a figure does not have.
func (t *Table) chartsOf(f Figure) (charts []Chart) {
	of := map[string]int{}
	for _, g := range t.groups() {
		part := f.part(g)
		key := fmt.Sprintf("%q", part)
		i, ok := of[key]
		if !ok {
			i = len(charts)
			of[key] = i
			charts = append(charts, Chart{Figure: f, Part: part, Name: f.fileName(t.File, part)})
		}
		charts[i].add(g)
	}
	charts = slices.DeleteFunc(charts, func(c Chart) bool { return len(c.Series) == 0 })
	for i := range charts {
		charts[i].finish()
	}
	return charts
}

// part is where a group lies on the axes that the figure does not have. A front has all axes except
// those for other work.
func (f *Figure) part(g *group) (part []Coordinate) {
	for _, at := range g.at {
		if f.Kind == Front && isWork(at.Axis) || f.Kind != Front && at.Axis != f.X && at.Axis != f.By {
			part = append(part, at)
		}
	}
	return part
}

// fileName names a picture by its kind, its quantity and axes, and its part of the grid.
func (f *Figure) fileName(of *File, part []Coordinate) string {
	name := string(f.Kind)
	if f.Kind == Bars || f.Kind == Heat || f.Kind == Curves || f.Kind == Speedup && f.Y != Rate {
		name += "-" + f.Y.String()
	}
	for _, axis := range []string{f.X, f.By} {
		if axis != "" {
			name += "-" + url.QueryEscape(axis)
		}
	}
	for _, at := range part {
		if len(of.Axis(at.Axis).Values) > 1 {
			name += "," + url.QueryEscape(at.Axis) + "=" + url.QueryEscape(at.Label)
		}
	}
	return name
}

// add puts a group into its series. Curves of executed steps also have those that were predicted.
func (c *Chart) add(g *group) {
	name := ""
	if c.By != "" {
		name = g.label(c.By)
	}
	c.addPoint(g, c.Y, Series{Name: name})
	if c.Kind == Curves && c.Y == StepTime {
		c.addPoint(g, PredictedStep, Series{Name: strings.TrimSpace(name + " predicted"), Predicted: true})
	}
}

func (c *Chart) addPoint(g *group, y Column, of Series) {
	p, ok := c.point(g, y)
	if !ok {
		return
	}
	i := slices.IndexFunc(c.Series, func(s Series) bool { return s.Name == of.Name })
	if i < 0 {
		i = len(c.Series)
		c.Series = append(c.Series, of)
	}
	c.Series[i].Points = append(c.Series[i].Points, p)
	if n := len(g.rows); c.Runs[1] == 0 {
		c.Runs = [2]int{n, n}
	} else {
		c.Runs = [2]int{min(c.Runs[0], n), max(c.Runs[1], n)}
	}
}

// point is the median of a group; ok is false where it has no value.
func (c *Chart) point(g *group, y Column) (p Point, ok bool) {
	if c.Kind == Front {
		rates, joules := g.values(Rate), g.values(JoulesPerSample)
		if len(rates) == 0 || len(joules) == 0 {
			return p, false
		}
		var label []string
		for _, at := range g.at {
			if !isWork(at.Axis) {
				label = append(label, at.Label)
			}
		}
		p = Point{Label: strings.Join(label, " "), SecondsPer: 1 / stats.Median(rates), JoulesPerSample: stats.Median(joules)}
		return p, p.SecondsPer > 0 && !math.IsInf(p.SecondsPer, 0) && p.JoulesPerSample >= 0
	}
	values := g.values(y)
	if len(values) == 0 {
		return p, false
	}
	p.Label, p.Y = g.label(c.X), stats.Median(values)
	p.Low, p.High, _ = Interval(values)
	p.X, _ = strconv.ParseFloat(p.Label, 64)
	return p, true
}

// finish orders the points of curves, and divides the points of a speed-up by the first of their
// series.
func (c *Chart) finish() {
	if c.Kind != Curves && c.Kind != Speedup {
		return
	}
	for i := range c.Series {
		points := c.Series[i].Points
		slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		if c.Kind != Speedup {
			continue
		}
		relate(points, c.Y.info().More)
	}
}

// relate divides points by the first one, or that by them where less is better.
func relate(points []Point, more bool) {
	first := points[0].Y
	for i := range points {
		p := &points[i]
		if more {
			p.Y, p.Low, p.High = p.Y/first, p.Low/first, p.High/first
		} else {
			p.Y, p.Low, p.High = first/p.Y, first/p.High, first/p.Low
		}
	}
}
