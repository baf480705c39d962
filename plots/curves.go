package plots

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"dahl/naming"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Quantity is a number of runs that a figure shows.
type Quantity struct {
	Name string
	Unit string // the base unit, "s", "J", "B" or "%"; empty: it is a number
	More bool   // more of it is better
}

// Curves is a figure of one quantity over a number that takes powers of two, such as a tile or a
// batch.
type Curves struct {
	Title, Summary string
	XLabel         string
	Y              Quantity
	Series         []Series
	Interval       string // what the bars at points are; empty: there are none
	Ideal          bool   // draw what is proportional to x, from 1 at the least x on
}

// Series is one curve. Its points, at least 1, are by ascending X. The best one is marked.
type Series struct {
	Name   string
	Dashed bool
	Points []CurvePoint
}

// CurvePoint is a value and the interval of its repetitions. Low and High equal Y if there is
// only one repetition.
type CurvePoint struct{ X, Y, Low, High float64 }

// Best is the index of the best point, the first of equals.
func (s *Series) Best(q Quantity) int {
	best := 0
	for i := range s.Points {
		if y := s.Points[i].Y; !q.More && y < s.Points[best].Y || q.More && y > s.Points[best].Y {
			best = i
		}
	}
	return best
}

// Sizes of the page of curves, in points.
const (
	curvesHeight = 420
	curvesLeft   = 64 // for the y axis and its label
)

// DrawCurves writes the figure in one of [Formats]. An error wraps ErrNoData where a series has no
// points.
func DrawCurves(w io.Writer, format string, c *Curves) error {
	if len(c.Series) == 0 {
		return fmt.Errorf("curves: %w", ErrNoData)
	}
	for i := range c.Series {
		if err := c.Series[i].check(); err != nil {
			return fmt.Errorf("curves: series %q: %w", c.Series[i].Name, err)
		}
	}
	return render(w, format, pageWidth, curvesHeight, c.draw)
}

func (s *Series) check() error {
	if len(s.Points) == 0 {
		return ErrNoData
	}
	for i, p := range s.Points {
		if !(p.X > 0) || !(p.Low >= 0 && p.Low <= p.Y && p.Y <= p.High) || math.IsInf(p.X+p.High, 0) {
			return fmt.Errorf("point %d at %g is %g in [%g, %g]", i, p.X, p.Y, p.Low, p.High)
		}
		if i > 0 && p.X <= s.Points[i-1].X {
			return errors.New("its points are not in ascending order")
		}
	}
	return nil
}

func (c *Curves) draw(page draw.Canvas) {
	face := newTypeface()
	below := drawHeader(page, face, c.Title, c.Summary)
	var entries []legendEntry
	for i := range c.Series {
		s := &c.Series[i]
		entries = append(entries, legendEntry{name: s.Name + ", best " + bestText(s.Points[s.Best(c.Y)], c.Y), colour: palette[i%len(palette)], stroke: true, dashed: s.Dashed})
	}
	x, y := c.axes()
	f := &frame{c: below, face: face, x: x, y: y, box: vg.Rectangle{
		Min: vg.Point{X: below.Min.X + pageMargin + curvesLeft, Y: below.Min.Y + axisBottom + legendLine + pageMargin},
		Max: vg.Point{X: below.Max.X - 2*pageMargin, Y: below.Max.Y},
	}}
	f.drawGrid()
	c.drawIdeal(f)
	for i := range c.Series {
		f.drawSeries(&c.Series[i], c.Y, i)
	}
	f.drawX(true)
	f.drawY(curvesLeft - 24)
	bottom := below.Min.Y + pageMargin + legendLine/2
	note := "ring: the best point"
	if c.Interval != "" {
		note += "; bar: " + c.Interval
	}
	below.FillText(face.style(8.5, faintInk, text.XRight, text.YCenter), vg.Point{X: f.box.Max.X, Y: bottom}, note)
	drawLegend(below, face, []legendGroup{{entries: entries}}, f.box.Min.X, f.box.Max.X, below.Min.Y+pageMargin+legendLine)
}

