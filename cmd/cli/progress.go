package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// ProgressBar shows on a terminal how far a long measurement is.
type ProgressBar struct {
	w     io.Writer // nil: it shows nothing
	title string
}

// NewProgressBar is one on a terminal; elsewhere it shows nothing.
func NewProgressBar(w io.Writer, title string) *ProgressBar {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		w = nil
	}
	return &ProgressBar{w: w, title: title}
}

// Set shows how much is done, and what is next.
func (b *ProgressBar) Set(done, total int, what string) {
	if b.w == nil || total == 0 {
		return
	}
	const width = 30
	n := width * done / total
	fmt.Fprintf(b.w, "\r\x1b[K%s [%-*s] %d/%d %.40s", b.title, width, strings.Repeat("#", n), done, total, what)
}

// Done takes the bar away.
func (b *ProgressBar) Done() {
	if b.w != nil {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
