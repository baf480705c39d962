package paper

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Entry is a swatch and its meaning.
type Entry struct {
	Name   string
	Colour color.RGBA
	Stroke bool // a line instead of a filled box
	Dashed bool
	Hatch  Hatch // over the box
	Mark   Mark  // in the place of the box, or on the line
}

// Mark is how a figure marks a point. Its legend draws the same.
type Mark int

// The marks of points.
const (
	noMark     Mark = iota
	FaintMark       // a point among many
	DotMark         // one that counts
	ChosenMark      // the one that was chosen
)

// Draw paints the mark at a point.
func (m Mark) Draw(c draw.Canvas, at vg.Point, colour color.RGBA) {
	dot := func(radius vg.Length, shape draw.GlyphDrawer) {
		c.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: radius, Shape: shape}, at)
	}
	switch m {
	case FaintMark:
		dot(1.8, draw.CircleGlyph{})
	case DotMark:
		dot(3, draw.CircleGlyph{})
	case ChosenMark:
		dot(7, draw.RingGlyph{})
		dot(3, draw.CircleGlyph{})
	}
}

// Group is a caption with entries. It begins on a new line.
type Group struct {
	Caption string
	Entries []Entry
}

// Sizes of a legend, in points.
const (
	LegendLine    = 15
	legendSwatch  = 14
	legendSpacing = 14
	legendGap     = 4 // between a swatch and its name
)

// Legend is groups of entries in lines.
type Legend struct {
	face   Typeface
	parts  []legendPart
	Height vg.Length
}

// legendPart is a text of a legend: a caption, or a line of a name. The first line of a name has the swatch.
type legendPart struct {
	x, y  vg.Length // its left edge, and its middle below the upper edge of the legend
	text  string
	entry *Entry // nil means a caption, or a further line
	small bool   // a caption
}

// NewLegend puts the groups into lines of a width. Names begin below each other, unless the captions would take too much of
// a narrow page.
func NewLegend(face Typeface, width vg.Length, groups ...Group) *Legend {
	l := &Legend{face: face}
	style, hang := face.Style(TickSize, Ink, text.XLeft, text.YCenter), vg.Length(0)
	for _, g := range groups {
		if g.Caption != "" {
			hang = max(hang, vg.Length(style.Width(g.Caption)*1.05)+12)
		}
	}
	narrow := hang > width/5
	for _, g := range groups {
		if len(g.Entries) == 0 {
			continue
		}
		x := hang
		if g.Caption != "" {
			l.parts = append(l.parts, legendPart{y: l.Height + LegendLine/2, text: g.Caption, small: true})
		}
		if narrow {
			hang, x = 0, vg.Length(style.Width(g.Caption)*1.05)+8
		}
		l.Height += l.add(style, g.Entries, x, hang, width) + LegendLine
	}
	return l
}

// add puts entries from a place of the last line on, and into further lines. It returns the height of these.
func (l *Legend) add(style draw.TextStyle, entries []Entry, x, hang, width vg.Length) (tall vg.Length) {
	for i := range entries {
		name := Wrap(style, entries[i].Name, width-hang-legendSwatch-legendGap)
		wide := legendSwatch + legendGap + Widest(style, name)
		if x+wide > width && x > hang {
			tall, x = tall+LegendLine, hang
		}
		for k, line := range name {
			part := legendPart{x: x, y: l.Height + tall + LegendLine/2, text: line}
			if k == 0 {
				part.entry = &entries[i]
			} else {
				tall += NoteLine
				part.y += NoteLine
			}
			l.parts = append(l.parts, part)
		}
		x += wide + legendSpacing
	}
	return tall
}

// Widest is the width of the longest of some lines.
func Widest(style draw.TextStyle, lines []string) (most vg.Length) {
	for _, s := range lines {
		most = max(most, style.Width(s))
	}
	return most
}

// Draw paints the legend from a left edge on and from a height down.
func (l *Legend) Draw(c draw.Canvas, left, top vg.Length) {
	for _, p := range l.parts {
		at := vg.Point{X: c.Min.X + left + p.x, Y: top - p.y}
		if p.small {
			c.FillText(l.face.Style(TickSize, FaintInk, text.XLeft, text.YCenter), at, p.text)
			continue
		}
		if p.entry != nil {
			p.entry.draw(c, at)
		}
		c.FillText(l.face.Style(TickSize, Ink, text.XLeft, text.YCenter), vg.Point{X: at.X + legendSwatch + legendGap, Y: at.Y}, p.text)
	}
}

// draw paints the swatch of an entry to the right of a point.
func (e *Entry) draw(c draw.Canvas, at vg.Point) {
	swatch := vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - 4}, Max: vg.Point{X: at.X + legendSwatch, Y: at.Y + 4}}
	end := vg.Point{X: swatch.Max.X, Y: at.Y}
	switch {
	case e.Stroke && e.Dashed:
		Line(c, e.Colour, 1.5, at, end, 3, 2)
	case e.Stroke:
		Line(c, e.Colour, 2, at, end)
	case e.Mark != noMark:
	default:
		FillHatched(c, swatch.Path(), e.Colour, e.Hatch)
		c.SetLineStyle(draw.LineStyle{Color: gridLine, Width: 0.5})
		c.Stroke(swatch.Path())
	}
	e.Mark.Draw(c, vg.Point{X: at.X + legendSwatch/2, Y: at.Y}, e.Colour)
}