// axes cover all points: the lower one in steps of two, with a label at each value of a point,
// the left one from zero.
func (c *Curves) axes() (x, y axis) {
	lo, hi, top := math.Inf(1), 0.0, 0.0
	seen := map[float64]bool{}
	x = axis{log: true, label: c.XLabel}
	for i := range c.Series {
		for _, p := range c.Series[i].Points {
			lo, hi, top = min(lo, p.X), max(hi, p.X), max(top, p.High)
			if !seen[p.X] {
				seen[p.X] = true
				x.ticks = append(x.ticks, plot.Tick{Value: p.X, Label: fmt.Sprintf("%.12g", p.X)})
			}
		}
	}
	x.min, x.max = lo/math.Sqrt2, hi*math.Sqrt2
	if c.Ideal { // on a logarithmic axis what is proportional would be a curve
		x.log, x.min, x.max, top = false, 0, hi*1.08, max(top, hi/lo)
	}
	return x, c.Y.axis(top)
}

// axis runs from zero to a value.
func (q *Quantity) axis(top float64) axis {
	const ticks = 6
	a := linearAxis(top, 0.08, q.unit(top), q.Name, ticks)
	if q.unit(top).name == "" {
		a.label = q.Name
	}
	return a
}

// unit is the unit in which a value is easiest to read.
func (q *Quantity) unit(v float64) unit {
	switch q.Unit {
	case "s":
		u := timeUnit(time.Duration(v * 1e9))
		u.size /= 1e9
		return u
	case "B":
		return byteUnit(v)
	case "J":
		return siUnit(q.Unit, v)
	case "":
		if v >= 1e4 {
			return unit{"thousands", 1e3}
		}
	}
	return unit{q.Unit, 1}
}

// drawIdeal paints what grows as x does, from 1 at the least x to the greatest.
func (c *Curves) drawIdeal(f *frame) {
	if !c.Ideal {
		return
	}
	lo, hi := math.Inf(1), 0.0
	for i := range c.Series {
		for _, p := range c.Series[i].Points {
			lo, hi = min(lo, p.X), max(hi, p.X)
		}
	}
	points := []vg.Point{{X: f.X(lo), Y: f.Y(1)}, {X: f.X(hi), Y: f.Y(hi / lo)}}
	f.c.StrokeLines(draw.LineStyle{Color: faintInk, Width: 0.8, Dashes: []vg.Length{2, 2}}, points)
	f.c.FillText(f.face.style(8.5, faintInk, text.XRight, text.YBottom), points[len(points)-1], "ideal ")
}

// drawSeries paints a curve, the spread of its points and a ring around the best.
// Bars of different series stand a little apart.
func (f *frame) drawSeries(s *Series, q Quantity, number int) {
	colour := palette[number%len(palette)]
	var points []vg.Point
	for _, p := range s.Points {
		points = append(points, vg.Point{X: f.X(p.X), Y: f.Y(p.Y)})
	}
	style := draw.LineStyle{Color: colour, Width: 1.6}
	if s.Dashed {
		style.Dashes = []vg.Length{5, 3}
	}
	f.c.StrokeLines(style, points)
	for i, p := range s.Points {
		at := points[i]
		if p.High > p.Low {
			x := at.X + vg.Length(3*number)
			line(f.c, colour, 1, vg.Point{X: x, Y: f.Y(p.Low)}, vg.Point{X: x, Y: f.Y(p.High)})
		}
		f.c.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: 3, Shape: draw.CircleGlyph{}}, at)
	}
	f.c.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: 7, Shape: draw.RingGlyph{}}, points[s.Best(q)])
}

// bestText says where a curve is best, and its value there.
func bestText(p CurvePoint, q Quantity) string {
	return fmt.Sprintf("%s at %.12g", q.format(p.Y), p.X)
}

// format writes a value with three significant digits, or all of a number's before the point.
func (q *Quantity) format(v float64) string {
	switch {
	case q.Unit == "" && v >= 1000:
		return naming.Grouped(fmt.Sprintf("%.0f", v))
	case q.Unit == "s":
		return formatDuration(time.Duration(v * 1e9))
	}
	u := q.unit(v)
	return strings.TrimSpace(u.format(v))
}
