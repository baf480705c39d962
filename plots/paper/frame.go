package paper

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"sort"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Axis maps an interval of values to a side of a frame.
type Axis struct {
	Min, Max float64
	Log      bool
	Label    string
	Ticks    []plot.Tick // an empty label is a grid line without text
	Turned   bool        // labels of a lower axis run up to their ticks
	Drop     vg.Length   // of the label of a lower axis; 0 means LabelDrop
}

// LinearAxis runs from 0 to max plus headroom, a share of it. It has about the given number of
// round ticks, labelled in a unit.
func LinearAxis(max, headroom float64, u Unit, what string, ticks int) Axis {
	top := max * (1 + headroom) / u.Size
	if !(top > 0) || math.IsInf(top, 0) {
		top = 1
	}
	a := Axis{Min: 0, Max: top * u.Size, Label: what + " (" + u.Name + ")"}
	step := roundStep(top / float64(ticks))
	digits := 0
	if step < 1 {
		digits = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	for k := 0; float64(k)*step <= top*(1+1e-9); k++ {
		v := float64(k) * step
		a.Ticks = append(a.Ticks, plot.Tick{Value: v * u.Size, Label: fmt.Sprintf("%.*f", digits, v)})
	}
	return a
}

// roundStep is the smallest of 1, 2 and 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// LogAxis covers a positive interval with ticks at 1, 2 and 5 times the powers of
// ten, and more of them within one decade.
func LogAxis(min, max float64, u Unit, what string) Axis {
	a := Axis{Min: min, Max: max, Log: true, Label: what + " (" + u.Name + ")"}
	decades := math.Log10(max / min)
	steps := []float64{1, 2, 5}
	if decades < 1 {
		steps = []float64{1, 1.5, 2, 3, 4, 5, 6, 8}
	}
	for e := math.Floor(math.Log10(min / u.Size)); e <= math.Ceil(math.Log10(max/u.Size)); e++ {
		for _, m := range steps {
			v := m * math.Pow(10, e)
			if v*u.Size < min*(1-1e-9) || v*u.Size > max*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v * u.Size}
			if m == 1 || decades < 2.5 {
				t.Label = fmt.Sprintf("%.12g", v)
			}
			a.Ticks = append(a.Ticks, t)
		}
	}
	return a
}

// at is the position of a value as a share of the axis.
func (a *Axis) at(v float64) float64 {
	if a.Log {
		return math.Log(v/a.Min) / math.Log(a.Max/a.Min)
	}
	return (v - a.Min) / (a.Max - a.Min)
}

// Frame is a rectangle of a page with two axes.
type Frame struct {
	Canvas      draw.Canvas
	Face        Typeface
	Box         vg.Rectangle // where the data is drawn
	Lower, Left Axis
}

// TimeFrame is a frame whose lower axis is the time from 0 to end, from a distance to the left edge
// of a page up to its right margin. The axis is named by what it counts.
func (l *Layout) TimeFrame(c draw.Canvas, left vg.Length, end time.Duration, what string) *Frame {
	f := &Frame{Canvas: c, Face: l.Face, Lower: LinearAxis(float64(end), 0, TimeUnit(end), what, l.ticks())}
	f.Box.Min.X, f.Box.Max.X = c.Min.X+left, c.Max.X-Margin-6
	return f
}

// Place moves the frame to a height and below it.
func (f *Frame) Place(top, tall vg.Length) { f.Box.Max.Y, f.Box.Min.Y = top, top-tall }

// Ticks is about how many ticks the left axis has room for, up to a most.
func (f *Frame) Ticks(most int) int {
	return max(2, min(most, int((f.Box.Max.Y-f.Box.Min.Y)/24)))
}

// X is where a value of the lower axis lies.
func (f *Frame) X(v float64) vg.Length {
	return f.Box.Min.X + vg.Length(vg.Length(f.Lower.at(v))*(f.Box.Max.X-f.Box.Min.X))
}

// Y is where a value of the left axis lies.
func (f *Frame) Y(v float64) vg.Length {
	return f.Box.Min.Y + vg.Length(vg.Length(f.Left.at(v))*(f.Box.Max.Y-f.Box.Min.Y))
}

// DrawGrid paints the lines behind the data at the ticks of both axes.
func (f *Frame) DrawGrid() {
	f.DrawXGrid()
	f.DrawYGrid()
}

// DrawYGrid paints the level lines of the grid.
func (f *Frame) DrawYGrid() {
	for _, t := range f.Left.Ticks {
		y := f.Y(t.Value)
		Line(f.Canvas, gridLine, 0.5, vg.Point{X: f.Box.Min.X, Y: y}, vg.Point{X: f.Box.Max.X, Y: y})
	}
}

// DrawXGrid paints the upright lines of the grid.
func (f *Frame) DrawXGrid() {
	for _, t := range f.Lower.Ticks {
		x := f.X(t.Value)
		Line(f.Canvas, gridLine, 0.5, vg.Point{X: x, Y: f.Box.Min.Y}, vg.Point{X: x, Y: f.Box.Max.Y})
	}
}

