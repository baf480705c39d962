package policy

import (
	"slices"

	"dahl/dag"
	"dahl/schedule/place"
)

// flow counts the bytes that tasks of one step read of each other.
type flow struct {
	start []int32 // by task: the first of its inflows, and one past the last
	all   []inflow
}

// inflow is the bytes that a task reads of another one.
type inflow struct {
	writer int32
	bytes  int64
}

// inflowsPerTask is room for the inflows of most graphs.
const inflowsPerTask = 3

func newFlow(g *dag.Graph) *flow {
	n := dag.TaskID(len(g.Tasks))
	f := &flow{start: make([]int32, n+1), all: make([]inflow, 0, inflowsPerTask*n)}
	reading := dag.TaskID(0)
	until := func(reader dag.TaskID) {
		for ; reading < reader; reading++ {
			f.start[reading+1] = int32(len(f.all))
		}
	}
	place.EachReadingOfFirst(g, func(writer int32, reader dag.TaskID, atom int32) {
		if dag.TaskID(writer) == n {
			return // it was there before
		}
		until(reader)
		into := f.all[f.start[reader]:]
		k := slices.IndexFunc(into, func(in inflow) bool { return in.writer == writer })
		if k < 0 {
			f.all = append(f.all, inflow{writer, g.AtomBytes(dag.AtomID(atom))})
			return
		}
		into[k].bytes += g.AtomBytes(dag.AtomID(atom))
	})
	until(n)
	return f
}

// bytes is the number of bytes that t reads from s.
func (f *flow) bytes(s, t dag.TaskID) int64 {
	for _, in := range f.all[f.start[t]:f.start[t+1]] {
		if in.writer == int32(s) {
			return in.bytes
		}
	}
	return 0
}
