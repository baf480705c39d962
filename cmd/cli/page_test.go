package cli

import (
	"fmt"
	"strings"
	"testing"
)

// screen is a terminal that keeps what it shows: it knows the three requests that a page makes.
type screen struct {
	columns  int
	lines    []string
	row, col int
}

func (s *screen) Size() (columns, rows int) { return s.columns, 4 }

func (s *screen) Write(text []byte) (int, error) {
	for rest := string(text); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "\x1b[A"):
			s.row, rest = s.row-1, rest[3:]
		case strings.HasPrefix(rest, "\x1b[J"):
			s.lines, rest = append(s.lines[:s.row:s.row], string([]rune(s.line())[:s.col])), rest[3:]
		case rest[0] == '\r':
			s.col, rest = 0, rest[1:]
		case rest[0] == '\n':
			s.row, s.col, rest = s.row+1, 0, rest[1:] // as terminals do, that the system drives
		default:
			r := []rune(rest)[0]
			line := append([]rune(s.line()), make([]rune, max(0, s.col+1-len([]rune(s.line()))))...)
			line[s.col] = r
			s.lines[s.row], s.col, rest = string(line), s.col+1, rest[len(string(r)):]
			if s.col >= s.columns {
				return 0, fmt.Errorf("the line %q wraps", s.lines[s.row])
			}
		}
	}
	return len(text), nil
}

func (s *screen) line() string {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, "")
	}
	return s.lines[s.row]
}

func (s *screen) text() string { return strings.TrimRight(strings.Join(s.lines, "\n"), "\n") }

// TestPage draws two pages in one place, with lines above that come in parts, and leaves nothing.
func TestPage(t *testing.T) {
	s := &screen{columns: 9}
	p := NewPage(s)
	out := p.Above(s)
	shows := func(want string) {
		t.Helper()
		if got := s.text(); got != want {
			t.Errorf("the screen shows\n%s\nwant\n%s", got, want)
		}
	}
	fmt.Fprint(out, "begin\n")
	p.Show("épisode 1", "loss ▇▆▅▄▃▂▁")
	shows("begin\népisode…\nloss ▇▆…")
	fmt.Fprint(out, "ep")
	shows("begin\népisode…\nloss ▇▆…")
	fmt.Fprint(out, "och\nhal")
	shows("begin\nepoch\népisode…\nloss ▇▆…")
	p.Show("1", "2", "3", "4 has no place")
	shows("begin\nepoch\n1\n2\n3")
	p.Show("short")
	shows("begin\nepoch\nshort")
	fmt.Fprint(out, "f\n")
	shows("begin\nepoch\nhalf\nshort")
	p.Clear()
	fmt.Fprint(out, "end")
	shows("begin\nepoch\nhalf\nend")
}

// TestNoTerminal: elsewhere nothing is drawn, and what is written is passed on.
func TestNoTerminal(t *testing.T) {
	var b strings.Builder
	p := NewPage(&b)
	p.Show("a page")
	fmt.Fprint(p.Above(&b), "a line")
	bar := NewProgressBar(&b, "bar")
	bar.Set(1, 2, "half")
	bar.Done()
	if b.String() != "a line" {
		t.Errorf("%q was written", b.String())
	}
}

// TestProgressBar: 7 of 11 is 15 of 24 characters.
func TestProgressBar(t *testing.T) {
	s := &screen{columns: 99}
	bar := NewProgressBar(s, "search")
	bar.Set(7, 11, "next")
	if want := "search [" + strings.Repeat("#", 15) + strings.Repeat(" ", 9) + "] 7/11 next"; s.text() != want {
		t.Errorf("%q, want %q", s.text(), want)
	}
	bar.Done()
	if s.text() != "" {
		t.Errorf("%q is left", s.text())
	}
}
