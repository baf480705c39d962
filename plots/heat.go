package plots

import (
	"dahl/plots/paper"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of a map, in points.
const (
	heatCell   = 46 // the height of a cell at best
	heatLabels = 84 // the widest names of rows; on a narrow page a third of it
)

// DrawHeat draws a map: a row for each series, from below, and a coloured cell with its value for
// each point. An error wraps ErrNoData where there is no value.
func DrawHeat(w io.Writer, p paper.Page, v *Values) error {
	if err := v.check(math.Inf(-1), false); err != nil {
		return fmt.Errorf("heat: %w", err)
	}
	note := v.Quantity.Name + ": the darker the more"
	if !v.Counts {
		note += "; framed: the best"
	}
	style, names := paper.NewTypeface().Style(paper.TickSize, paper.Ink, text.XRight, text.YCenter), vg.Length(0)
	for _, s := range v.Series {
		names = max(names, min(style.Width(s.Name), heatLabels))
	}
	of, err := v.page(p, names+24, note, nil)
	if err != nil {
		return err
	}
	x := of.labelAxis(v)
	cell := min(heatCell, max(12, (of.Wide-of.left-3*paper.Margin)/vg.Length(len(v.Labels))))
	return of.render(w, vg.Length(cell*vg.Length(len(v.Series))), func(f *paper.Frame) {
		f.Lower, f.Left = x, paper.Axis{Min: 0, Max: float64(len(v.Series)), Label: v.YLabel}
		for i, s := range v.Series {
			f.Left.Ticks = append(f.Left.Ticks, plot.Tick{Value: float64(i) + 0.5, Label: paper.Clip(style, s.Name, names)})
		}
		v.drawCells(f)
	})
}

func (v *Values) drawCells(f *paper.Frame) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range v.Series {
		for _, p := range s.Points {
			low, high = min(low, p.Y), max(high, p.Y)
		}
	}
	for i, s := range v.Series {
		for _, p := range s.Points {
			j := slices.Index(v.Labels, p.Label)
			cell := vg.Rectangle{Min: vg.Point{X: f.X(float64(j)), Y: f.Y(float64(i))}, Max: vg.Point{X: f.X(float64(j + 1)), Y: f.Y(float64(i + 1))}}
			v.drawCell(f, cell, p.Y, low, high)
		}
	}
}

// drawCell paints a value on a colour between white and blue. The best one has a frame.
func (v *Values) drawCell(f *paper.Frame, cell vg.Rectangle, y, low, high float64) {
	share, best := 1.0, low
	if high > low {
		share = (y - low) / (high - low)
	}
	if v.Quantity.More {
		best = high
	}
	const lightest = 0.92
	fill := paper.Lighten(palette[0], float64(lightest*(1-share)))
	inner := vg.Rectangle{Min: vg.Point{X: cell.Min.X + 1, Y: cell.Min.Y + 1}, Max: vg.Point{X: cell.Max.X - 1, Y: cell.Max.Y - 1}}
	paper.FillRect(f.Canvas, inner, fill)
	if y == best && !v.Counts {
		f.Canvas.StrokeLines(draw.LineStyle{Color: palette[5], Width: 2}, corners(inner))
	}
	middle := vg.Point{X: (cell.Min.X + cell.Max.X) / 2, Y: (cell.Min.Y + cell.Max.Y) / 2}
	value := v.Quantity.format(y)
	style := paper.Shrunk(f.Face.Style(min(9.5, (cell.Max.Y-cell.Min.Y).Points()*0.8), paper.OnColour(fill), text.XCenter, text.YCenter), value, cell.Max.X-cell.Min.X-3)
	if none := v.Counts && y == 0; !none && style.Font.Size >= paper.LeastText { // part of a number would be another number
		f.Canvas.FillText(style, middle, value)
	}
}

// corners are the corners of a rectangle in their order around it, the first one also last.
func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min}
}
