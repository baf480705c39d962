package plots

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of the page of a map, in points.
const (
	heatCell = 46  // the height of a cell
	heatLeft = 120 // for the names of rows
)

// DrawHeat draws a map in one of [Formats]: a row for each series, from below, and a coloured cell with its value for
// each point. An error wraps ErrNoData where there is no value.
func DrawHeat(w io.Writer, format string, v *Values) error {
	if err := v.check(math.Inf(-1), false); err != nil {
		return fmt.Errorf("heat: %w", err)
	}
	height := vg.Length(headerHeight + heatCell*len(v.Series) + axisBottom + 2*pageMargin + legendLine)
	return render(w, format, pageWidth, height, v.drawHeat)
}

func (v *Values) drawHeat(page draw.Canvas) {
	f := v.frame(page, heatLeft, nil)
	f.x, f.y = labelAxis(f, v.Labels, v.XLabel), axis{min: 0, max: float64(len(v.Series)), label: v.YLabel}
	low, high := math.Inf(1), math.Inf(-1)
	for i, s := range v.Series {
		style := f.face.style(tickSize, ink, text.XRight, text.YCenter)
		f.y.ticks = append(f.y.ticks, plot.Tick{Value: float64(i) + 0.5, Label: clip(style, s.Name, heatLeft-36)})
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
	note := v.Quantity.Name + ": the darker the more"
	if !v.Counts {
		note += "; framed: the best"
	}
	f.finish(heatLeft-20, note, nil)
}

// drawCell paints a value on a colour between white and blue. The best one has a frame.
func (v *Values) drawCell(f *frame, cell vg.Rectangle, y, low, high float64) {
	share, best := 1.0, low
	if high > low {
		share = (y - low) / (high - low)
	}
	if v.Quantity.More {
		best = high
	}
	const lightest = 0.92
	fill := lighten(palette[0], float64(lightest*(1-share)))
	inner := vg.Rectangle{Min: vg.Point{X: cell.Min.X + 1, Y: cell.Min.Y + 1}, Max: vg.Point{X: cell.Max.X - 1, Y: cell.Max.Y - 1}}
	fillRect(f.c, inner, fill)
	if y == best && !v.Counts {
		f.c.StrokeLines(draw.LineStyle{Color: palette[5], Width: 2}, corners(inner))
	}
	middle := vg.Point{X: (cell.Min.X + cell.Max.X) / 2, Y: (cell.Min.Y + cell.Max.Y) / 2}
	style := f.face.style(9.5, onColour(fill), text.XCenter, text.YCenter)
	f.c.FillText(style, middle, clip(style, v.Quantity.format(y), cell.Max.X-cell.Min.X-4))
}

// corners are the corners of a rectangle in their order around it, the first one also last.
func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min}
}
