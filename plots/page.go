package plots

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
	pageWidth  = 960
	pageMargin = 14
	leastWidth = 160
	leastText  = 4 // smaller text is left out
)

// MMPerPt is how many millimetres a point has.
const MMPerPt = 25.4 / 72

// layout is a page being arranged. Lengths on it are in points as if axes had text of tickSize, and
// scale makes real points of them.
type layout struct {
	Page
	face           typeface
	scale          float64
	wide           vg.Length
	title, summary []string // lines
}

// layout begins a page with its head.
func (p Page) layout(title, summary string) (*layout, error) {
	l := &layout{Page: p, face: newTypeface(), scale: 1}
	if p.FontPt > 0 {
		l.scale = p.FontPt / tickSize
	}
	l.wide = vg.Length(cmp.Or(p.WidthPt, pageWidth) / l.scale)
	if l.wide < leastWidth {
		return nil, fmt.Errorf("%w: with text of %g points a width of at least %.0f mm is wanted", ErrPage, cmp.Or(p.FontPt, tickSize), leastWidth*l.scale*MMPerPt+0.5)
	}
	if p.Title != nil {
		title, summary = *p.Title, ""
	}
	l.title, l.summary = wrap(l.titleStyle(), title, l.inner()), wrap(l.summaryStyle(), summary, l.inner())
	return l, nil
}

func (l *layout) titleStyle() draw.TextStyle { return l.face.style(13, ink, text.XLeft, text.YTop) }
func (l *layout) summaryStyle() draw.TextStyle {
	return l.face.style(labelSize, faintInk, text.XLeft, text.YTop)
}

// inner is the width between the margins.
func (l *layout) inner() vg.Length { return l.wide - 2*pageMargin }

// share is how wide the page is as a part of one of a screen, at most 1.
func (l *layout) share() vg.Length { return min(1, l.wide/pageWidth) }

// ticks is about how many ticks a lower axis has.
func (l *layout) ticks() int { return max(3, min(12, int(l.wide/40))) }

// Heights of lines of the head, and what is left free around them.
const (
	titleLine   = 18
	summaryLine = 13
	headGaps    = 17
)

// head is the height of the title and the lines below it.
func (l *layout) head() vg.Length {
	if len(l.title)+len(l.summary) == 0 {
		return pageMargin
	}
	return headGaps + vg.Length(titleLine*len(l.title)) + vg.Length(summaryLine*len(l.summary))
}

// fill is the height of the contents, given the height of all else on the page. Where the page has no height of its own,
// it is the best one.
func (l *layout) fill(fixed, best, least vg.Length) (vg.Length, error) {
	if l.HeightPt == 0 {
		return best, nil
	}
	rest := vg.Length(l.HeightPt/l.scale) - fixed - l.head()
	if rest < least {
		return 0, fmt.Errorf("%w: at this width and size of text a height of at least %.0f mm is wanted", ErrPage, float64(fixed+l.head()+least)*l.scale*MMPerPt+0.5)
	}
	return rest, nil
}

// render paints a page with contents of a height below its head, and writes it. Paint gets the page, and what is below
// the head.
func (l *layout) render(w io.Writer, height vg.Length, paint func(page, below draw.Canvas)) error {
	return render(w, l.Page, l.scale, l.wide, l.head()+height, func(c draw.Canvas) {
		at := vg.Point{X: c.Min.X + pageMargin, Y: c.Max.Y - 10}
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

// note is lines of faint text.
type note struct {
	face  typeface
	lines []string
}

const noteLine = 11

func (l *layout) note(s string, width vg.Length) *note {
	return &note{l.face, wrap(noteStyle(l.face, text.XLeft), s, width)}
}

func noteStyle(face typeface, x text.XAlignment) draw.TextStyle {
	return face.style(tickSize, faintInk, x, text.YTop)
}

func (n *note) height() vg.Length { return vg.Length(noteLine * len(n.lines)) }

// draw writes the lines from a point down.
func (n *note) draw(c draw.Canvas, at vg.Point, x text.XAlignment) {
	for _, s := range n.lines {
		c.FillText(noteStyle(n.face, x), at, s)
		at.Y -= noteLine
	}
}

// wrap breaks a text between words into lines of at most a width, and a little more for the unit of a number. A word that
// is wider is cut.
func wrap(style draw.TextStyle, s string, width vg.Length) (lines []string) {
	line := ""
	width -= unitRoom
	for _, word := range strings.Fields(s) {
		longer := strings.TrimSpace(line + " " + word)
		if line == "" || style.Width(longer) <= width || isUnit(word) {
			line = longer
			continue
		}
		lines, line = append(lines, clip(style, line, width+unitRoom)), word
	}
	if line != "" {
		lines = append(lines, clip(style, line, width+unitRoom))
	}
	return lines
}

// unitRoom is the width that wrap leaves for a unit, in points.
const unitRoom = 12

// isUnit reports whether a word is a unit, behind which a sentence may go on.
func isUnit(word string) bool {
	switch strings.TrimRight(word, ".,;:)") {
	case "ns", "us", "ms", "s", "B", "kB", "MB", "GB", "uJ", "mJ", "J", "kJ", "mW", "W", "kW", "%":
		return true
	}
	return false
}

// shrunk is a style in which a text fits a width.
func shrunk(style draw.TextStyle, s string, width vg.Length) draw.TextStyle {
	if wide := style.Width(s); wide > width {
		style.Font.Size = vg.Length(style.Font.Size * width / wide)
	}
	return style
}
