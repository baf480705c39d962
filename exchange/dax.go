package exchange

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
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
func (r *xmlReader) skip() error {
	return r.inside(func(xml.StartElement) error { return r.skip() })
}

func (r *xmlReader) token() (xml.Token, error) {
	t, err := r.dec.Token()
	r.line, _ = r.dec.InputPos()
	if err == nil {
		return t, nil
	}
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return nil, r.errorf(syntax.Line, "not XML: %s", syntax.Msg)
	}
	return nil, r.errorf(r.line, "the file ends in the middle; it was cut off")
}

// attribute is the value of an attribute; empty where it is not given.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

// daxReader reads an abstract workflow of Pegasus.
type daxReader struct {
	xmlReader
	workflow workflow
	waits    []daxWait
}

// daxWait says that a job follows another one.
type daxWait struct {
	child, parent string
	line          int
}

func (f *file) readDAX(src []byte) error {
	if err := f.noUnit("seconds"); err != nil {
		return err
	}
	r := daxReader{xmlReader: newXMLReader(f, src), workflow: newWorkflow(f)}
	if err := r.root("adag", r.element); err != nil {
		return err
	}
	for _, w := range r.waits {
		at, err := r.workflow.find(w.line, w.child)
		if err != nil {
			return err
		}
		r.workflow.jobs[at].after = append(r.workflow.jobs[at].after, w.parent)
	}
	return r.workflow.build()
}

func (r *daxReader) element(e xml.StartElement) error {
	switch name := e.Name.Local; name {
	case "job":
		return r.job(e)
	case "child":
		child := attribute(e, "ref")
		return r.inside(func(e xml.StartElement) error {
			if e.Name.Local == "parent" {
				r.waits = append(r.waits, daxWait{child, attribute(e, "ref"), r.line})
			}
			return r.skip()
		})
	case "dax", "dag":
		return r.errorf(r.line, "element %s is a workflow in another file; plan it first, or write its jobs into this file", name)
	default:
		r.leave(name+" elements", 1)
		return r.skip()
	}
}

func (r *daxReader) job(e xml.StartElement) error {
	j := job{id: attribute(e, "id"), name: attribute(e, "name"), line: r.line}
	if text := attribute(e, "runtime"); text != "" {
		ns, err := r.number(r.line, "runtime", text, nsPerS)
		if err != nil {
			return err
		}
		j.ns, j.timed = ns, true
	}
	err := r.inside(func(e xml.StartElement) error {
		if e.Name.Local != "uses" {
			r.leave(e.Name.Local+" elements of jobs", 1)
			return r.skip()
		}
		if err := r.uses(&j, e); err != nil {
			return err
		}
		return r.skip()
	})
	if err != nil {
		return err
	}
	return r.workflow.add(j)
}

// uses adds a file to a job. Version 3 calls it name, and versions before it file.
func (r *daxReader) uses(j *job, e xml.StartElement) error {
	name := attribute(e, "file")
	if name == "" {
		name = attribute(e, "name")
	}
	if name == "" {
		return r.errorf(r.line, "a uses element of job %q names no file; write file or name", j.id)
	}
	if text := attribute(e, "size"); text != "" {
		bytes, err := r.number(r.line, "size", text, 1)
		if err != nil {
			return err
		}
		r.workflow.size(name, bytes)
	}
	switch link := attribute(e, "link"); link {
	case "input":
		j.reads = append(j.reads, name)
	case "output":
		j.writes = append(j.writes, name)
	case "inout":
		j.reads, j.writes = append(j.reads, name), append(j.writes, name)
	case "", "none":
		r.leave("programs that jobs use", 1)
	default:
		return r.errorf(r.line, "the link of file %q is %q; write input, output or inout", name, link)
	}
	return nil
}
