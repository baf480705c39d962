package cli

import (
	"fmt"
	"io"
	"strings"
)

// ProgressBar shows on a terminal how far a long measurement is; elsewhere it shows nothing.
type ProgressBar struct {
	page  *Page
	title string
}

// NewProgressBar is one on a terminal, if the writer is one.
func NewProgressBar(w io.Writer, title string) *ProgressBar { return &ProgressBar{NewPage(w), title} }

// Shown reports whether there is a terminal on which somebody sees it.
func (b *ProgressBar) Shown() bool { return b.page != nil }

// Set shows how much is done, and what is next.
func (b *ProgressBar) Set(done, total int, what string) {
	if total == 0 {
		return
	}
	b.page.Show(fmt.Sprintf("%s %s %d/%d %.40s", b.title, Bar(float64(done)/float64(total), 24), done, total, what))
}

// Done takes the bar away.
func (b *ProgressBar) Done() { b.page.Clear() }

// Bar draws a share from 0 to 1 as width characters between brackets.
func Bar(share float64, width int) string {
	n := min(max(0, int(share*float64(width))), width)
	return "[" + strings.Repeat("#", n) + strings.Repeat(" ", width-n) + "]"
}
