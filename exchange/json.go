package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
)

// jsonReader decodes JSON piece by piece, and knows the line of each.
type jsonReader struct {
	*file
	src  []byte
	dec  *json.Decoder
	at   int64 // where line is
	line int   // of the value that is decoded
}

func newJSONReader(f *file, src []byte) jsonReader {
	return jsonReader{file: f, src: src, dec: json.NewDecoder(bytes.NewReader(src)), line: 1}
}

// whole reads a file that is one object, and calls each with every key.
func (r *jsonReader) whole(each func(key string) error) error {
	if err := r.object(each); err != nil {
		return err
	}
	r.advance()
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return r.errorf(r.line, "more text after the end of the graph; take it out")
	}
	return nil
}

// object reads an object, and calls each with every key; each reads the value.
func (r *jsonReader) object(each func(key string) error) error {
	return r.inside('{', func() error {
		key, err := r.dec.Token()
		if err != nil {
			return r.wrong(err)
		}
		return each(key.(string))
	})
}

// inside reads an object or an array, and calls each before every element.
func (r *jsonReader) inside(open json.Delim, each func() error) error {
	r.advance()
	t, err := r.dec.Token()
	if err != nil {
		return r.wrong(err)
	}
	if t != open {
		if text, ok := t.(string); ok {
			t = strconv.Quote(text) // in one line
		}
		return r.errorf(r.line, "%v stands where %v has to", t, open)
	}
	for r.dec.More() {
		if err := each(); err != nil {
			return err
		}
	}
	if _, err = r.dec.Token(); err != nil {
		return r.wrong(err)
	}
	return nil
}

// elements reads an array of values of one type.
func elements[T any](r *jsonReader, add func(*T) error) error {
	return r.inside('[', func() error {
		var v T
		if err := r.decode(&v); err != nil {
			return err
		}
		return add(&v)
	})
}

func (r *jsonReader) decode(v any) error {
	r.advance()
	if err := r.dec.Decode(v); err != nil {
		return r.wrong(err)
	}
	return nil
}

// advance moves line to the next value.
func (r *jsonReader) advance() {
	from := r.dec.InputOffset()
	to := from + int64(len(r.src[from:])-len(bytes.TrimLeft(r.src[from:], " \t\r\n,:")))
	r.line += bytes.Count(r.src[r.at:to], []byte{'\n'})
	r.at = to
}

// wrong says what cannot be decoded, in words of the file.
func (r *jsonReader) wrong(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.errorf(1+bytes.Count(r.src, []byte{'\n'}), "the file ends in the middle; it was cut off")
	}
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		want := map[reflect.Kind]string{reflect.Int64: "an integer", reflect.Float64: "a number", reflect.String: "a text"}[kind.Type.Kind()]
		return r.errorf(r.line, "%s is a %s; write %s", cmp.Or(kind.Field, "an element"), kind.Value, cmp.Or(want, "an object"))
	}
	return r.errorf(r.line, "not JSON of this format: %w", err)
}
