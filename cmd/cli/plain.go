package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// What a command prints may be from a file or from its name. A terminal would obey control characters among it: clear lines,
// change its title, or type for the user. So all that goes to the standard output, to the standard error and onto a [Page]
// passes here.

// isPlain reports whether a terminal only shows a character. Marks that turn the direction of writing make one text look like another.
func isPlain(r rune) bool {
	return !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r)
}

// Plain is a text in which whatever a terminal does not only show is an escape, as \x1b or \u202e, but for the characters of keep. So is
// each byte that is no UTF-8.
func Plain(text, keep string) string {
	bad := func(r rune) bool { return r == utf8.RuneError || !isPlain(r) && !strings.ContainsRune(keep, r) }
	if !strings.ContainsFunc(text, bad) {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		switch r, size = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == utf8.RuneError || !bad(r):
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\x%02x`, r)
		default: // as JSON has it, which escapes the others itself
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// layout is the control characters of texts that a command prints.
const layout = "\n\t"

// plainWriter passes text on without what a terminal would obey. A character may come in several writes.
type plainWriter struct {
	io.Writer
	mu   sync.Mutex
	rest []byte // of a character
}

func (p *plainWriter) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(p.rest, text...)
	p.rest = nil
	for i := 1; i < min(utf8.UTFMax, len(all)+1); i++ {
		if last := all[len(all)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				p.rest, all = append(p.rest, last...), all[:len(all)-i]
			}
			break
		}
	}
	_, err := io.WriteString(p.Writer, Plain(string(all), layout))
	return len(text), err
}

// end writes the first bytes of a character whose rest never came.
func (p *plainWriter) end() error {
	_, err := io.WriteString(p.Writer, Plain(string(p.rest), layout))
	p.rest = nil
	return err
}
