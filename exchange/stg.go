package exchange

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
)

// stgReader reads lines without comments.
type stgReader struct {
	*file
	lines [][]byte // still to be read
	line  int      // number of the last one read

	unitNs float64
	byID   map[int]int // node by the number of its task
	preds  []stgPred   // resolved at the end, since they may stand before their tasks
}

type stgPred struct {
	id, to, line int
	bytes        int64
}

func (f *file) readSTG(src []byte) error {
	r := stgReader{file: f, lines: bytes.Split(src, []byte{'\n'}), unitNs: f.takeUnit(), byID: map[int]int{}}
	first := r.next()
	if len(first) != 1 && len(first) != 2 {
		return f.errorf(r.line, "the first line has %d numbers; write the number of tasks, and behind it that of processors where edges have costs", len(first))
	}
	r.leave("numbers of processors", len(first)-1)
	tasks, err := r.count("the number of tasks", first[0])
	if err != nil {
		return err
	}
	for fields := r.next(); fields != nil; fields = r.next() {
		if err := r.task(fields); err != nil {
			return err
		}
	}
	if n := len(f.nodes); n != tasks && n != tasks+2 {
		return f.errorf(r.line, "there are %d tasks, and the first line says %d; write that, or two less where the first and the last are dummies", n, tasks)
	} else if n == tasks && n > 1 && f.isDummy(0) && !f.isDummy(n-1) {
		return f.errorf(r.line, "the first line says %d tasks, which are %d with a first and a last dummy of time 0, and the file has %d and ends without the last; it was cut off, or else has no dummies: then add a last task of time 0, and write %d", tasks, tasks+2, n, n+1)
	}
	for _, p := range r.preds {
		from, ok := r.byID[p.id]
		if !ok {
			return f.errorf(p.line, "there is no task %d; write the number of one in this file", p.id)
		}
		f.addEdge(from, p.to, p.bytes, p.line)
	}
	return nil
}

// isDummy reports whether a task takes no time, like the first and the last task of a graph. The number in the first line
// does not count these.
func (f *file) isDummy(node int) bool {
	return !slices.ContainsFunc(f.nodes[node].task.Costs, func(c dag.Cost) bool { return c.Ns > 0 })
}

// next gives the words of the next line that has any; nil at the end.
func (r *stgReader) next() []string {
	for len(r.lines) > 0 {
		text, _, _ := strings.Cut(string(r.lines[0]), "#")
		r.lines, r.line = r.lines[1:], r.line+1
		if fields := strings.Fields(text); len(fields) > 0 {
			return fields
		}
	}
	return nil
}

// count reads a number of tasks, or of one task.
func (r *stgReader) count(what, text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, r.errorf(r.line, "%s is %q; write an integer from 0 to %d", what, text, 1<<31-1)
	}
	return int(n), nil
}

// task reads a task from its line, and its predecessors from that or the lines after it.
func (r *stgReader) task(fields []string) error {
	if len(fields) < 3 {
		return r.errorf(r.line, "a task with %d numbers; write its number, its processing time and the number of its predecessors", len(fields))
	}
	id, err := r.count("the number of a task", fields[0])
	if err != nil {
		return err
	}
	if _, ok := r.byID[id]; ok {
		return r.errorf(r.line, "task %d is given twice; write another number", id)
	}
	ns, err := r.number(r.line, "the processing time", fields[1], r.unitNs)
	if err != nil {
		return err
	}
	preds, err := r.count("the number of predecessors", fields[2])
	if err != nil {
		return err
	}
	to := len(r.nodes)
	r.byID[id] = to
	n := node{line: r.line}
	n.task.Name, n.task.Costs = "T"+strconv.Itoa(id), everywhere(ns)
	r.nodes = append(r.nodes, n)
	switch list := fields[3:]; {
	case len(list) == preds:
		for _, text := range list {
			if err := r.pred(to, text, "0"); err != nil {
				return err
			}
		}
	case len(list) == 0:
		return r.predLines(id, to, preds)
	default:
		return r.errorf(r.line, "task %d has %d predecessors, and %d stand on its line; write as many, or each on a line of its own with its cost", id, preds, len(list))
	}
	return nil
}

// predLines reads predecessors that stand on lines of their own.
func (r *stgReader) predLines(id, to, preds int) error {
	for i := range preds {
		fields := r.next()
		if len(fields) != 2 {
			return r.errorf(r.line, "predecessor %d of %d of task %d is a line with %d numbers; write the predecessor and its communication cost", i+1, preds, id, len(fields))
		}
		if err := r.pred(to, fields[0], fields[1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *stgReader) pred(to int, id, cost string) error {
	n, err := r.count("a predecessor", id)
	if err != nil {
		return err
	}
	bytes, err := r.number(r.line, "a communication cost", cost, r.unitNs)
	r.preds = append(r.preds, stgPred{n, to, r.line, bytes})
	return err
}
