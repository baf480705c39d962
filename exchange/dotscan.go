package exchange

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of tokens that are not a character by itself.
const (
	dotEnd  rune = -1 - iota
	dotName      // also a number or a text
	dotArrow
)

type dotToken struct {
	kind   rune
	text   string // of a name
	quoted bool
	line   int
}

func (t dotToken) String() string {
	switch t.kind {
	case dotEnd:
		return "the end of the file"
	case dotName:
		return strconv.Quote(t.text)
	case dotArrow:
		return `"->"`
	}
	return strconv.Quote(string(t.kind))
}

// dotScanner divides a file into tokens. After a mistake there is only the end of the file.
type dotScanner struct {
	*file
	src  string // still to be read
	line int
	now  dotToken
	err  error
}

// fail notes a mistake at the present token.
func (s *dotScanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = s.errorf(s.now.line, format, args...)
	}
	s.now.kind = dotEnd
}

func (s *dotScanner) isWord(word string) bool {
	return s.now.kind == dotName && !s.now.quoted && strings.EqualFold(s.now.text, word)
}

// expect reads a token of one kind.
func (s *dotScanner) expect(kind rune) {
	if s.now.kind != kind {
		s.fail("%s stands where %q has to", s.now, kind)
	}
	s.advance()
}

// name reads a name, or the value of an attribute.
func (s *dotScanner) name() dotToken {
	t := s.now
	if t.kind != dotName {
		s.fail("%s stands where a name or a value has to", t)
	}
	s.advance()
	return t
}

// advance moves to the next token.
func (s *dotScanner) advance() {
	s.skip()
	if s.err != nil {
		return
	}
	s.now = dotToken{kind: dotEnd, line: s.line}
	if s.src == "" {
		return
	}
	c, size := utf8.DecodeRuneInString(s.src)
	sign := 0
	if c == '-' {
		sign = 1
	}
	name := len(s.src) - sign - len(strings.TrimLeftFunc(s.src[sign:], isDOTName))
	switch {
	case name > 0: // a sign belongs to a number
		s.now.kind, s.now.text, s.src = dotName, s.src[:sign+name], s.src[sign+name:]
	case strings.HasPrefix(s.src, "->"):
		s.now.kind, s.src = dotArrow, s.src[2:]
	case c == '"':
		s.quoted()
	case c == '<':
		s.html()
	default:
		s.now.kind, s.src = c, s.src[size:]
	}
}

func isDOTName(c rune) bool {
	return c == '_' || c == '.' || c >= utf8.RuneSelf || unicode.IsLetter(c) || unicode.IsDigit(c)
}

// skip passes over space and comments.
func (s *dotScanner) skip() {
	for s.err == nil {
		switch trimmed := strings.TrimLeft(s.src, " \t\r\n"); {
		case trimmed != s.src:
			s.drop(len(s.src) - len(trimmed))
		case strings.HasPrefix(s.src, "//") || strings.HasPrefix(s.src, "#"):
			text, _, _ := strings.Cut(s.src, "\n")
			s.drop(len(text))
		case strings.HasPrefix(s.src, "/*"):
			end := strings.Index(s.src[2:], "*/")
			if end < 0 {
				s.now.line = s.line
				s.fail("a comment begins and does not end; write */")
				return
			}
			s.drop(2 + end + 2)
		default:
			return
		}
	}
}

// drop passes over some bytes.
func (s *dotScanner) drop(n int) {
	s.line += strings.Count(s.src[:n], "\n")
	s.src = s.src[n:]
}

// quoted reads a text in quotes. Only quotes are escaped in it, and ends of lines where it goes on.
func (s *dotScanner) quoted() {
	end := 1
	for end < len(s.src) && s.src[end] != '"' {
		if s.src[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s.src) {
		s.fail("a text begins and does not end; write a quote at its end")
		return
	}
	text := strings.NewReplacer(`\"`, `"`, "\\\n", "").Replace(s.src[1:end])
	s.now.kind, s.now.text, s.now.quoted = dotName, text, true
	s.drop(end + 1)
}

// html passes over a text of HTML, which nests. It has no meaning here.
func (s *dotScanner) html() {
	depth := 0
	for i := range len(s.src) {
		switch s.src[i] {
		case '<':
			depth++
		case '>':
			depth--
		}
		if depth == 0 {
			s.now.kind, s.now.text, s.now.quoted = dotName, s.src[:i+1], true
			s.drop(i + 1)
			return
		}
	}
	s.fail("a text of HTML begins and does not end; write > at its end")
}
