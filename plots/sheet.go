package plots

import (
	"dahl/plots/paper"
	"fmt"
	"image"
	"io"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sheet is samples of a data set as pictures, with what is to be said of each.
type Sheet struct {
	Title, Summary string
	Pictures       []Picture
}

// Picture is a sample and the lines below it.
type Picture struct {
	Image image.Image
	Lines []string
}

// Sizes of a sheet, in points, and how many pixels across a small picture gets at least, lest a viewer blurs it.
const (
	sheetPicture = 64
	sheetCell    = 76
	sheetPixels  = 128
)

// DrawSheet draws the pictures from the left to the right and from above. An error wraps ErrNoData where there is none.
func DrawSheet(w io.Writer, p paper.Page, s *Sheet) error {
	if len(s.Pictures) == 0 {
		return fmt.Errorf("sheet: %w", ErrNoData)
	}
	l, err := p.Layout(s.Title, s.Summary)
	if err != nil {
		return err
	}
	lines := 0
	for _, p := range s.Pictures {
		lines = max(lines, len(p.Lines))
	}
	tall := vg.Length(sheetPicture + paper.NoteLine*lines + 14)
	columns := int(l.Inner() / sheetCell)
	rows := (len(s.Pictures) + columns - 1) / columns
	height, err := l.Fill(paper.Margin, tall*vg.Length(rows), tall*vg.Length(rows))
	if err != nil {
		return err
	}
	style := l.Face.Style(paper.TickSize, paper.Ink, text.XLeft, text.YTop)
	return l.Render(w, height+paper.Margin, func(_, c draw.Canvas) {
		for i, p := range s.Pictures {
			at := vg.Point{X: c.Min.X + paper.Margin + vg.Length(sheetCell*(i%columns)), Y: c.Max.Y - vg.Length(tall*vg.Length(i/columns)) - sheetPicture}
			size := p.Image.Bounds().Size()
			most := vg.Length(max(size.X, size.Y)) / sheetPicture
			c.DrawImage(vg.Rectangle{Min: at, Max: vg.Point{X: at.X + vg.Length(size.X)/most, Y: at.Y + vg.Length(size.Y)/most}}, magnified(p.Image))
			for k, line := range p.Lines {
				c.FillText(style, vg.Point{X: at.X, Y: at.Y - 4 - vg.Length(paper.NoteLine*k)}, paper.Clip(style, line, sheetCell-4))
			}
		}
	})
}

// magnified repeats the pixels of a small picture.
func magnified(m image.Image) image.Image {
	b := m.Bounds()
	times := (sheetPixels + max(b.Dx(), b.Dy()) - 1) / max(b.Dx(), b.Dy())
	large := image.NewRGBA(image.Rect(0, 0, times*b.Dx(), times*b.Dy()))
	for y := range large.Rect.Dy() {
		for x := range large.Rect.Dx() {
			large.Set(x, y, m.At(b.Min.X+x/times, b.Min.Y+y/times))
		}
	}
	return large
}
