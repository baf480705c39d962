package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
)

// Terminal is a writer with rows and columns, on which a page can be drawn again. A file is a
// terminal where the system says so.
type Terminal interface {
	io.Writer
	Size() (columns, rows int)
}

// file is a terminal of the system.
type file struct{ *os.File }

// Size asks the system each time, since a window may be resized.
func (f file) Size() (columns, rows int) { return terminalSize(f.File) }

// terminalOf finds a terminal in a writer; nil means none, or one that draws nothing anew.
func terminalOf(w io.Writer) Terminal {
	switch w := w.(type) {
	case Terminal:
		return w
	case *plainWriter:
		return terminalOf(w.Writer)
	case *os.File:
		if columns, _ := terminalSize(w); columns > 0 && os.Getenv("TERM") != "dumb" {
			return file{w}
		}
	}
	return nil
}

// Page is some lines at the bottom of a terminal that are drawn again in their place. What else is
// written there goes above it; see [Page.Above]. Its methods may be called by several goroutines.
// Nil means no terminal, and its methods do nothing.
type Page struct {
	mu    sync.Mutex
	to    Terminal
	lines []string // that are shown
}

// NewPage is an empty page on a terminal; nil means none.
func NewPage(w io.Writer) *Page {
	if to := terminalOf(w); to != nil {
		return &Page{to: to}
	}
	return nil
}

// Show draws other lines in the place of those before. Those that do not fit are cut, or left out.
func (p *Page) Show(lines ...string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	p.leave(&b)
	p.draw(&b, lines)
	io.WriteString(p.to, b.String())
}

// Clear takes the page away.
func (p *Page) Clear() { p.Show() }

// leave goes back to where the page begins and clears all behind.
func (p *Page) leave(b *strings.Builder) {
	if n := len(p.lines); n > 0 {
		b.WriteString("\r")
		b.WriteString(strings.Repeat("\x1b[A", n-1))
		b.WriteString("\x1b[J")
	}
}

// draw writes lines without a new line behind the last, so that the page needs none of its own.
func (p *Page) draw(b *strings.Builder, lines []string) {
	columns, rows := p.to.Size()
	p.lines = nil
	for _, l := range lines[:min(len(lines), max(1, rows-1))] {
		p.lines = append(p.lines, Cut(Plain(l, ""), max(1, columns-1))) // a full line would wrap
	}
	b.WriteString(strings.Join(p.lines, "\r\n"))
}

// Cut shortens a text to a number of characters.
func Cut(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// Above is a writer on the same terminal, such as the standard output: whole lines that are written appear
// above the page. Of a nil page it is the writer itself.
func (p *Page) Above(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return &above{page: p, w: w}
}

type above struct {
	page *Page
	w    io.Writer
	rest []byte // of a line that has not ended
}

func (a *above) Write(text []byte) (int, error) {
	p := a.page
	p.mu.Lock()
	defer p.mu.Unlock()
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == 0 && len(p.lines) > 0 {
		a.rest = append(a.rest, text...)
		return len(text), nil
	}
	var page strings.Builder
	p.leave(&page)
	io.WriteString(p.to, page.String())
	if len(p.lines) == 0 {
		end = len(text)
	}
	_, err := a.w.Write(append(a.rest, text[:end]...))
	a.rest = append(a.rest[:0], text[end:]...)
	page.Reset()
	p.draw(&page, p.lines)
	io.WriteString(p.to, page.String())
	return len(text), err
}
