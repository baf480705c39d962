package exchange

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"unicode"
)

// xmlReader reads the elements of an XML file, and knows the line of each.
type xmlReader struct {
	*file
	dec  *xml.Decoder
	line int
}

func newXMLReader(f *file, src []byte) xmlReader {
	r := xmlReader{file: f, dec: xml.NewDecoder(bytes.NewReader(src))}
	r.dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // the text is UTF-8, whatever it says
	return r
}

// root reads the whole file, whose outermost element has the name, and calls each with every element in it.
func (r *xmlReader) root(name string, each func(xml.StartElement) error) error {
	for {
		t, err := r.token()
		if err != nil {
			return err
		}
		e, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local != name {
			return r.errorf(r.line, "element %s stands where %s has to", e.Name.Local, name)
		}
		return r.inside(each)
	}
}

// inside calls each with every element up to the end of the one that has begun. Each reads its element to its end.
func (r *xmlReader) inside(each func(xml.StartElement) error) error {
	for {
		t, err := r.token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := each(t); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		}
	}
}

// skip reads the element that has begun to its end.
func (r *xmlReader) skip() error { return r.wrong(r.dec.Skip()) }

func (r *xmlReader) token() (xml.Token, error) {
	t, err := r.dec.Token()
	r.line, _ = r.dec.InputPos()
	return t, r.wrong(err)
}

// wrong says what cannot be decoded; nil stays nil.
func (r *xmlReader) wrong(err error) error {
	if err == nil {
		return nil
	}
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return r.errorf(syntax.Line, "not XML: %s", syntax.Msg)
	}
	return r.errorf(r.line, "the file ends in the middle; it was cut off")
}

// attribute is the value of an attribute, with a space for each control character, as XML has it for ends of lines;
// empty where it is not given.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return strings.Map(func(c rune) rune {
				if unicode.IsControl(c) {
					return ' '
				}
				return c
			}, a.Value)
		}
	}
	return ""
}
