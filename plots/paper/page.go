// Package paper draws what every figure has: a page with its head and notes, frames with two axes, legends, colours of ink and text with units.
package paper

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Page is the form of a figure. What is zero is as it suits a screen.
type Page struct {
	Format            string // one of [Formats]
	WidthPt, HeightPt float64
	FontPt            float64 // of axes and legends; other text and all marks are in proportion
	Title             *string // in the place of the figure's own and the line below it; nil means these
	DPI               int     // of a PNG
}

// ErrPage says that a page has no room for a figure.
var ErrPage = errors.New("no room for the figure")

// Sizes of a page, in points.
const (
	Width      = 960
	Margin     = 14
	leastWidth = 160
	LeastText  = 4 // smaller text is left out
)

// MMPerPt is how many millimetres a point has.
const MMPerPt = 25.4 / 72

// Layout is a page being arranged. Lengths on it are in points as if axes had text of TickSize, and
// scale makes real points of them.
type Layout struct {
	Page
	Face           Typeface
	scale          float64
	Wide           vg.Length
	title, summary []string // lines
}

// Layout begins a page with its head.
func (p Page) Layout(title, summary string) (*Layout, error) {
	l := &Layout{Page: p, Face: NewTypeface(), scale: 1}
	if p.FontPt > 0 {
		l.scale = p.FontPt / TickSize
	}
	l.Wide = vg.Length(cmp.Or(p.WidthPt, Width) / l.scale)
	if l.Wide < leastWidth {
		return nil, fmt.Errorf("%w: with text of %g points a width of at least %.0f mm is wanted", ErrPage, cmp.Or(p.FontPt, TickSize), leastWidth*l.scale*MMPerPt+0.5)
	}
	if p.Title != nil {
		title, summary = *p.Title, ""
	}
	l.title, l.summary = Wrap(l.titleStyle(), title, l.Inner()), Wrap(l.summaryStyle(), summary, l.Inner())
	return l, nil
}

func (l *Layout) titleStyle() draw.TextStyle { return l.Face.Style(13, Ink, text.XLeft, text.YTop) }
func (l *Layout) summaryStyle() draw.TextStyle {
	return l.Face.Style(LabelSize, FaintInk, text.XLeft, text.YTop)
}

// Inner is the width between the margins.
func (l *Layout) Inner() vg.Length { return l.Wide - 2*Margin }

// Share is how wide the page is as a part of one of a screen, at most 1.
func (l *Layout) Share() vg.Length { return min(1, l.Wide/Width) }

// ticks is about how many ticks a lower axis has.
func (l *Layout) ticks() int { return max(3, min(12, int(l.Wide/40))) }

// Heights of lines of the head, and what is left free around them.
const (
	titleLine   = 18
	summaryLine = 13
	headGaps    = 17
)

// head is the height of the title and the lines below it.
func (l *Layout) head() vg.Length {
	if len(l.title)+len(l.summary) == 0 {
		return Margin
	}
	return headGaps + vg.Length(titleLine*len(l.title)) + vg.Length(summaryLine*len(l.summary))
}

// Fill is the height of the contents, given the height of all else on the page. Where the page has no height of its own,
// it is the best one.
func (l *Layout) Fill(fixed, best, least vg.Length) (vg.Length, error) {
	if l.HeightPt == 0 {
		return best, nil
	}
	rest := vg.Length(l.HeightPt/l.scale) - fixed - l.head()
	if rest < least {
		return 0, fmt.Errorf("%w: at this width and size of text a height of at least %.0f mm is wanted", ErrPage, float64(fixed+l.head()+least)*l.scale*MMPerPt+0.5)
	}
	return rest, nil
}

// Render paints a page with contents of a height below its head, and writes it. Paint gets the page, and what is below
// the head.
func (l *Layout) Render(w io.Writer, height vg.Length, paint func(page, below draw.Canvas)) error {
	return render(w, l.Page, l.scale, l.Wide, l.head()+height, func(c draw.Canvas) {
		at := vg.Point{X: c.Min.X + Margin, Y: c.Max.Y - 10}
		for _, s := range l.title {
			c.FillText(l.titleStyle(), at, s)
			at.Y -= titleLine
		}
		for _, s := range l.summary {
			c.FillText(l.summaryStyle(), at, s)
			at.Y -= summaryLine
		}
		paint(c, draw.Crop(c, 0, 0, 0, -l.head()))
	})
}

// Note is lines of faint text.
type Note struct {
	face  Typeface
	lines []string
}

// NoteLine is the height of a line of a note, in points.
const NoteLine = 11

// Note breaks a text into lines of a width.
func (l *Layout) Note(s string, width vg.Length) *Note {
	return &Note{l.Face, Wrap(noteStyle(l.Face, text.XLeft), s, width)}
}

func noteStyle(face Typeface, x text.XAlignment) draw.TextStyle {
	return face.Style(TickSize, FaintInk, x, text.YTop)
}

// Height is the height of all lines.
func (n *Note) Height() vg.Length { return vg.Length(NoteLine * len(n.lines)) }

// Draw writes the lines from a point down.
func (n *Note) Draw(c draw.Canvas, at vg.Point, x text.XAlignment) {
	for _, s := range n.lines {
		c.FillText(noteStyle(n.face, x), at, s)
		at.Y -= NoteLine
	}
}

// Wrap breaks a text between words into lines of at most a width, and a little more for the unit of a number. A word that
// is wider is cut.
func Wrap(style draw.TextStyle, s string, width vg.Length) (lines []string) {
	line := ""
	width -= unitRoom
	for _, word := range strings.Fields(s) {
		longer := strings.TrimSpace(line + " " + word)
		if line == "" || style.Width(longer) <= width || isUnit(word) {
			line = longer
			continue
		}
		lines, line = append(lines, Clip(style, line, width+unitRoom)), word
	}
	if line != "" {
		lines = append(lines, Clip(style, line, width+unitRoom))
	}
	return lines
}

// unitRoom is the width that Wrap leaves for a unit, in points.
const unitRoom = 12

// isUnit reports whether a word is a unit, behind which a sentence may go on.
func isUnit(word string) bool {
	switch strings.TrimRight(word, ".,;:)") {
	case "ns", "us", "ms", "s", "B", "kB", "MB", "GB", "uJ", "mJ", "J", "kJ", "mW", "W", "kW", "%":
		return true
	}
	return false
}

// Shrunk is a style in which a text fits a width.
func Shrunk(style draw.TextStyle, s string, width vg.Length) draw.TextStyle {
	if wide := style.Width(s); wide > width {
		style.Font.Size = vg.Length(style.Font.Size * width / wide)
	}
	return style
}
