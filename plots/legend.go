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
	legendGap     = 4 // between a swatch and its name
)

// legend is groups of entries in lines.
type legend struct {
	face   typeface
	parts  []legendPart
	height vg.Length
}

// legendPart is a text of a legend: a caption, or a line of a name. The first line of a name has the swatch.
type legendPart struct {
	x, y  vg.Length // its left edge, and its middle below the upper edge of the legend
	text  string
	entry *legendEntry // nil means a caption, or a further line
	small bool         // a caption
}

// newLegend puts the groups into lines of a width. Names begin below each other, unless the captions would take too much of
// a narrow page.
func newLegend(face typeface, width vg.Length, groups ...legendGroup) *legend {
	l := &legend{face: face}
	style, hang := face.style(tickSize, ink, text.XLeft, text.YCenter), vg.Length(0)
	for _, g := range groups {
		if g.caption != "" {
			hang = max(hang, vg.Length(style.Width(g.caption)*1.05)+12)
		}
	}
	narrow := hang > width/5
	for _, g := range groups {
		if len(g.entries) == 0 {
			continue
		}
		x := hang
		if g.caption != "" {
			l.parts = append(l.parts, legendPart{y: l.height + legendLine/2, text: g.caption, small: true})
		}
		if narrow {
			hang, x = 0, vg.Length(style.Width(g.caption)*1.05)+8
		}
		l.height += l.add(style, g.entries, x, hang, width) + legendLine
	}
	return l
}

// add puts entries from a place of the last line on, and into further lines. It returns the height of these.
func (l *legend) add(style draw.TextStyle, entries []legendEntry, x, hang, width vg.Length) (tall vg.Length) {
	for i := range entries {
		name := wrap(style, entries[i].name, width-hang-legendSwatch-legendGap)
		wide := legendSwatch + legendGap + widest(style, name)
		if x+wide > width && x > hang {
			tall, x = tall+legendLine, hang
		}
		for k, line := range name {
			part := legendPart{x: x, y: l.height + tall + legendLine/2, text: line}
			if k == 0 {
				part.entry = &entries[i]
			} else {
				tall += noteLine
				part.y += noteLine
			}
			l.parts = append(l.parts, part)
		}
		x += wide + legendSpacing
	}
	return tall
}

// widest is the width of the longest of some lines.
func widest(style draw.TextStyle, lines []string) (most vg.Length) {
	for _, s := range lines {
		most = max(most, style.Width(s))
	}
	return most
}

// draw paints the legend from a left edge on and from a height down.
func (l *legend) draw(c draw.Canvas, left, top vg.Length) {
	for _, p := range l.parts {
		at := vg.Point{X: c.Min.X + left + p.x, Y: top - p.y}
		if p.small {
			c.FillText(l.face.style(tickSize, faintInk, text.XLeft, text.YCenter), at, p.text)
			continue
		}
		if p.entry != nil {
			p.entry.draw(c, at)
		}
		c.FillText(l.face.style(tickSize, ink, text.XLeft, text.YCenter), vg.Point{X: at.X + legendSwatch + legendGap, Y: at.Y}, p.text)
	}
}

// draw paints the swatch of an entry to the right of a point.
func (e *legendEntry) draw(c draw.Canvas, at vg.Point) {
	swatch := vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - 4}, Max: vg.Point{X: at.X + legendSwatch, Y: at.Y + 4}}
	end := vg.Point{X: swatch.Max.X, Y: at.Y}
	switch {
	case e.stroke && e.dashed:
		line(c, e.colour, 1.5, at, end, 3, 2)
	case e.stroke:
		line(c, e.colour, 2, at, end)
	case e.mark != noMark:
	default:
		fillHatched(c, swatch.Path(), e.colour, e.hatch)
		c.SetLineStyle(draw.LineStyle{Color: gridLine, Width: 0.5})
		c.Stroke(swatch.Path())
	}
	e.mark.draw(c, vg.Point{X: at.X + legendSwatch/2, Y: at.Y}, e.colour)
}
