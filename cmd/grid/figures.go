package grid

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/plots"
	"dahl/plots/paper"
	"dahl/rundir/experiment"
)

// drawChart draws a picture over a part of the grid.
func drawChart(w io.Writer, page paper.Page, f *experiment.File, c *experiment.Chart) error {
	title, summary := chartTitle(f, c), chartSummary(f, c)
	if c.Kind == experiment.Front {
		return plots.DrawFront(w, page, frontOf(c, &plots.Front{Title: title, Summary: summary, What: "cell", Per: "a sample", Whole: true}))
	}
	v := &plots.Values{Title: title, Summary: summary, XLabel: c.X, YLabel: c.By, Quantity: quantityOf(c.Y), Labels: labelsOf(f, c), Ideal: c.Kind == experiment.Speedup}
	if c.Runs[1] > 1 {
		v.Interval = experiment.IntervalText(c.Runs[0], c.Runs[1])
	}
	for _, s := range c.Series {
		of := plots.Series{Name: s.Name, Dashed: s.Predicted}
		for _, p := range s.Points {
			of.Points = append(of.Points, plots.Point{Label: p.Label, X: p.X, Y: p.Y, Low: p.Low, High: p.High})
		}
		v.Series = append(v.Series, of)
	}
	switch c.Kind {
	case experiment.Bars:
		return plots.DrawBars(w, page, v)
	case experiment.Heat:
		return plots.DrawHeat(w, page, v)
	case experiment.Speedup:
		v.Quantity = plots.Quantity{Name: gainOf(c.Y), More: true}
	}
	for i := range v.Series {
		v.Series[i].Name = cmp.Or(v.Series[i].Name, worldOf(f))
	}
	return plots.DrawCurves(w, page, v)
}

// gainOf says what a point of a speed-up is: a quantity over the first one of its series, or the other way round where less is better.
func gainOf(c experiment.Column) string {
	if c == experiment.Rate || c == experiment.StepTime {
		return "times as fast"
	}
	return "gain in " + c.Info().Heading
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

// labelsOf are the values of the lower axis with a point, in the order of the file.
func labelsOf(f *experiment.File, c *experiment.Chart) (labels []string) {
	for _, v := range f.Axis(c.X).Values {
		if slices.ContainsFunc(c.Series, func(s experiment.Series) bool {
			return slices.ContainsFunc(s.Points, func(p experiment.Point) bool { return p.Label == v.Label })
		}) {
			labels = append(labels, v.Label)
		}
	}
	return labels
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
