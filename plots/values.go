package plots

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"dahl/naming"
	"dahl/plots/paper"
)

// Values is a figure of one quantity of runs over one axis or two. [DrawBars], [DrawCurves] and [DrawHeat] draw it.
type Values struct {
	Title, Summary string
	XLabel, YLabel string // YLabel names the axis of the series in a map
	Quantity       Quantity
	Labels         []string // the lower axis of bars and maps, from the left
	Series         []Series
	Interval       string // meaning of the lines at points; empty means that there are none
	Counts         bool   // the values of a map count something, and none is the best
	Ideal          bool   // curves get a line proportional to x, from 1 at the least x on
}

// Series is the points of one colour, or of one row of a map. It has at least one.
type Series struct {
	Name   string // empty means that it is the only series, without a legend
	Dashed bool
	Points []Point
}

// Point is a value and the interval of its repetitions. Low and High equal Y where there is no interval.
type Point struct {
	Label        string  // one of Values.Labels; curves have none
	X            float64 // of a curve, above 0 and ascending
	Y, Low, High float64
}

// check refuses points that cannot be drawn: below the least value, without a label, or of curves out of order.
func (v *Values) check(least float64, curves bool) error {
	if len(v.Series) == 0 {
		return ErrNoData
	}
	for i := range v.Series {
		s := &v.Series[i]
		if len(s.Points) == 0 {
			return fmt.Errorf("series %q: %w", s.Name, ErrNoData)
		}
		for k, p := range s.Points {
			switch {
			case !(p.Low >= least && p.Low <= p.Y && p.Y <= p.High) || math.IsInf(p.Low, 0) || math.IsInf(p.High, 0):
				return fmt.Errorf("series %q: point %d is %g in [%g, %g]", s.Name, k, p.Y, p.Low, p.High)
			case curves && (!(p.X > 0) || math.IsInf(p.X, 0) || k > 0 && p.X <= s.Points[k-1].X):
				return fmt.Errorf("series %q: point %d at %g; want ascending ones above 0", s.Name, k, p.X)
			case !curves && !slices.Contains(v.Labels, p.Label):
				return fmt.Errorf("series %q: point %d is at %q, which is no label of the axis", s.Name, k, p.Label)
			}
		}
	}
	return nil
}

// valuesPage is the page of a figure of values: axes, and below the lower one a legend and a note.
type valuesPage struct {
	*paper.Layout
	left, drop vg.Length // of the left axis, and below the lower one, with their labels
	legend     *paper.Legend
	note       *paper.Note
}

// page arranges the page of a figure.
func (v *Values) page(p paper.Page, left vg.Length, note string, entries []paper.Entry) (*valuesPage, error) {
	l, err := p.Layout(v.Title, v.Summary)
	if err != nil {
		return nil, err
	}
	of := &valuesPage{Layout: l, left: left, drop: paper.AxisBottom}
	of.legend, of.note = paper.NewLegend(l.Face, l.Wide-of.indent()-2*paper.Margin, paper.Group{Entries: entries}), l.Note(note, l.Inner()-paper.Margin)
	return of, nil
}

// indent is where the legend begins: below the left axis, where the page is wide.
func (of *valuesPage) indent() vg.Length {
	if of.Wide < paper.Width/2 {
		return paper.Margin
	}
	return paper.Margin + of.left
}

// render draws a figure whose data takes a height at best. Paint gives axes to a frame, and draws in it.
func (of *valuesPage) render(w io.Writer, best vg.Length, paint func(f *paper.Frame)) error {
	below := of.drop + of.legend.Height + of.note.Height() + paper.Margin
	tall, err := of.Fill(below, best, 60)
	if err != nil {
		return err
	}
	return of.Layout.Render(w, tall+below, func(_, c draw.Canvas) {
		f := &paper.Frame{Canvas: c, Face: of.Face, Box: vg.Rectangle{
			Min: vg.Point{X: c.Min.X + paper.Margin + of.left, Y: c.Max.Y - tall}, Max: vg.Point{X: c.Max.X - 2*paper.Margin, Y: c.Max.Y}}}
		paint(f)
		f.DrawX(true)
		f.DrawY(of.left - 12)
		top := f.Box.Min.Y - of.drop
		of.legend.Draw(c, of.indent(), top)
		of.note.Draw(c, vg.Point{X: f.Box.Max.X, Y: top - of.legend.Height}, text.XRight)
	})
}

// Quantity is a number of runs that a figure shows.
type Quantity struct {
	Name string
	Unit string // the base unit, "s", "J", "B" or "%"; empty means a plain number
	More bool   // more of it is better
}

// axis runs from zero to a value, with about a number of ticks.
func (q *Quantity) axis(top float64, ticks int) paper.Axis {
	a := paper.LinearAxis(top, 0.08, q.unit(top), q.Name, ticks)
	if q.unit(top).Name == "" {
		a.Label = q.Name
	}
	return a
}

// unit is the unit in which a value is easiest to read.
func (q *Quantity) unit(v float64) paper.Unit {
	switch q.Unit {
	case "s":
		u := paper.TimeUnit(time.Duration(v * 1e9))
		u.Size /= 1e9
		return u
	case "B":
		return paper.ByteUnit(v)
	case "J":
		return paper.SIUnit(q.Unit, v)
	case "":
		if v >= 1e4 {
			return paper.Unit{Name: "thousands", Size: 1e3}
		}
	}
	return paper.Unit{Name: q.Unit, Size: 1}
}

// format writes a value with three significant digits, or all of a number's before the point.
func (q *Quantity) format(v float64) string {
	switch {
	case q.Unit == "" && v >= 1000:
		return naming.Grouped(fmt.Sprintf("%.0f", v))
	case q.Unit == "s":
		return paper.FormatDuration(time.Duration(v * 1e9))
	}
	u := q.unit(v)
	return strings.TrimSpace(u.Format(v))
}
