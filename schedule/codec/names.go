// Package codec reads and writes plans and schedules as JSON files, in which tasks, buffers, workers and memories have names.
package codec

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"dahl/dag"
	"dahl/platform"
)

// The formats of the two files. Both name tasks, buffers, workers and memories,
// so that a person can read and write them.
const (
	PlanFormat     = "dahl-plan 1"
	ScheduleFormat = "dahl-schedule 1"
)

// decode reads one JSON value strictly: no unknown keys, nothing after it. Errors
// name the file and, where it is known, the line.
func decode(r io.Reader, name string, v any) error {
	data, err := io.ReadAll(dag.WithoutMark(r))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		at := dec.InputOffset()
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			at = syntax.Offset
		case errors.As(err, &kind):
			at = kind.Offset
		}
		line := 1 + bytes.Count(data[:min(max(at, 0), int64(len(data)))], []byte("\n"))
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: the file ends early", name)
		}
		return fmt.Errorf("%s:%d: %w", name, line, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%s: there is more after the end of the object", name)
	}
	return nil
}

// checkHeader compares the format and the graph's hash of a file.
func checkHeader(name, format, wantFormat, hash string, g *dag.Graph) error {
	if format != wantFormat {
		return fmt.Errorf("%s: format %q; write %q", name, format, wantFormat)
	}
	if hash != "" && hash != g.Hash() {
		return fmt.Errorf("%s: it was made for another graph than %q (hash %.12q, this one has %.12q): take the network, batch, data, limit and tiles that it was made with", name, g.Name, hash, g.Hash())
	}
	return nil
}

// names finds the indices behind the names of one file. It keeps the first error. Indices found after that mean
// nothing.
type names struct {
	file    string
	tasks   map[string]dag.TaskID
	buffers map[string]dag.BufferID
	p       *platform.Platform
	err     error
}

func newNames(file string, g *dag.Graph, p *platform.Platform) *names {
	n := &names{file: file, tasks: make(map[string]dag.TaskID, len(g.Tasks)), buffers: make(map[string]dag.BufferID, len(g.Buffers)), p: p}
	for t := range g.Tasks {
		n.tasks[g.Tasks[t].Name] = dag.TaskID(t)
	}
	for b := range g.Buffers {
		n.buffers[g.Buffers[b].Name] = dag.BufferID(b)
	}
	return n
}

func (n *names) refuse(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("%s: %s", n.file, fmt.Sprintf(format, args...))
	}
}

func (n *names) task(name string) dag.TaskID {
	t, ok := n.tasks[name]
	if !ok {
		n.refuse("the graph has no task %q", name)
	}
	return t
}

func (n *names) buffer(name string) dag.BufferID {
	b, ok := n.buffers[name]
	if !ok {
		n.refuse("the graph has no buffer %q", name)
	}
	return b
}

func (n *names) worker(name string) platform.WorkerID {
	w, ok := n.p.WorkerByName(name)
	if !ok {
		n.refuse("platform %q has no worker %q", n.p.Name, name)
	}
	return w
}

func (n *names) memory(name string) platform.MemoryID {
	m, ok := n.p.MemoryByName(name)
	if !ok {
		n.refuse("platform %q has no memory %q", n.p.Name, name)
	}
	return m
}

// lineWriter writes an object whose long lists have one entry on each line.
type lineWriter struct {
	w     *bufio.Writer
	err   error
	first bool
}

func newLineWriter(w io.Writer) *lineWriter { return &lineWriter{w: bufio.NewWriter(w), first: true} }

func (l *lineWriter) write(parts ...string) {
	for _, s := range parts {
		if l.err == nil {
			_, l.err = l.w.WriteString(s)
		}
	}
}

func (l *lineWriter) value(v any) {
	text, err := json.Marshal(v)
	if l.err == nil && err != nil {
		l.err = err
	}
	l.write(string(text))
}

func (l *lineWriter) key(name string) {
	if l.first {
		l.write("{\n  ")
	} else {
		l.write(",\n  ")
	}
	l.first = false
	l.value(name)
	l.write(": ")
}

func (l *lineWriter) field(name string, v any) {
	l.key(name)
	l.value(v)
}

// list writes n entries between brackets or braces.
func (l *lineWriter) list(name, open, end string, n int, entry func(i int)) {
	l.key(name)
	l.write(open)
	for i := range n {
		if i > 0 {
			l.write(",")
		}
		l.write("\n    ")
		entry(i)
	}
	if n > 0 {
		l.write("\n  ")
	}
	l.write(end)
}

func (l *lineWriter) close() error {
	l.write("\n}\n")
	if l.err != nil {
		return l.err
	}
	return l.w.Flush()
}
