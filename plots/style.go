package plots

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
	white       = color.RGBA{255, 255, 255, 255}
	ink         = color.RGBA{34, 34, 34, 255}    // text, axes
	faintInk    = color.RGBA{102, 102, 102, 255} // second-rank text
	gridLine    = color.RGBA{225, 225, 225, 255}
	pathBlack   = color.RGBA{0, 0, 0, 255}
	otherGrey   = color.RGBA{153, 153, 153, 255}
	moveGrey    = color.RGBA{85, 85, 85, 255}    // transfers
	moveLight   = color.RGBA{155, 155, 155, 255} // the same on dark paper
	roomBrown   = color.RGBA{150, 40, 10, 255}   // transfers for lack of memory
	roomLight   = color.RGBA{190, 70, 45, 255}   // the same on dark paper
	reservedRed = color.RGBA{190, 60, 0, 255}    // the planned peak
)

// tint is a colour behind workers that do nothing, on white paper and on the dark paper of a report.
// On both it is further from the ink of the paper than any colour of a task: a test measures how far.
type tint struct{ light, dark color.RGBA }

// The tints of idle workers, by explain.IdleCause, and the tint of sleep.
var (
	idleTints = [...]tint{
		{color.RGBA{236, 236, 236, 255}, color.RGBA{44, 46, 50, 255}}, // dependence: grey
		{color.RGBA{255, 208, 192, 255}, color.RGBA{78, 34, 28, 255}}, // transfer: vermilion
		{color.RGBA{255, 246, 190, 255}, color.RGBA{66, 56, 8, 255}},  // dispatch: yellow
		{color.RGBA{250, 250, 250, 255}, color.RGBA{29, 31, 35, 255}}, // no work left: almost the paper
		changeTint,
	}
	changeTint = tint{color.RGBA{230, 210, 246, 255}, color.RGBA{62, 36, 84, 255}} // of state: lilac
	sleepTint  = tint{color.RGBA{190, 232, 238, 255}, color.RGBA{10, 56, 66, 255}}
)

// palette is the seven colours of Okabe and Ito (Color Universal Design, 2008) without black, then five
// relatives of them. Their yellow is a little darker here, since light tints are next to it.
var palette = [...]color.RGBA{
	{0, 114, 178, 255},   // blue
	{230, 159, 0, 255},   // orange
	{0, 158, 115, 255},   // bluish green
	{204, 121, 167, 255}, // reddish purple
	{86, 180, 233, 255},  // sky blue
	{213, 94, 0, 255},    // vermilion
	{224, 214, 52, 255},  // yellow
	{92, 78, 172, 255},   // indigo
	{150, 48, 104, 255},  // wine
	{150, 198, 150, 255}, // pale green
	{128, 90, 40, 255},   // brown
	{175, 175, 230, 255}, // pale indigo
}

// onColour is the ink that is easiest to read on a fill. Black or white has a contrast of at least 4.5 on any colour, by the
// accessibility guidelines (WCAG 2).
func onColour(c color.RGBA) color.RGBA {
	const equal = 0.179 // the luminance on which black and white have equal contrasts: sqrt(1.05*0.05) - 0.05
	if luminance(c) > equal {
		return pathBlack
	}
	return white
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

// lighten mixes a colour with white.
func lighten(c color.RGBA, share float64) color.RGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(float64(v) + float64((255-float64(v))*share))) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}

// darken halves a colour.
func darken(c color.RGBA) color.RGBA { return color.RGBA{c.R / 2, c.G / 2, c.B / 2, 255} }

// typeface measures and draws all text of a page. PDF output keeps its fonts in a map, so one
// face per page also keeps its bytes in one order.
type typeface struct{ handler text.Handler }

func newTypeface() typeface {
	return typeface{text.Plain{Fonts: font.NewCache(liberation.Collection())}}
}

func (f typeface) style(points float64, c color.Color, x text.XAlignment, y text.YAlignment) draw.TextStyle {
	return draw.TextStyle{Color: c, Handler: f.handler, XAlign: x, YAlign: y,
		Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(points))}
}

