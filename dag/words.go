package dag

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// words reads one line of the text form, or a region in a JSON file, from left to
// right. The first mistake stays in err, after which it reads nothing.
type words struct {
	rest string
	err  error
}

func (w *words) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
	w.rest = ""
}

// done skips blanks and reports whether the line is over.
func (w *words) done() bool {
	w.rest = strings.TrimLeft(w.rest, " \t\r")
	return w.rest == "" || w.rest[0] == '#'
}

// end refuses a line that has something left.
func (w *words) end() error {
	if !w.done() {
		w.fail("%q is one too many", w.rest)
	}
	return w.err
}

// accept skips a character if it is the next one.
func (w *words) accept(c byte) bool {
	if w.rest == "" || w.rest[0] != c {
		return false
	}
	w.rest = w.rest[1:]
	return true
}

func (w *words) expect(c byte, where string) {
	if w.err == nil && !w.accept(c) {
		w.fail("%q where %q belongs, %s", w.rest, string(c), where)
	}
}

// word reads a quoted or bare word; a buffer's name stops at a bracket.
func (w *words) word(isBuffer bool) string {
	if w.done() {
		w.fail("the line ends where a word belongs")
		return ""
	}
	if w.rest[0] == '"' {
		quoted, err := strconv.QuotedPrefix(w.rest)
		if err != nil {
			w.fail("%q has no closing quote or a bad escape", w.rest)
			return ""
		}
		w.rest = w.rest[len(quoted):]
		s, err := strconv.Unquote(quoted)
		if err != nil || !utf8.ValidString(s) {
			w.fail("%q is not a UTF-8 string", quoted)
		}
		if hasControl(s) {
			w.fail("%q holds a control character; write it without", s)
		}
		return s
	}
	n := strings.IndexFunc(w.rest, func(r rune) bool { return !isBare(r, isBuffer) })
	if n < 0 {
		n = len(w.rest)
	}
	if n == 0 {
		w.fail("%q where a word belongs; quote a word with special characters", w.rest)
		return ""
	}
	s := w.rest[:n]
	w.rest = w.rest[n:]
	return s
}

// key reads a word and the "=" after it.
func (w *words) key() string {
	s := w.word(false)
	w.expect('=', "after "+s)
	return s
}

func (w *words) int(what string) int64 {
	s := w.digits()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		w.fail("%s is %q; write an integer", what, s)
	}
	return n
}

func (w *words) int32(what string) int32 {
	n := w.int(what)
	if n < math.MinInt32 || n > math.MaxInt32 {
		w.fail("%s is %d; write an integer of 32 bits", what, n)
	}
	return int32(n)
}

func (w *words) float(what string) float64 {
	s := w.digits()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		w.fail("%s is %q; write a finite number", what, s)
	}
	return f
}

// digits takes everything up to a separator.
func (w *words) digits() string {
	n := strings.IndexAny(w.rest, " \t\r,:]#")
	if n < 0 {
		n = len(w.rest)
	}
	s := w.rest[:n]
	w.rest = w.rest[n:]
	return s
}

// shape reads "[5,7]".
func (w *words) shape() []int {
	w.done()
	shape := []int{}
	w.expect('[', "before a shape")
	if w.accept(']') {
		return shape
	}
	for {
		shape = append(shape, int(w.int("extent")))
		if w.err != nil || !w.accept(',') {
			break
		}
	}
	w.expect(']', "after a shape")
	return shape
}

// region reads a buffer's name and its box, as in w[0:4,:]. A nil box is the whole.
func (w *words) region(b *Builder) Region {
	name := w.word(true)
	if w.err != nil {
		return Region{}
	}
	id, ok := b.BufferNamed(name)
	if !ok {
		w.fail("no buffer %q; declare it before its use", name)
		return Region{}
	}
	if !w.accept('[') {
		return Region{Buffer: id}
	}
	shape := b.graph.Buffers[id].Shape
	box := Box{}
	for d := 0; ; d++ {
		if d == len(shape) {
			w.fail("the box of %q has more than the %d dimensions of its shape %v", name, len(shape), shape)
			return Region{}
		}
		box = append(box, w.extent(shape[d], name))
		if w.err != nil || !w.accept(',') {
			break
		}
	}
	w.expect(']', "after a box")
	if w.err == nil && len(box) != len(shape) {
		w.fail("the box of %q has %d dimensions; its shape is %v", name, len(box), shape)
	}
	return Region{Buffer: id, Box: box}
}

// extent reads one range of a box: "lo:hi", or ":" for all of it.
func (w *words) extent(all int, buffer string) Range {
	if w.accept(':') {
		return Range{0, all}
	}
	lo := w.int("lower bound")
	w.expect(':', "between the bounds of a range")
	hi := w.int("upper bound")
	if w.err == nil && (lo < 0 || lo >= hi || hi > int64(all)) {
		w.fail("range %d:%d of %q is empty or outside 0:%d", lo, hi, buffer, all)
	}
	return Range{int(lo), int(hi)}
}

// costs reads "cpu=40 cuda/f16@1GHz=12,0.5" to the end of the line.
func (w *words) costs() []Cost {
	var costs []Cost
	for !w.done() {
		c := Cost{Key: w.word(false)}
		w.expect('=', "after a cost's key")
		c.Ns = w.int("nanoseconds")
		if w.accept(',') {
			c.Joules = w.float("joules")
		}
		costs = append(costs, c)
	}
	if costs == nil {
		w.fail("costs of nothing; write key=nanoseconds")
	}
	return costs
}
