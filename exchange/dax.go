package exchange

import "encoding/xml"

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
