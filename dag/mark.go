package dag

import (
	"bufio"
	"io"
)

// Mark is the byte order mark, which some editors and spreadsheets write before text in UTF-8. It means nothing there.
const Mark = "\ufeff"

// WithoutMark is a text without the byte order mark before it.
func WithoutMark(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if first, _ := b.Peek(len(Mark)); string(first) == Mark {
		b.Discard(len(Mark)) // it is there
	}
	return b
}