// Distances of labels from the axes, in points.
const (
	TickSize      = 8.5
	LabelSize     = 9.5
	tickGap       = 4
	LabelDrop     = 17
	AxisBottom    = 32   // height of an x axis with its label below the box
	AxisBottomBar = 17   // height without the label
	TurnedSlope   = 0.64 // the sine of the angle of turned labels
)

// DrawX paints the lower axis, its ticks and, if label is set, its label.
func (f *Frame) DrawX(label bool) {
	Line(f.Canvas, Ink, 0.6, f.Box.Min, vg.Point{X: f.Box.Max.X, Y: f.Box.Min.Y})
	style := f.Face.Style(TickSize, Ink, text.XCenter, text.YTop)
	if f.Lower.Turned {
		style = f.Face.Style(TickSize, Ink, text.XRight, text.YCenter)
		style.Rotation = math.Asin(TurnedSlope)
	}
	free := f.Canvas.Min.X // to the right of the last label
	for _, t := range f.Lower.Ticks {
		x := f.X(t.Value)
		Line(f.Canvas, Ink, 0.6, vg.Point{X: x, Y: f.Box.Min.Y}, vg.Point{X: x, Y: f.Box.Min.Y - 3})
		if half := style.Width(t.Label) / 2; t.Label != "" && (f.Lower.Turned || x-half >= free) {
			f.Canvas.FillText(style, vg.Point{X: x, Y: f.Box.Min.Y - tickGap}, t.Label)
			free = x + half + 3
		}
	}
	if label {
		at := vg.Point{X: (f.Box.Min.X + f.Box.Max.X) / 2, Y: f.Box.Min.Y - cmp.Or(f.Lower.Drop, LabelDrop)}
		f.Canvas.FillText(f.Face.Style(LabelSize, Ink, text.XCenter, text.YTop), at, f.Lower.Label)
	}
}

// DrawY paints the left axis, its ticks and its label at a distance to the left.
func (f *Frame) DrawY(labelDistance vg.Length) {
	Line(f.Canvas, Ink, 0.6, f.Box.Min, vg.Point{X: f.Box.Min.X, Y: f.Box.Max.Y})
	style := f.Face.Style(TickSize, Ink, text.XRight, text.YCenter)
	for _, t := range f.Left.Ticks {
		y := f.Y(t.Value)
		Line(f.Canvas, Ink, 0.6, vg.Point{X: f.Box.Min.X, Y: y}, vg.Point{X: f.Box.Min.X - 3, Y: y})
		f.Canvas.FillText(style, vg.Point{X: f.Box.Min.X - tickGap - 1, Y: y}, t.Label)
	}
	turned := f.Face.Style(LabelSize, Ink, text.XCenter, text.YBottom)
	turned.Rotation = math.Pi / 2
	f.Canvas.FillText(turned, vg.Point{X: f.Box.Min.X - labelDistance, Y: (f.Box.Min.Y + f.Box.Max.Y) / 2}, f.Left.Label)
}

// Clip shortens a text with dots until it fits the width; it returns "" where
// fewer than three characters would remain.
func Clip(style draw.TextStyle, s string, width vg.Length) string {
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	// The longest prefix that fits with the dots is one shorter than the first too wide one.
	n := sort.Search(len(runes), func(n int) bool { return style.Width(string(runes[:n+1])+"...") > width })
	if n < 3 {
		return ""
	}
	return strings.TrimRight(string(runes[:n]), ".") + "..."
}

// Stairs is the outline of a step function: value v[k] from times[k] to times[k+1].
func (f *Frame) Stairs(times []time.Duration, v []float64) []vg.Point {
	var pts []vg.Point
	for k := range v {
		y := f.Y(v[k])
		if k == 0 || y != pts[len(pts)-1].Y {
			x := f.X(float64(times[k]))
			if k > 0 {
				pts = append(pts, vg.Point{X: x, Y: pts[len(pts)-1].Y})
			}
			pts = append(pts, vg.Point{X: x, Y: y})
		}
	}
	return append(pts, vg.Point{X: f.X(float64(times[len(v)])), Y: pts[len(pts)-1].Y})
}

// Polyline is the outline of a function given at each of the times.
func (f *Frame) Polyline(times []time.Duration, v []float64) []vg.Point {
	pts := make([]vg.Point, len(v))
	for k := range v {
		pts[k] = vg.Point{X: f.X(float64(times[k])), Y: f.Y(v[k])}
	}
	return pts
}

// FillBetween paints the area between two outlines.
func (f *Frame) FillBetween(upper, lower []vg.Point, fill color.RGBA) {
	var path vg.Path
	path.Move(upper[0])
	for _, p := range upper[1:] {
		path.Line(p)
	}
	for i := len(lower) - 1; i >= 0; i-- {
		path.Line(lower[i])
	}
	path.Close()
	f.Canvas.SetColor(fill)
	f.Canvas.Fill(path)
}
