package plots

import (
	"dahl/plots/paper"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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

// DrawCurves draws a curve for each series over a number that takes powers of two, such as a tile or a batch. The best
// point is marked. An error wraps ErrNoData where a series has no points.
func DrawCurves(w io.Writer, p paper.Page, v *Values) error {
	if err := v.check(0, true); err != nil {
		return fmt.Errorf("curves: %w", err)
	}
	var legend []paper.Entry
	for i := range v.Series {
		s := &v.Series[i]
		best := s.Points[s.Best(v.Quantity)]
		legend = append(legend, paper.Entry{Name: fmt.Sprintf("%s, best %s at %.12g", s.Name, v.Quantity.format(best.Y), best.X), Colour: palette[i%len(palette)], Stroke: true, Dashed: s.Dashed})
	}
	note := "ring: the best point"
	if v.Interval != "" {
		note += "; bar: " + v.Interval
	}
	of, err := v.page(p, valuesLeft, note, legend)
	if err != nil {
		return err
	}
	return of.render(w, of.tall(), func(f *paper.Frame) {
		lo, hi := v.curveAxes(f)
		f.DrawGrid()
		if v.Ideal {
			points := []vg.Point{{X: f.X(lo), Y: f.Y(1)}, {X: f.X(hi), Y: f.Y(hi / lo)}}
			f.Canvas.StrokeLines(draw.LineStyle{Color: paper.FaintInk, Width: 0.8, Dashes: []vg.Length{2, 2}}, points)
			f.Canvas.FillText(f.Face.Style(8.5, paper.FaintInk, text.XRight, text.YBottom), points[1], "ideal ")
		}
		for i := range v.Series {
			drawSeries(f, &v.Series[i], v.Quantity, i)
		}
	})
}

// curveAxes makes axes over all points: the lower one in steps of two, with a label at each value of a point, the left
// one from zero. It returns the least and the greatest x.
func (v *Values) curveAxes(f *paper.Frame) (lo, hi float64) {
	lo, top := math.Inf(1), 0.0
	seen := map[float64]bool{}
	f.Lower = paper.Axis{Log: true, Label: v.XLabel}
	for i := range v.Series {
		for _, p := range v.Series[i].Points {
			lo, hi, top = min(lo, p.X), max(hi, p.X), max(top, p.High)
			if !seen[p.X] {
				seen[p.X] = true
				f.Lower.Ticks = append(f.Lower.Ticks, plot.Tick{Value: p.X, Label: fmt.Sprintf("%.12g", p.X)})
			}
		}
	}
	f.Lower.Min, f.Lower.Max = lo/math.Sqrt2, hi*math.Sqrt2
	if v.Ideal { // on a logarithmic axis a proportional line would be a curve
		f.Lower.Log, f.Lower.Min, f.Lower.Max, top = false, 0, hi*1.08, max(top, hi/lo)
	}
	f.Left = v.Quantity.axis(top, f.Ticks(6))
	return lo, hi
}

// drawSeries paints a curve, the spread of its points and a ring around the best.
// Bars of different series stand a little apart.
func drawSeries(f *paper.Frame, s *Series, q Quantity, number int) {
	colour := palette[number%len(palette)]
	var points []vg.Point
	for _, p := range s.Points {
		points = append(points, vg.Point{X: f.X(p.X), Y: f.Y(p.Y)})
	}
	style := draw.LineStyle{Color: colour, Width: 1.6}
	if s.Dashed {
		style.Dashes = []vg.Length{5, 3}
	}
	f.Canvas.StrokeLines(style, points)
	for i, p := range s.Points {
		at := points[i]
		if p.High > p.Low {
			x := at.X + vg.Length(3*number)
			paper.Line(f.Canvas, colour, 1, vg.Point{X: x, Y: f.Y(p.Low)}, vg.Point{X: x, Y: f.Y(p.High)})
		}
		f.Canvas.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: 3, Shape: draw.CircleGlyph{}}, at)
	}
	f.Canvas.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: 7, Shape: draw.RingGlyph{}}, points[s.Best(q)])
}