// fillRect paints a rectangle.
func fillRect(c draw.Canvas, r vg.Rectangle, fill color.Color) {
	c.SetColor(fill)
	c.Fill(r.Path())
}

// hatch is a pattern of parallel lines.
type hatch uint8

const (
	plain   hatch = iota
	ticks         // upright, close together
	upright       // and further apart
	falling
	rising
)

// maxHatchLines bounds the lines of one hatch in one chart, and with them the size of a file.
const maxHatchLines = 4000

// spacing is how far apart the lines are in rectangles, as addRect makes them.
func (h hatch) spacing(rects vg.Path) vg.Length {
	apart, length := vg.Length(4), vg.Length(0)
	if h == ticks {
		apart = 2.5
	}
	for i := 0; i < len(rects); i += 5 {
		length += rects[i+2].Pos.X - rects[i].Pos.X
		if h > upright {
			length += rects[i+2].Pos.Y - rects[i].Pos.Y
		}
	}
	return max(apart, length/maxHatchLines)
}

// lines are the lines of a hatch inside a rectangle. They go on in neighbouring ones.
func (h hatch) lines(path *vg.Path, r vg.Rectangle, apart vg.Length) {
	slope := [...]vg.Length{plain: 0, ticks: 0, upright: 0, falling: -1, rising: 1}[h]
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

// fillHatched paints rectangles, as addRect makes them, with a fill and a hatch over it.
func fillHatched(c draw.Canvas, rects vg.Path, fill color.Color, h hatch) {
	c.SetColor(fill)
	c.Fill(rects)
	if h == plain {
		return
	}
	var lines vg.Path
	apart := h.spacing(rects)
	for ; len(rects) > 0; rects = rects[5:] {
		h.lines(&lines, vg.Rectangle{Min: rects[0].Pos, Max: rects[2].Pos}, apart)
	}
	if len(lines) > 0 {
		c.SetLineStyle(draw.LineStyle{Color: faintInk, Width: 0.6})
		c.Stroke(lines)
	}
}

// line strokes a straight line.
func line(c draw.Canvas, col color.Color, width float64, from, to vg.Point, dashes ...vg.Length) {
	c.StrokeLines(draw.LineStyle{Color: col, Width: vg.Points(width), Dashes: dashes}, []vg.Point{from, to})
}

// unit is a decimal multiple of a base unit.
type unit struct {
	name string
	size float64 // in base units
}

// unitOf is the largest of the units that a value reaches, or the last one.
func unitOf(v float64, units ...unit) unit {
	for _, u := range units {
		if v >= u.size {
			return u
		}
	}
	return units[len(units)-1]
}

// timeUnit is the unit, in nanoseconds, in which a span of time is easiest to read.
func timeUnit(d time.Duration) unit {
	return unitOf(float64(d), unit{"s", 1e9}, unit{"ms", 1e6}, unit{"us", 1e3}, unit{"ns", 1})
}

func byteUnit(bytes float64) unit {
	return unitOf(bytes, unit{"GB", 1e9}, unit{"MB", 1e6}, unit{"kB", 1e3}, unit{"B", 1})
}

// siUnit is the multiple of a watt or joule in which a value is easiest to read.
func siUnit(name string, v float64) unit {
	if v == 0 {
		return unit{name, 1}
	}
	return unitOf(v, unit{"k" + name, 1e3}, unit{name, 1}, unit{"m" + name, 1e-3}, unit{"u" + name, 1e-6})
}

// format writes a quantity with three significant digits and its unit.
func (u unit) format(v float64) string {
	return significant(v/u.size) + " " + u.name
}

func formatDuration(d time.Duration) string { return timeUnit(d).format(float64(d)) }
func formatBytes(b int64) string            { return byteUnit(float64(b)).format(float64(b)) }

// significant writes three significant digits without an exponent.
func significant(v float64) string {
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
