package grid

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"dahl/plots"
	"dahl/rundir/experiment"
)

// drawChart draws a picture over a part of the grid.
func drawChart(w io.Writer, format string, f *experiment.File, c *experiment.Chart) error {
	title, summary := chartTitle(f, c), chartSummary(f, c)
	interval := ""
	if c.Runs[1] > 1 {
		interval = experiment.IntervalText(c.Runs[0], c.Runs[1])
	}
	switch c.Kind {
	case experiment.Bars:
		return plots.DrawBars(w, format, barsOf(c, f, &plots.Bars{Title: title, Summary: summary, XLabel: c.X, Y: quantityOf(c.Y), Interval: interval}))
	case experiment.Heat:
		return plots.DrawHeat(w, format, heatOf(c, f, &plots.Heat{Title: title, Summary: summary, XLabel: c.X, YLabel: c.By, Quantity: quantityOf(c.Y)}))
	case experiment.Front:
		return plots.DrawFront(w, format, frontOf(c, &plots.Front{Title: title, Summary: summary, What: "cell", Per: "a sample", Whole: true}))
	}
	curves := &plots.Curves{Title: title, Summary: summary, XLabel: c.X, Y: quantityOf(c.Y), Interval: interval, Ideal: c.Kind == experiment.Speedup}
	if c.Kind == experiment.Speedup {
		curves.Y = plots.Quantity{Name: "times as fast", More: true}
	}
	for _, s := range c.Series {
		name := cmp.Or(s.Name, worldOf(f))
		if s.Predicted {
			name = strings.TrimSpace(s.Name + " " + predicted)
		}
		curves.Series = append(curves.Series, plots.Series{Name: name, Dashed: s.Predicted, Points: curvePoints(s.Points)})
	}
	return plots.DrawCurves(w, format, curves)
}

const predicted = "predicted"

// worldOf says how the numbers of cells come about.
func worldOf(f *experiment.File) string {
	if f.Command == "execute" {
		return "measured"
	}
	return predicted
}

// quantityOf is a column as a figure shows it.
func quantityOf(c experiment.Column) plots.Quantity {
	info := c.Info()
	return plots.Quantity{Name: info.Heading, Unit: strings.TrimPrefix(info.Unit, "/s"), More: info.More}
}

// chartTitle names the quantity and the axes of a picture.
func chartTitle(f *experiment.File, c *experiment.Chart) string {
	what := c.Y.Info().Heading
	switch c.Kind {
	case experiment.Front:
		return f.Name + ": time and energy per sample" + partText(f, c)
	case experiment.Speedup:
		what = "speed-up"
	}
	over := " over " + c.X
	if c.Kind == experiment.Heat {
		over += " and " + c.By
	}
	return f.Name + ": " + what + over + partText(f, c)
}

// partText names the part of the grid, as far as it is one of several.
func partText(f *experiment.File, c *experiment.Chart) string {
	text := ""
	for _, at := range c.Part {
		if len(f.Axis(at.Axis).Values) > 1 {
			text += fmt.Sprintf(", %s %s", at.Axis, at.Label)
		}
	}
	return text
}

// chartSummary says how the numbers came about.
func chartSummary(f *experiment.File, c *experiment.Chart) string {
	of := []string{worldOf(f) + " by dahl " + f.Command}
	for _, s := range f.Settings {
		of = append(of, s.Key+" "+s.Value)
	}
	switch least, most := c.Runs[0], c.Runs[1]; {
	case most > least:
		of = append(of, fmt.Sprintf("medians of %d to %d runs", least, most))
	case most > 1:
		of = append(of, fmt.Sprintf("medians of %d runs", most))
	}
	return strings.Join(of, ", ")
}

// labelsOf are the values of an axis for which there is a point, in the order of the file.
func labelsOf(f *experiment.File, axis string, has func(label string) bool) (labels []string) {
	for _, v := range f.Axis(axis).Values {
		if has(v.Label) {
			labels = append(labels, v.Label)
		}
	}
	return labels
}

func hasPoint(c *experiment.Chart) func(label string) bool {
	return func(label string) bool {
		return slices.ContainsFunc(c.Series, func(s experiment.Series) bool {
			return slices.ContainsFunc(s.Points, func(p experiment.Point) bool { return p.Label == label })
		})
	}
}

func barsOf(c *experiment.Chart, f *experiment.File, b *plots.Bars) *plots.Bars {
	b.Groups = labelsOf(f, c.X, hasPoint(c))
	for _, s := range c.Series {
		bars := plots.BarSeries{Name: s.Name}
		for range b.Groups {
			bars.Bars = append(bars.Bars, plots.Bar{Y: math.NaN()})
		}
		for _, p := range s.Points {
			bars.Bars[slices.Index(b.Groups, p.Label)] = plots.Bar{Y: p.Y, Low: p.Low, High: p.High}
		}
		b.Series = append(b.Series, bars)
	}
	return b
}

func heatOf(c *experiment.Chart, f *experiment.File, h *plots.Heat) *plots.Heat {
	h.Columns = labelsOf(f, c.X, hasPoint(c))
	for _, s := range c.Series {
		h.Rows = append(h.Rows, s.Name)
		row := make([]float64, len(h.Columns))
		for i := range row {
			row[i] = math.NaN()
		}
		for _, p := range s.Points {
			row[slices.Index(h.Columns, p.Label)] = p.Y
		}
		h.Values = append(h.Values, row)
	}
	return h
}

// frontOf marks the points that no other beats in both.
func frontOf(c *experiment.Chart, of *plots.Front) *plots.Front {
	points := distinct(c)
	for _, p := range points {
		beaten := slices.ContainsFunc(points, func(q experiment.Point) bool {
			return q.SecondsPer <= p.SecondsPer && q.JoulesPerSample <= p.JoulesPerSample && (q.SecondsPer < p.SecondsPer || q.JoulesPerSample < p.JoulesPerSample)
		})
		of.Points = append(of.Points, plots.FrontPoint{Seconds: p.SecondsPer, Joules: p.JoulesPerSample, Label: p.Label, Front: !beaten})
	}
	return of
}

// distinct are the points of all series. Those at one place are one, with the label of the first.
func distinct(c *experiment.Chart) (points []experiment.Point) {
	at := map[[2]float64]int{}
	var others []int
	for _, s := range c.Series {
		for _, p := range s.Points {
			place := [2]float64{p.SecondsPer, p.JoulesPerSample}
			if i, ok := at[place]; ok {
				others[i]++
				continue
			}
			at[place] = len(points)
			points, others = append(points, p), append(others, 0)
		}
	}
	for i, n := range others {
		if n > 0 {
			points[i].Label += fmt.Sprintf(" and %d more", n)
		}
	}
	return points
}

func curvePoints(points []experiment.Point) (all []plots.CurvePoint) {
	for _, p := range points {
		all = append(all, plots.CurvePoint{X: p.X, Y: p.Y, Low: p.Low, High: p.High})
	}
	return all
}
