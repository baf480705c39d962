package schedule

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// footprint is what a task needs in one memory while it runs. Without places that is the bytes of
// all its operands, each counted once, except inputs that are everywhere. With places it is a
// place for each operand.
type footprint struct {
	p     *Problem
	bytes []int64 // by task; nil where every memory can hold everything
}

// layoutOf is where the storages lie in a memory; nil: anywhere.
func (p *Problem) layoutOf(m platform.MemoryID) *layout.Layout {
	if int(m) >= len(p.Layouts) {
		return nil
	}
	return p.Layouts[m]
}

func newFootprint(p *Problem) *footprint {
	f := &footprint{p: p}
	g := p.Graph
	if !p.limits(func(dag.BufferID) bool { return true }) {
		return f // saves a look at every access of the graph
	}
	written := g.WrittenStorages()
	counts := func(storage dag.BufferID) bool { return written[storage] || g.Buffers[storage].Home != "" }
	if !p.limits(counts) {
		return f
	}
	f.bytes = make([]int64, len(g.Tasks))
	seen := make([]int32, g.NumAtoms()) // 1 + the task that named the atom last
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			if !counts(g.Storage(a.Buffer)) {
				continue
			}
			for _, atom := range g.Atoms(dag.TaskID(t), i) {
				if seen[atom] != int32(t)+1 {
					seen[atom] = int32(t) + 1
					f.bytes[t] += g.AtomBytes(dag.AtomID(atom))
				}
			}
		}
	}
	return f
}

// limits reports whether all storages that count exceed some memory without places.
func (p *Problem) limits(counts func(storage dag.BufferID) bool) bool {
	total := int64(0)
	for b := range p.Graph.Buffers {
		if p.Graph.Buffers[b].ViewOf == dag.None && counts(dag.BufferID(b)) {
			total += p.Graph.Buffers[b].Bytes()
		}
	}
	for m := range p.Platform.Memories {
		if limit := p.Platform.Memories[m].CapacityBytes; limit > 0 && limit < total && p.layoutOf(platform.MemoryID(m)) == nil {
			return true
		}
	}
	return false
}

// tooSmall is the set of memories that are too small for a task.
func (f *footprint) tooSmall(t dag.TaskID) uint64 {
	set := uint64(0)
	if f.bytes == nil && f.p.Layouts == nil {
		return set
	}
	for m := range f.p.Platform.Memories {
		if f.p.layoutOf(platform.MemoryID(m)) != nil {
			if f.unplaced(t, platform.MemoryID(m)) != dag.None {
				set |= 1 << m
			}
		} else if limit := f.p.Platform.Memories[m].CapacityBytes; limit > 0 && f.bytes != nil && f.bytes[t] > limit {
			set |= 1 << m
		}
	}
	return set
}

// unplaced is the first storage of a task without a place in a memory; dag.None if all have one.
func (f *footprint) unplaced(t dag.TaskID, m platform.MemoryID) dag.BufferID {
	for _, a := range f.p.Graph.Tasks[t].Accesses {
		if f.p.layoutOf(m).Offset[a.Buffer] == layout.Elsewhere {
			return f.p.Graph.Storage(a.Buffer)
		}
	}
	return dag.None
}

// refusal says why a worker cannot run a task, as the end of a sentence that names both.
func (f *footprint) refusal(t dag.TaskID, w platform.WorkerID) string {
	m := f.p.Platform.MemoryOf(w)
	if f.tooSmall(t)&(1<<m) == 0 {
		return "which cannot run it"
	}
	mem := &f.p.Platform.Memories[m]
	if f.p.layoutOf(m) != nil {
		b := &f.p.Graph.Buffers[f.unplaced(t, m)]
		return fmt.Sprintf("where memory %q has no place for buffer %q of %s beside what is used with it", mem.Name, b.Name, platform.ShortBytes(b.Bytes()))
	}
	return fmt.Sprintf("where it needs %s at once and memory %q has %s", platform.ShortBytes(f.bytes[t]), mem.Name, platform.ShortBytes(mem.CapacityBytes))
}
