package plots

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Heat is a figure of one quantity over two axes: a coloured cell with its value for each pair.
type Heat struct {
	Title, Summary string
	XLabel, YLabel string
	Quantity       Quantity
	Columns, Rows  []string    // from the left, and from below
	Values         [][]float64 // by row and column; NaN: there is none
}

// Sizes of the page of a map, in points.
const (
	heatCell = 46  // the height of a cell
	heatLeft = 120 // for the names of rows
)

// DrawHeat writes the figure in one of [Formats]. An error wraps ErrNoData where there is no value.
func DrawHeat(w io.Writer, format string, h *Heat) error {
	low, high, err := h.span()
	if err != nil {
		return fmt.Errorf("heat: %w", err)
	}
	height := vg.Length(headerHeight + heatCell*len(h.Rows) + axisBottom + 2*pageMargin + legendLine)
	return render(w, format, pageWidth, height, func(page draw.Canvas) { h.draw(page, low, high) })
}

// span is from the least to the greatest value.
func (h *Heat) span() (low, high float64, err error) {
	low, high = math.Inf(1), math.Inf(-1)
	if len(h.Rows) == 0 || len(h.Columns) == 0 || len(h.Values) != len(h.Rows) {
		return 0, 0, ErrNoData
	}
	for i, row := range h.Values {
		if len(row) != len(h.Columns) {
			return 0, 0, fmt.Errorf("row %q has %d values for %d columns", h.Rows[i], len(row), len(h.Columns))
		}
		for _, v := range row {
			if math.IsInf(v, 0) {
				return 0, 0, fmt.Errorf("row %q has an infinite value", h.Rows[i])
			}
			if !math.IsNaN(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low > high {
		return 0, 0, ErrNoData
	}
	return low, high, nil
}

func (h *Heat) draw(page draw.Canvas, low, high float64) {
	face := newTypeface()
	below := drawHeader(page, face, h.Title, h.Summary)
	f := &frame{c: below, face: face, box: vg.Rectangle{
		Min: vg.Point{X: below.Min.X + pageMargin + heatLeft, Y: below.Min.Y + pageMargin + legendLine + axisBottom},
		Max: vg.Point{X: below.Max.X - 2*pageMargin, Y: below.Max.Y},
	}}
	f.x, f.y = groupAxis(f, h.Columns, h.XLabel), axis{min: 0, max: float64(len(h.Rows)), label: h.YLabel}
	for i, name := range h.Rows {
		style := face.style(tickSize, ink, text.XRight, text.YCenter)
		f.y.ticks = append(f.y.ticks, plot.Tick{Value: float64(i) + 0.5, Label: clip(style, name, heatLeft-36)})
	}
	best := low
	if h.Quantity.More {
		best = high
	}
	for i, row := range h.Values {
		for j, v := range row {
			cell := vg.Rectangle{Min: vg.Point{X: f.X(float64(j)), Y: f.Y(float64(i))}, Max: vg.Point{X: f.X(float64(j + 1)), Y: f.Y(float64(i + 1))}}
			h.drawCell(f, cell, v, best, low, high)
		}
	}
	f.drawX(true)
	f.drawY(heatLeft - 20)
	below.FillText(face.style(8.5, faintInk, text.XRight, text.YCenter), vg.Point{X: f.box.Max.X, Y: below.Min.Y + pageMargin + legendLine/2},
		h.Quantity.Name+": the darker the more; framed: the best")
}

// drawCell paints a value on a colour between white and blue. The best one has a frame.
func (h *Heat) drawCell(f *frame, cell vg.Rectangle, v, best, low, high float64) {
	if math.IsNaN(v) {
		return
	}
	share := 1.0
	if high > low {
		share = (v - low) / (high - low)
	}
	const lightest = 0.92
	fill := lighten(palette[0], float64(lightest*(1-share)))
	inner := vg.Rectangle{Min: vg.Point{X: cell.Min.X + 1, Y: cell.Min.Y + 1}, Max: vg.Point{X: cell.Max.X - 1, Y: cell.Max.Y - 1}}
	fillRect(f.c, inner, fill)
	if v == best {
		f.c.StrokeLines(draw.LineStyle{Color: palette[5], Width: 2}, corners(inner))
	}
	middle := vg.Point{X: (cell.Min.X + cell.Max.X) / 2, Y: (cell.Min.Y + cell.Max.Y) / 2}
	style := f.face.style(9.5, onColour(fill), text.XCenter, text.YCenter)
	f.c.FillText(style, middle, clip(style, h.Quantity.format(v), cell.Max.X-cell.Min.X-4))
}

// corners are the corners of a rectangle in their order around it, the first one also last.
func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min}
}
