package plots

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legendEntry is a swatch and its meaning.
type legendEntry struct {
	name   string
	colour color.RGBA
	stroke bool // a line instead of a filled box
	dashed bool
	hatch  hatch // over the box
	mark   mark  // in the place of the box, or on the line
	long   bool  // the name is a sentence, which is not cut
}

// mark is how a figure marks a point. Its legend draws the same.
type mark int

const (
	noMark     mark = iota
	faintMark       // a point among many
	dotMark         // one that counts
	chosenMark      // the one that was chosen
)

// draw paints the mark at a point.
func (m mark) draw(c draw.Canvas, at vg.Point, colour color.RGBA) {
	dot := func(radius vg.Length, shape draw.GlyphDrawer) {
		c.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: radius, Shape: shape}, at)
	}
	switch m {
	case faintMark:
		dot(1.8, draw.CircleGlyph{})
	case dotMark:
		dot(3, draw.CircleGlyph{})
	case chosenMark:
		dot(7, draw.RingGlyph{})
		dot(3, draw.CircleGlyph{})
	}
}

// legendGroup is a caption with entries. It begins on a new line.
type legendGroup struct {
	caption string
	entries []legendEntry
}

// Sizes of a legend, in points.
const (
	legendLine    = 15
	legendSwatch  = 14
	legendSpacing = 14
	legendName    = 190 // the longest name is cut to this
)

// legendHeight is the height of the lines that the groups need at a width.
func legendHeight(face typeface, groups []legendGroup, width vg.Length) vg.Length {
	lines := 0
	layoutLegend(face, groups, width, func(row int, _ vg.Length, _ legendEntry, _ string) { lines = max(lines, row+1) })
	return vg.Length(lines * legendLine)
}

// drawLegend paints the groups between two edges from a height down.
func drawLegend(c draw.Canvas, face typeface, groups []legendGroup, from, to, top vg.Length) {
	style := face.style(8.5, ink, text.XLeft, text.YCenter)
	caption := face.style(8.5, faintInk, text.XLeft, text.YCenter)
	layoutLegend(face, groups, to-from, func(row int, x vg.Length, e legendEntry, name string) {
		y := top - vg.Length(row*legendLine) - legendLine/2
		left := from + x
		if e == (legendEntry{}) {
			c.FillText(caption, vg.Point{X: left, Y: y}, name)
			return
		}
		swatch := vg.Rectangle{Min: vg.Point{X: left, Y: y - 4}, Max: vg.Point{X: left + legendSwatch, Y: y + 4}}
		switch {
		case e.stroke && e.dashed:
			line(c, e.colour, 1.5, vg.Point{X: left, Y: y}, vg.Point{X: left + legendSwatch, Y: y}, 3, 2)
		case e.stroke:
			line(c, e.colour, 2, vg.Point{X: left, Y: y}, vg.Point{X: left + legendSwatch, Y: y})
		case e.mark != noMark:
		default:
			fillHatched(c, swatch.Path(), e.colour, e.hatch)
			c.SetLineStyle(draw.LineStyle{Color: gridLine, Width: 0.5})
			c.Stroke(swatch.Path())
		}
		e.mark.draw(c, vg.Point{X: left + legendSwatch/2, Y: y}, e.colour)
		c.FillText(style, vg.Point{X: left + legendSwatch + 4, Y: y}, name)
	})
}

// layoutLegend places captions (a zero entry) and entries in rows.
func layoutLegend(face typeface, groups []legendGroup, width vg.Length, place func(row int, x vg.Length, e legendEntry, name string)) {
	style := face.style(8.5, ink, text.XLeft, text.YCenter)
	indent := vg.Length(0)
	for _, g := range groups {
		indent = max(indent, vg.Length(style.Width(g.caption)*1.05)+12)
	}
	row := 0
	for _, g := range groups {
		if len(g.entries) == 0 {
			continue
		}
		place(row, 0, legendEntry{}, g.caption)
		x := indent
		for _, e := range g.entries {
			name := e.name
			if !e.long {
				name = clip(style, name, legendName)
			}
			w := legendSwatch + 4 + style.Width(name)
			if x+w > width && x > indent {
				row, x = row+1, indent
			}
			place(row, x, e, name)
			x += w + legendSpacing
		}
		row++
	}
}
