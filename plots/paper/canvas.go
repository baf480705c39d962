package paper

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// pngDPI gives 2 pixels per point, where a page does not say how many.
const pngDPI = 144

// mostPixels bounds a PNG.
const mostPixels = 1e8

// Formats are the formats of figures, and the extensions of their files.
func Formats() []string { return []string{"svg", "png", "pdf"} }

// Render paints a page of a size in lengths that are scaled, and writes it.
func render(w io.Writer, p Page, scale float64, width, height vg.Length, paint func(c draw.Canvas)) error {
	var canvas vg.CanvasWriterTo
	wide, high := vg.Length(scale)*width, vg.Length(scale)*height
	dpi := cmp.Or(p.DPI, pngDPI)
	if p.Format == "png" && wide.Dots(float64(dpi))*high.Dots(float64(dpi)) > mostPixels {
		return fmt.Errorf("%w: %.0f by %.0f points at %d dots per inch are more than %.0g pixels", ErrPage, wide, high, dpi, float64(mostPixels))
	}
	switch p.Format {
	case "svg":
		canvas = vgsvg.New(wide, high)
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(wide, high), vgimg.UseDPI(dpi))}
	case "pdf":
		canvas = vgpdf.New(wide, high)
	default:
		return fmt.Errorf("a figure as %q: want one of %s", p.Format, strings.Join(Formats(), ", "))
	}
	if scale != 1 {
		canvas.Scale(scale, scale)
	}
	c := draw.NewCanvas(canvas, width, height)
	FillRect(c, c.Rectangle, White)
	paint(c)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return fmt.Errorf("drawing as %s: %w", p.Format, err)
	}
	_, err := w.Write(finish(p.Format, out.Bytes()))
	return err
}

// pdfDates matches the two dates of a PDF, which the PDF writer takes from the clock.
var pdfDates = regexp.MustCompile(`/(CreationDate|ModDate) \(D:\d{14}\)`)

// finish removes differences from run to run and from viewer to viewer. PDF dates become one
// fixed date of the same length, so that offsets stay right. SVG text falls back to fonts with
// the metrics of Liberation Sans and is given the length of its layout, whatever font the viewer
// has.
func finish(format string, file []byte) []byte {
	switch format {
	case "pdf":
		return pdfDates.ReplaceAll(file, []byte("/$1 (D:20000101000000)"))
	case "svg":
		face := NewTypeface()
		file = bytes.Map(xmlRune, file)
		file = svgText.ReplaceAllFunc(file, func(element []byte) []byte {
			m := svgText.FindSubmatch(element)
			size, err := strconv.ParseFloat(string(m[2]), 64)
			width := face.Style(size, Ink, 0, 0).Width(html.UnescapeString(string(m[3])))
			if err != nil || width <= 0 {
				return element
			}
			return fmt.Appendf([]byte("<text"), ` textLength="%.5g" lengthAdjust="spacingAndGlyphs"%s`, width.Points(), m[1])
		})
		return bytes.ReplaceAll(file, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	}
	return file
}

// xmlRune replaces characters of a name that an XML document may not contain.
func xmlRune(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
		return ' '
	}
	return r
}

// svgText matches a text element: the rest of its tag, its font size, its text.
var svgText = regexp.MustCompile(`<text( [^>]*font-size:([0-9.]+)px[^>]*>([^<]*)</text>)`)
