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
)

// Sizes of the page of bars, in points.
const (
	valuesTall  = 300  // from the lower axis up
	valuesLeft  = 52   // for the left axis and its label
	groupFilled = 0.8  // of the width of a group
	barFilled   = 0.92 // of the width of a bar
	maxBar      = 46   // the widest
)

// tall is the best height of curves and bars.
func (of *valuesPage) tall() vg.Length { return max(130, vg.Length(valuesTall*of.Share())) }

// DrawBars draws a group of bars for each label, and in it a bar for each series. An error wraps ErrNoData where there is
// no bar.
func DrawBars(w io.Writer, p paper.Page, v *Values) error {
	err := v.check(0, false)
	if len(v.Series) > len(palette) {
		err = fmt.Errorf("%d series; there are colours for %d", len(v.Series), len(palette))
	}
	if err != nil {
		return fmt.Errorf("bars: %w", err)
	}
	var legend []paper.Entry
	top, note := 0.0, ""
	for i, s := range v.Series {
		if s.Name != "" {
			legend = append(legend, paper.Entry{Name: s.Name, Colour: palette[i]})
		}
		for _, p := range s.Points {
			top = max(top, p.High)
		}
	}
	if v.Interval != "" {
		note = "line: " + v.Interval
	}
	of, err := v.page(p, valuesLeft, note, legend)
	if err != nil {
		return err
	}
	x := of.labelAxis(v)
	return of.render(w, of.tall(), func(f *paper.Frame) {
		f.Lower, f.Left = x, v.Quantity.axis(top, f.Ticks(6))
		f.DrawYGrid()
		for i := range v.Series {
			v.drawBarSeries(f, i)
		}
	})
}

// labelAxis has a stretch of length 1 for each label, which stands in the middle. If one of them is wider than that, all
// are turned.
func (of *valuesPage) labelAxis(v *Values) paper.Axis {
	a := paper.Axis{Min: 0, Max: float64(len(v.Labels)), Label: v.XLabel}
	style, each := of.Face.Style(paper.TickSize, paper.Ink, text.XCenter, text.YTop), (of.Wide-of.left-3*paper.Margin)/vg.Length(len(v.Labels))
	longest := paper.Widest(style, v.Labels)
	if a.Turned = longest > each-4; a.Turned {
		longest = min(longest, (paper.Margin+of.left+each/2)/vg.Length(math.Sqrt(1-paper.TurnedSlope*paper.TurnedSlope))) // else the first one begins outside the page
		of.drop += vg.Length(longest*paper.TurnedSlope) - paper.LabelDrop/3
	}
	for i, name := range v.Labels {
		a.Ticks = append(a.Ticks, plot.Tick{Value: float64(i) + 0.5, Label: paper.Clip(style, name, longest)})
	}
	a.Drop = of.drop - paper.AxisBottom + paper.LabelDrop
	return a
}

// drawBarSeries paints the bars of one colour, and their intervals.
func (v *Values) drawBarSeries(f *paper.Frame, number int) {
	n := len(v.Series)
	group := (f.Box.Max.X - f.Box.Min.X) / vg.Length(len(v.Labels))
	width := min(maxBar, vg.Length(groupFilled*group)/vg.Length(n))
	for _, p := range v.Series[number].Points {
		middle := f.X(float64(slices.Index(v.Labels, p.Label))+0.5) + vg.Length(width*(vg.Length(number)-vg.Length(n-1)/2))
		half := vg.Length(barFilled * width / 2)
		paper.FillRect(f.Canvas, vg.Rectangle{Min: vg.Point{X: middle - half, Y: f.Box.Min.Y}, Max: vg.Point{X: middle + half, Y: f.Y(p.Y)}}, palette[number])
		if p.High > p.Low {
			drawInterval(f, middle, p.Low, p.High, half/2)
		}
	}
}

// drawInterval paints a line with ends over a bar.
func drawInterval(f *paper.Frame, x vg.Length, low, high float64, half vg.Length) {
	for _, v := range []float64{low, high} {
		paper.Line(f.Canvas, paper.Ink, 0.9, vg.Point{X: x - half, Y: f.Y(v)}, vg.Point{X: x + half, Y: f.Y(v)})
	}
	paper.Line(f.Canvas, paper.Ink, 0.9, vg.Point{X: x, Y: f.Y(low)}, vg.Point{X: x, Y: f.Y(high)})
}
