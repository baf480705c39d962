package paper

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"time"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The neutral colours. No colour has an alpha channel: PDF viewers and SVG
// renderers blend differently.
var (
	White    = color.RGBA{255, 255, 255, 255}
	Ink      = color.RGBA{34, 34, 34, 255}    // text, axes
	FaintInk = color.RGBA{102, 102, 102, 255} // second-rank text
	gridLine = color.RGBA{225, 225, 225, 255}
	Black    = color.RGBA{0, 0, 0, 255}
)

// OnColour is the ink that is easiest to read on a fill. Black or white has a contrast of at least 4.5 on any colour, by the
// accessibility guidelines (WCAG 2).
func OnColour(c color.RGBA) color.RGBA {
	const equal = 0.179 // the luminance on which black and white have equal contrasts: sqrt(1.05*0.05) - 0.05
	if luminance(c) > equal {
		return Black
	}
	return White
}

// luminance is the brightness of a colour, from 0 of black to 1 of white, as these guidelines compute it.
func luminance(c color.RGBA) float64 {
	linear := func(v uint8) float64 {
		if s := float64(v) / 255; s > 0.04045 {
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	return float64(0.2126*linear(c.R)) + float64(0.7152*linear(c.G)) + float64(0.0722*linear(c.B))
}

// Lighten mixes a colour with white.
func Lighten(c color.RGBA, share float64) color.RGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(float64(v) + float64((255-float64(v))*share))) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}

// Darken halves a colour.
func Darken(c color.RGBA) color.RGBA { return color.RGBA{c.R / 2, c.G / 2, c.B / 2, 255} }

// Typeface measures and draws all text of a page. PDF output keeps its fonts in a map, so one
// face per page also keeps its bytes in one order.
type Typeface struct{ handler text.Handler }

// NewTypeface is Liberation Sans.
func NewTypeface() Typeface {
	return Typeface{text.Plain{Fonts: font.NewCache(liberation.Collection())}}
}

// Style is a size, a colour and an alignment of text.
func (f Typeface) Style(points float64, c color.Color, x text.XAlignment, y text.YAlignment) draw.TextStyle {
	return draw.TextStyle{Color: c, Handler: f.handler, XAlign: x, YAlign: y,
		Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(points))}
}

// FillRect paints a rectangle.
func FillRect(c draw.Canvas, r vg.Rectangle, fill color.Color) {
	c.SetColor(fill)
	c.Fill(r.Path())
}

// Hatch is a pattern of parallel lines.
type Hatch uint8

// The patterns, and none.
const (
	Plain   Hatch = iota
	Ticks         // upright, close together
	Upright       // and further apart
	Falling
	Rising
)

// maxHatchLines bounds the lines of one hatch in one chart, and with them the size of a file.
const maxHatchLines = 4000

// spacing is how far apart the lines are in rectangles of five components each, the third of them at the corner opposite to the first.
func (h Hatch) spacing(rects vg.Path) vg.Length {
	apart, length := vg.Length(4), vg.Length(0)
	if h == Ticks {
		apart = 2.5
	}
	for i := 0; i < len(rects); i += 5 {
		length += rects[i+2].Pos.X - rects[i].Pos.X
		if h > Upright {
			length += rects[i+2].Pos.Y - rects[i].Pos.Y
		}
	}
	return max(apart, length/maxHatchLines)
}

// lines are the lines of a hatch inside a rectangle. They go on in neighbouring ones.
func (h Hatch) lines(path *vg.Path, r vg.Rectangle, apart vg.Length) {
	slope := [...]vg.Length{Plain: 0, Ticks: 0, Upright: 0, Falling: -1, Rising: 1}[h]
	low, high := vg.Length(slope*r.Min.Y), vg.Length(slope*r.Max.Y)
	for k := math.Ceil(float64((r.Min.X - max(low, high)) / apart)); ; k++ {
		x := vg.Length(vg.Length(k) * apart) // where the line has height 0
		if x+min(low, high) >= r.Max.X {
			return
		}
		from, to := r.Min.Y, r.Max.Y
		if slope != 0 {
			left, right := (r.Min.X-x)/slope, (r.Max.X-x)/slope
			from, to = max(from, min(left, right)), min(to, max(left, right))
		}
		path.Move(vg.Point{X: x + vg.Length(slope*from), Y: from})
		path.Line(vg.Point{X: x + vg.Length(slope*to), Y: to})
	}
}

// FillHatched paints rectangles of five components each with a fill and a hatch over it.
func FillHatched(c draw.Canvas, rects vg.Path, fill color.Color, h Hatch) {
	c.SetColor(fill)
	c.Fill(rects)
	if h == Plain {
		return
	}
	var lines vg.Path
	apart := h.spacing(rects)
	for ; len(rects) > 0; rects = rects[5:] {
		h.lines(&lines, vg.Rectangle{Min: rects[0].Pos, Max: rects[2].Pos}, apart)
	}
	if len(lines) > 0 {
		c.SetLineStyle(draw.LineStyle{Color: FaintInk, Width: 0.6})
		c.Stroke(lines)
	}
}

// Line strokes a straight line.
func Line(c draw.Canvas, col color.Color, width float64, from, to vg.Point, dashes ...vg.Length) {
	c.StrokeLines(draw.LineStyle{Color: col, Width: vg.Points(width), Dashes: dashes}, []vg.Point{from, to})
}

// Unit is a decimal multiple of a base unit.
type Unit struct {
	Name string
	Size float64 // in base units
}

// unitOf is the largest of the units that a value reaches, or the last one.
func unitOf(v float64, units ...Unit) Unit {
	for _, u := range units {
		if v >= u.Size {
			return u
		}
	}
	return units[len(units)-1]
}

// TimeUnit is the unit, in nanoseconds, in which a span of time is easiest to read.
func TimeUnit(d time.Duration) Unit {
	return unitOf(float64(d), Unit{"s", 1e9}, Unit{"ms", 1e6}, Unit{"us", 1e3}, Unit{"ns", 1})
}

// ByteUnit is the decimal unit in which a size is easiest to read.
func ByteUnit(bytes float64) Unit {
	return unitOf(bytes, Unit{"GB", 1e9}, Unit{"MB", 1e6}, Unit{"kB", 1e3}, Unit{"B", 1})
}

// SIUnit is the multiple of a watt or joule in which a value is easiest to read.
func SIUnit(name string, v float64) Unit {
	if v == 0 {
		return Unit{name, 1}
	}
	return unitOf(v, Unit{"k" + name, 1e3}, Unit{name, 1}, Unit{"m" + name, 1e-3}, Unit{"u" + name, 1e-6})
}

// Format writes a quantity with three significant digits and its unit.
func (u Unit) Format(v float64) string {
	return Significant(v/u.Size) + " " + u.Name
}

// FormatDuration writes a time with three significant digits.
func FormatDuration(d time.Duration) string { return TimeUnit(d).Format(float64(d)) }

// FormatBytes writes a size with three significant digits.
func FormatBytes(b int64) string { return ByteUnit(float64(b)).Format(float64(b)) }

// Significant writes three significant digits without an exponent.
func Significant(v float64) string {
	digits := 2
	if a := math.Abs(v); a >= 1 {
		digits = max(0, 2-int(math.Floor(math.Log10(a))))
	}
	s := fmt.Sprintf("%.*f", digits, v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
