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

// Bars is a figure of one quantity in groups of bars: a group for each value of an axis, in it a bar
// for each series.
type Bars struct {
	Title, Summary string
	XLabel         string
	Y              Quantity
	Groups         []string
	Series         []BarSeries
	Interval       string // what the lines at bars are; empty: there are none
}

// BarSeries is the bars of one colour.
type BarSeries struct {
	Name string // empty: there is only one series, without a legend
	Bars []Bar  // one for each group
}

// Bar is a value and the interval of its repetitions. Y is NaN where there is none; Low and High equal
// it where there is no interval.
type Bar struct{ Y, Low, High float64 }

// Sizes of the page of bars, in points.
const (
	barsHeight  = 420
	barsLeft    = 64   // for the y axis and its label
	groupFilled = 0.8  // of the width of a group
	barFilled   = 0.92 // of the width of a bar
	maxBar      = 46   // the widest
)

// DrawBars writes the figure in one of [Formats]. An error wraps ErrNoData where there is no bar.
func DrawBars(w io.Writer, format string, b *Bars) error {
	if err := b.check(); err != nil {
		return fmt.Errorf("bars: %w", err)
	}
	return render(w, format, pageWidth, barsHeight, b.draw)
}

func (b *Bars) check() error {
	if len(b.Series) > len(palette) {
		return fmt.Errorf("%d series; there are colours for %d", len(b.Series), len(palette))
	}
	some := false
	for _, s := range b.Series {
		if len(s.Bars) != len(b.Groups) {
			return fmt.Errorf("series %q has %d bars for %d groups", s.Name, len(s.Bars), len(b.Groups))
		}
		for i, x := range s.Bars {
			if math.IsNaN(x.Y) {
				continue
			}
			if some = true; !(x.Low >= 0 && x.Low <= x.Y && x.Y <= x.High) || math.IsInf(x.High, 0) {
				return fmt.Errorf("series %q: bar %q is %g in [%g, %g]", s.Name, b.Groups[i], x.Y, x.Low, x.High)
			}
		}
	}
	if !some {
		return ErrNoData
	}
	return nil
}

func (b *Bars) draw(page draw.Canvas) {
	face := newTypeface()
	below := drawHeader(page, face, b.Title, b.Summary)
	var groups []legendGroup
	if entries := b.legend(); entries != nil {
		groups = []legendGroup{{entries: entries}}
	}
	bottom := below.Min.Y + pageMargin + legendHeight(face, groups, below.Max.X-below.Min.X-barsLeft-3*pageMargin) + legendLine
	f := &frame{c: below, face: face, box: vg.Rectangle{
		Min: vg.Point{X: below.Min.X + pageMargin + barsLeft, Y: bottom + axisBottom},
		Max: vg.Point{X: below.Max.X - 2*pageMargin, Y: below.Max.Y},
	}}
	top := 0.0
	for _, s := range b.Series {
		for _, x := range s.Bars {
			if !math.IsNaN(x.Y) {
				top = max(top, x.High)
			}
		}
	}
	f.x, f.y = groupAxis(f, b.Groups, b.XLabel), b.Y.axis(top)
	for _, t := range f.y.ticks {
		line(f.c, gridLine, 0.5, vg.Point{X: f.box.Min.X, Y: f.Y(t.Value)}, vg.Point{X: f.box.Max.X, Y: f.Y(t.Value)})
	}
	for i := range b.Series {
		b.drawSeries(f, i)
	}
	f.drawX(true)
	f.drawY(barsLeft - 24)
	if b.Interval != "" {
		below.FillText(face.style(8.5, faintInk, text.XRight, text.YCenter), vg.Point{X: f.box.Max.X, Y: below.Min.Y + pageMargin + legendLine/2}, "line: "+b.Interval)
	}
	drawLegend(below, face, groups, f.box.Min.X, f.box.Max.X, bottom)
}

// legend names the series, where there are several.
func (b *Bars) legend() (entries []legendEntry) {
	for i, s := range b.Series {
		if s.Name != "" {
			entries = append(entries, legendEntry{name: s.Name, colour: palette[i]})
		}
	}
	return entries
}

// groupAxis has a stretch of length 1 for each group, with its name in the middle.
func groupAxis(f *frame, groups []string, label string) axis {
	a := axis{min: 0, max: float64(len(groups)), label: label}
	style := f.face.style(tickSize, ink, text.XCenter, text.YTop)
	for i, name := range groups {
		a.ticks = append(a.ticks, plot.Tick{Value: float64(i) + 0.5, Label: clip(style, name, (f.box.Max.X-f.box.Min.X)/vg.Length(len(groups))-4)})
	}
	return a
}

// drawSeries paints the bars of one colour, and their intervals.
func (b *Bars) drawSeries(f *frame, number int) {
	n := len(b.Series)
	group := (f.box.Max.X - f.box.Min.X) / vg.Length(len(b.Groups))
	width := min(maxBar, vg.Length(groupFilled*group)/vg.Length(n))
	for i, x := range b.Series[number].Bars {
		if math.IsNaN(x.Y) {
			continue
		}
		middle := f.X(float64(i)+0.5) + vg.Length(width*(vg.Length(number)-vg.Length(n-1)/2))
		half := vg.Length(barFilled * width / 2)
		fillRect(f.c, vg.Rectangle{Min: vg.Point{X: middle - half, Y: f.box.Min.Y}, Max: vg.Point{X: middle + half, Y: f.Y(x.Y)}}, palette[number])
		if x.High > x.Low {
			drawInterval(f, middle, x.Low, x.High, half/2)
		}
	}
}

// drawInterval paints a line with ends over a bar.
func drawInterval(f *frame, x vg.Length, low, high float64, half vg.Length) {
	for _, v := range []float64{low, high} {
		line(f.c, ink, 0.9, vg.Point{X: x - half, Y: f.Y(v)}, vg.Point{X: x + half, Y: f.Y(v)})
	}
	line(f.c, ink, 0.9, vg.Point{X: x, Y: f.Y(low)}, vg.Point{X: x, Y: f.Y(high)})
}
