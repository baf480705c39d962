package schedule

import (
	"math/bits"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// flow is the data that passes between the tasks of one step.
type flow struct {
	start []int32 // by task: the first of its inflows, and one past the last
	all   []inflow
	homes homes
}

// into is the data that a task reads.
func (f *flow) into(t dag.TaskID) []inflow { return f.all[f.start[t]:f.start[t+1]] }

// inflow is the data that a task reads from one other task. Writer -1 stands for contents from
// before the step.
type inflow struct {
	writer  dag.TaskID
	storage dag.BufferID // of the contents from before the step
	bytes   int64
}

func newFlow(g *dag.Graph) *flow {
	f := &flow{start: make([]int32, len(g.Tasks)+1), homes: homes{written: g.WrittenStorages()}}
	n, reading := int32(len(g.Tasks)), dag.TaskID(0)
	place.EachReadingOfFirst(g, func(writer int32, reader dag.TaskID, atom int32) {
		for ; reading < reader; reading++ {
			f.start[reading+1] = int32(len(f.all))
		}
		if writer == n {
			writer = -1
		}
		f.add(reader, dag.TaskID(writer), g.AtomStorage(dag.AtomID(atom)), g.AtomBytes(dag.AtomID(atom)))
	})
	for ; int32(reading) < n; reading++ {
		f.start[reading+1] = int32(len(f.all))
	}
	return f
}

// add counts bytes that a task, the last one so far, reads from another.
func (f *flow) add(t, writer dag.TaskID, storage dag.BufferID, bytes int64) {
	into := f.all[f.start[t]:]
	k := slices.IndexFunc(into, func(in inflow) bool {
		return in.writer == writer && (writer >= 0 || in.storage == storage)
	})
	if k < 0 {
		f.all = append(f.all, inflow{writer, storage, bytes})
		return
	}
	into[k].bytes += bytes
}

// bytes is how much t reads from s.
func (f *flow) bytes(s, t dag.TaskID) int64 {
	for _, in := range f.into(t) {
		if in.writer == s {
			return in.bytes
		}
	}
	return 0
}

// homes tells where storages are before the first step.
type homes struct{ written []bool }

// memory is -1 for a storage that is everywhere, and for a home that the platform lacks.
func (h homes) memory(p *Problem, storage dag.BufferID) platform.MemoryID {
	set, counted, err := initialMemories(p, storage, h.written[storage])
	if err != nil || !counted {
		return -1
	}
	return platform.MemoryID(bits.TrailingZeros64(set))
}
