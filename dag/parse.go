package dag

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxTextLine is the longest line in bytes; a task that follows a million others
// still fits.
const maxTextLine = 1 << 26

// ParseText reads the text form written by [Graph.WriteText] and builds the
// graph. Errors are one line, "name:line: what is wrong"; name is the file's name.
func ParseText(r io.Reader, name string) (*Graph, error) {
	p := textParser{}
	lines := bufio.NewScanner(WithoutMark(r))
	lines.Buffer(nil, maxTextLine)
	for lines.Scan() {
		p.line++
		if err := p.parseLine(lines.Text()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: read graph: %w", name, p.line+1, err)
	}
	if p.builder == nil {
		return nil, fmt.Errorf("%s:%d: no graph; begin with \"graph NAME\"", name, p.line+1)
	}
	if err := p.endTask(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
	}
	g, err := p.builder.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}

type textParser struct {
	builder *Builder // nil before the first line
	line    int
	task    *Task // being read, nil before the first
	taskAt  int   // its line
}

func (p *textParser) parseLine(line string) error {
	if !utf8.ValidString(line) {
		return errors.New("not UTF-8 text")
	}
	w := words{rest: line}
	if w.done() {
		return nil
	}
	keyword := w.word(false)
	if p.builder == nil {
		if keyword != "graph" {
			return fmt.Errorf("begins with %q; the first line is \"graph NAME\"", keyword)
		}
		p.builder = NewBuilder(w.word(false))
		return w.end()
	}
	switch {
	case keyword == "buffer":
		p.buffer(&w)
	case keyword == "view":
		p.view(&w)
	case keyword == "task":
		if err := p.endTask(); err != nil {
			return err
		}
		p.startTask(&w)
	case keyword == "costs" && p.task == nil:
		op := w.word(false)
		if costs := w.costs(); w.err == nil {
			p.builder.OpCosts(op, costs)
		}
	case p.task == nil:
		w.fail("%q before the first task; write buffer, view, costs or task", keyword)
	default:
		p.detail(keyword, &w)
	}
	return cmp.Or(w.end(), p.builder.Err())
}

// buffer reads a buffer's line. It is declared only when the line has no mistake.
func (p *textParser) buffer(w *words) {
	buf := Buffer{Name: w.word(true)}
	buf.Type = parseWord(w, ParseDType)
	buf.Shape = w.shape()
	buf.Role = parseWord(w, ParseRole)
	for w.err == nil && !w.done() {
		switch key := w.key(); key {
		case "layout":
			buf.Layout = w.word(false)
		case "home":
			buf.Home = w.word(false)
		case "accumulators":
			buf.Accumulators = int(w.int32(key))
		case "copies":
			if buf.Versions = int(w.int32(key)); buf.Versions < 1 {
				w.fail("%d versions; write a number from 1 to %d", buf.Versions, MaxVersions)
			}
		default:
			w.fail("a buffer has no %q; write layout, home, accumulators or copies", key)
		}
	}
	if w.err == nil {
		p.builder.Buffer(buf)
	}
}

func (p *textParser) view(w *words) {
	name := w.word(true)
	of := w.region(p.builder)
	shape := w.shape()
	if of.Box != nil {
		w.fail("view %q of part of a buffer; a view has all elements", name)
	}
	if w.err == nil {
		p.builder.View(name, of.Buffer, shape...)
	}
}

// startTask reads the first line of a task.
func (p *textParser) startTask(w *words) {
	t := &Task{Name: w.word(false)}
	for w.err == nil && !w.done() {
		switch key := w.key(); key {
		case "op":
			t.Op = w.word(false)
		case "type":
			t.Type = parseWord(w, ParseDType)
		case "shape":
			t.Shape = w.word(false)
		case "priority":
			t.Priority = w.int32(key)
		default:
			w.fail("a task's line has no %q; write op, type, shape or priority", key)
		}
	}
	p.task, p.taskAt = t, p.line
}

// endTask hands the task that was being read to the builder. It reports a mistake of the task as
// a whole at its first line.
func (p *textParser) endTask() error {
	if p.task == nil {
		return nil
	}
	p.builder.Task(*p.task)
	if p.builder.Err() != nil {
		p.line = p.taskAt
	}
	return p.builder.Err()
}

// detail reads an indented line of a task.
func (p *textParser) detail(keyword string, w *words) {
	t := p.task
	if mode, err := ParseMode(keyword); err == nil {
		t.Accesses = append(t.Accesses, Access{w.region(p.builder), mode})
		return
	}
	switch keyword {
	case "params":
		for w.err == nil && !w.done() {
			key := w.key()
			t.Params = append(t.Params, Param{key, w.float(key)})
		}
	case "after":
		for w.err == nil && !w.done() {
			t.After = append(t.After, p.earlier(w))
		}
	case "costs":
		if t.Costs != nil {
			w.fail("a second line of costs")
			return
		}
		t.Costs = w.costs()
	case "work", "labels", "place":
		for w.err == nil && !w.done() {
			p.note(keyword, w.key(), w)
		}
	default:
		w.fail("a task has no %q; write read, write, readwrite, reduce, params, work, labels, after, costs or place", keyword)
	}
}

// note reads the value of one key of a line of work, labels or place.
func (p *textParser) note(keyword, key string, w *words) {
	t := p.task
	if keyword == "place" && t.Placement == nil {
		t.Placement = &Placement{}
	}
	switch keyword + " " + key {
	case "work flops":
		t.Flops = w.float(key)
	case "work bytes":
		t.MovedBytes = w.int(key)
	case "labels layer":
		t.Labels.Layer = w.word(false)
	case "labels phase":
		t.Labels.Phase = w.word(false)
	case "labels microbatch":
		t.Labels.MicroBatch = w.int32(key)
	case "labels stage":
		t.Labels.Stage = w.int32(key)
	case "place device":
		t.Placement.Device = w.word(false)
	case "place colocate":
		t.Placement.Colocate = w.word(false)
	default:
		w.fail("%s has no %q", keyword, key)
	}
}

// earlier reads the name of a task declared before the present one.
func (p *textParser) earlier(w *words) TaskID {
	name := w.word(false)
	id, ok := p.builder.TaskNamed(name)
	if w.err == nil && !ok {
		w.fail("no earlier task %q to follow; tasks stand in program order, so no cycle can be written", name)
	}
	return id
}

// parseWord reads a word of a closed list.
func parseWord[T any](w *words, parse func(string) (T, error)) T {
	s := w.word(true)
	v, err := parse(s)
	if err != nil {
		w.fail("%w", err)
	}
	return v
}
