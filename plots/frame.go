package plots

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// axis maps an interval of values to a side of a frame.
type axis struct {
	min, max float64
	log      bool
	label    string
	ticks    []plot.Tick // an empty label is a grid line without text
	turned   bool        // labels of a lower axis run up to their ticks
	drop     vg.Length   // of the label of a lower axis; 0 means xLabelDrop
}

// linearAxis runs from 0 to max plus headroom, a share of it. It has about the given number of
// round ticks, labelled in a unit.
func linearAxis(max, headroom float64, u unit, what string, ticks int) axis {
	top := max * (1 + headroom) / u.size
	if !(top > 0) || math.IsInf(top, 0) {
		top = 1
	}
	a := axis{min: 0, max: top * u.size, label: what + " (" + u.name + ")"}
	step := roundStep(top / float64(ticks))
	digits := 0
	if step < 1 {
		digits = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	for k := 0; float64(k)*step <= top*(1+1e-9); k++ {
		v := float64(k) * step
		a.ticks = append(a.ticks, plot.Tick{Value: v * u.size, Label: fmt.Sprintf("%.*f", digits, v)})
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

// logAxis covers a positive interval with ticks at 1, 2 and 5 times the powers of
// ten, and more of them within one decade.
func logAxis(min, max float64, u unit, what string) axis {
	a := axis{min: min, max: max, log: true, label: what + " (" + u.name + ")"}
	decades := math.Log10(max / min)
	steps := []float64{1, 2, 5}
	if decades < 1 {
		steps = []float64{1, 1.5, 2, 3, 4, 5, 6, 8}
	}
	for e := math.Floor(math.Log10(min / u.size)); e <= math.Ceil(math.Log10(max/u.size)); e++ {
		for _, m := range steps {
			v := m * math.Pow(10, e)
			if v*u.size < min*(1-1e-9) || v*u.size > max*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v * u.size}
			if m == 1 || decades < 2.5 {
				t.Label = fmt.Sprintf("%.12g", v)
			}
			a.ticks = append(a.ticks, t)
		}
	}
	return a
}

// at is the position of a value as a share of the axis.
func (a *axis) at(v float64) float64 {
	if a.log {
		return math.Log(v/a.min) / math.Log(a.max/a.min)
	}
	return (v - a.min) / (a.max - a.min)
}

// frame is a rectangle of a page with two axes.
type frame struct {
	c    draw.Canvas
	face typeface
	box  vg.Rectangle // where the data is drawn
	x, y axis
}

// timeFrame is a frame whose lower axis is the time from 0 to end, from a distance to the left edge
// of a page up to its right margin. The axis is named by what it counts.
func (l *layout) timeFrame(c draw.Canvas, left vg.Length, end time.Duration, what string) *frame {
	f := &frame{c: c, face: l.face, x: linearAxis(float64(end), 0, timeUnit(end), what, l.ticks())}
	f.box.Min.X, f.box.Max.X = c.Min.X+left, c.Max.X-pageMargin-6
	return f
}

// place moves the frame to a height and below it.
func (f *frame) place(top, tall vg.Length) { f.box.Max.Y, f.box.Min.Y = top, top-tall }

// ticks is about how many ticks the left axis has room for, up to a most.
func (f *frame) ticks(most int) int {
	return max(2, min(most, int((f.box.Max.Y-f.box.Min.Y)/24)))
}

func (f *frame) X(v float64) vg.Length {
	return f.box.Min.X + vg.Length(vg.Length(f.x.at(v))*(f.box.Max.X-f.box.Min.X))
}

func (f *frame) Y(v float64) vg.Length {
	return f.box.Min.Y + vg.Length(vg.Length(f.y.at(v))*(f.box.Max.Y-f.box.Min.Y))
}

// drawGrid paints the lines behind the data at the ticks of both axes.
func (f *frame) drawGrid() {
	f.drawXGrid()
	f.drawYGrid()
}

func (f *frame) drawYGrid() {
	for _, t := range f.y.ticks {
		y := f.Y(t.Value)
		line(f.c, gridLine, 0.5, vg.Point{X: f.box.Min.X, Y: y}, vg.Point{X: f.box.Max.X, Y: y})
	}
}

func (f *frame) drawXGrid() {
	for _, t := range f.x.ticks {
		x := f.X(t.Value)
		line(f.c, gridLine, 0.5, vg.Point{X: x, Y: f.box.Min.Y}, vg.Point{X: x, Y: f.box.Max.Y})
	}
}

// Distances of labels from the axes, in points.
const (
	tickSize      = 8.5
	labelSize     = 9.5
	tickGap       = 4
	xLabelDrop    = 17
	axisBottom    = 32   // height of an x axis with its label below the box
	axisBottomBar = 17   // height without the label
	turnedSlope   = 0.64 // the sine of the angle of turned labels
)

// drawX paints the lower axis, its ticks and, if label is set, its label.
func (f *frame) drawX(label bool) {
	line(f.c, ink, 0.6, f.box.Min, vg.Point{X: f.box.Max.X, Y: f.box.Min.Y})
	style := f.face.style(tickSize, ink, text.XCenter, text.YTop)
	if f.x.turned {
		style = f.face.style(tickSize, ink, text.XRight, text.YCenter)
		style.Rotation = math.Asin(turnedSlope)
	}
	free := f.c.Min.X // to the right of the last label
	for _, t := range f.x.ticks {
		x := f.X(t.Value)
		line(f.c, ink, 0.6, vg.Point{X: x, Y: f.box.Min.Y}, vg.Point{X: x, Y: f.box.Min.Y - 3})
		if half := style.Width(t.Label) / 2; t.Label != "" && (f.x.turned || x-half >= free) {
			f.c.FillText(style, vg.Point{X: x, Y: f.box.Min.Y - tickGap}, t.Label)
			free = x + half + 3
		}
	}
	if label {
		at := vg.Point{X: (f.box.Min.X + f.box.Max.X) / 2, Y: f.box.Min.Y - cmp.Or(f.x.drop, xLabelDrop)}
		f.c.FillText(f.face.style(labelSize, ink, text.XCenter, text.YTop), at, f.x.label)
	}
}

// drawY paints the left axis, its ticks and its label at a distance to the left.
func (f *frame) drawY(labelDistance vg.Length) {
	line(f.c, ink, 0.6, f.box.Min, vg.Point{X: f.box.Min.X, Y: f.box.Max.Y})
	style := f.face.style(tickSize, ink, text.XRight, text.YCenter)
	for _, t := range f.y.ticks {
		y := f.Y(t.Value)
		line(f.c, ink, 0.6, vg.Point{X: f.box.Min.X, Y: y}, vg.Point{X: f.box.Min.X - 3, Y: y})
		f.c.FillText(style, vg.Point{X: f.box.Min.X - tickGap - 1, Y: y}, t.Label)
	}
	turned := f.face.style(labelSize, ink, text.XCenter, text.YBottom)
	turned.Rotation = math.Pi / 2
	f.c.FillText(turned, vg.Point{X: f.box.Min.X - labelDistance, Y: (f.box.Min.Y + f.box.Max.Y) / 2}, f.y.label)
}

// clip shortens a text with dots until it fits the width; it returns "" where
// fewer than three characters would remain.
func clip(style draw.TextStyle, s string, width vg.Length) string {
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
