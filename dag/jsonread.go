package dag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"dahl/naming"
)

// jsonReader walks a JSON file token by token against an expected shape. The
// first mistake stays in err, with its line, and every later call does nothing.
type jsonReader struct {
	name string // of the file
	src  []byte
	base int64 // where dec began in src
	dec  *json.Decoder
	err  error
}

func newJSONReader(r io.Reader, name string) *jsonReader {
	src, err := io.ReadAll(WithoutMark(r))
	j := &jsonReader{name: name, src: src}
	if err != nil {
		j.err = fmt.Errorf("%s: read graph: %w", name, err)
	}
	j.seek(0)
	if !utf8.Valid(src) {
		j.failAt(int64(len(src)-len(bytes.TrimLeftFunc(src, func(r rune) bool { return r != utf8.RuneError }))), "not UTF-8 text")
	}
	return j
}

// seek goes on reading at an offset, which is before a value.
func (j *jsonReader) seek(offset int64) {
	j.base = offset
	j.dec = json.NewDecoder(bytes.NewReader(j.src[offset:]))
	j.dec.UseNumber()
}

// offset is the end of the last token.
func (j *jsonReader) offset() int64 { return j.base + j.dec.InputOffset() }

// nextOffset is the beginning of the next token.
func (j *jsonReader) nextOffset() int64 {
	at := j.offset()
	return at + int64(len(j.src[at:])-len(bytes.TrimLeft(j.src[at:], " \t\r\n,:")))
}

// fail notes a mistake in the last token.
func (j *jsonReader) fail(format string, args ...any) { j.failAt(j.offset(), format, args...) }

func (j *jsonReader) failAt(offset int64, format string, args ...any) {
	if j.err == nil {
		line := 1 + bytes.Count(j.src[:offset], []byte{'\n'})
		j.err = fmt.Errorf("%s:%d: %w", j.name, line, fmt.Errorf(format, args...))
	}
}

func (j *jsonReader) token() json.Token {
	if j.err != nil {
		return nil
	}
	t, err := j.dec.Token()
	if err == nil {
		return t
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		j.failAt(int64(len(j.src)), "the file ends in the middle; it was cut off")
	} else {
		j.failAt(j.nextOffset(), "not JSON: %w", err)
	}
	return nil
}

// object reads an object and calls field before each value. Keys are unique.
func (j *jsonReader) object(what string, field func(key string)) {
	if t := j.token(); t != json.Delim('{') {
		j.fail("%s is %s; write an object {…}", what, tokenText(t))
		return
	}
	seen := map[string]bool{}
	for j.err == nil && j.dec.More() {
		key, _ := j.token().(string)
		j.checkText(key)
		if seen[key] {
			j.fail("%q is given twice", key)
		}
		if seen[key] = true; len(seen) > maxKeys {
			j.fail("%s has more than %d keys", what, maxKeys)
		}
		if j.err == nil {
			field(key)
		}
	}
	j.token()
}

// maxKeys bounds the keys of one object.
const maxKeys = 10_000

// array reads an array and calls elem before each element.
func (j *jsonReader) array(what string, elem func()) {
	if t := j.token(); t != json.Delim('[') {
		j.fail("%s is %s; write an array […]", what, tokenText(t))
		return
	}
	for j.err == nil && j.dec.More() {
		elem()
	}
	j.token()
}

// skip passes over one value.
func (j *jsonReader) skip() {
	for depth := 0; j.err == nil; {
		switch j.token() {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// end refuses anything after the last value.
func (j *jsonReader) end() {
	if j.err != nil {
		return
	}
	if at := j.nextOffset(); at < int64(len(j.src)) {
		j.failAt(at, "more text after the end of the graph")
	}
}

func (j *jsonReader) string(what string) string {
	t := j.token()
	s, ok := t.(string)
	if !ok {
		j.fail("%s is %s; write a string", what, tokenText(t))
	}
	j.checkText(s)
	return s
}

// checkText refuses control characters, since names reach terminals.
func (j *jsonReader) checkText(s string) {
	if hasControl(s) {
		j.fail("%q holds a control character; write it without", s)
	}
}

func (j *jsonReader) integer(what string) int64 {
	t := j.token()
	s, _ := t.(json.Number)
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		j.fail("%s is %s; write an integer without point or exponent", what, tokenText(t))
	}
	return n
}

func (j *jsonReader) float(what string) float64 {
	t := j.token()
	s, _ := t.(json.Number)
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		j.fail("%s is %s; write a finite number", what, tokenText(t))
	}
	return f
}

// peekObject reports whether the next value is an object.
func (j *jsonReader) peekObject() bool {
	at := j.nextOffset()
	return j.err == nil && at < int64(len(j.src)) && j.src[at] == '{'
}

func tokenText(t json.Token) string {
	switch v := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "an array"}[v]
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(t)
}

// unknown notes a key of something, or a label, that is not one of those known.
func (j *jsonReader) unknown(what, key, of string, known ...string) {
	j.fail("unknown %s %q%s; write %s%s", what, key, of, naming.OneOf(known), naming.DidYouMean(key, known))
}
