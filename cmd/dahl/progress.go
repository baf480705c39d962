package main

import (
	"fmt"
	"io"
	"os"
)

// progressBar shows on a terminal how far a long measurement is.
type progressBar struct {
	w     io.Writer
	title string
	shown bool
}

func newProgressBar(w io.Writer, title string) *progressBar {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		w = nil
	}
	return &progressBar{w: w, title: title}
}

func (b *progressBar) set(done, total int, what string) {
	if b.w == nil || total == 0 {
		return
	}
	const width = 30
	n := width * done / total
	fmt.Fprintf(b.w, "\r\x1b[K%s [%s%s] %d/%d %.40s", b.title, bar[:n], space[:width-n], done, total, what)
	b.shown = true
}

func (b *progressBar) done() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

const (
	bar   = "##############################"
	space = "                              "
)

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
