package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/platform/quantity"
	"dahl/schedule/layout"
)

// footprint is the bytes of a task's operands in one memory, each counted once, except inputs that are everywhere.
type footprint struct {
	p      *Problem
	bytes  []int64 // by task; nil where every memory can hold everything
	limits []int64 // capacities of memories, ascending, each once
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
	for m := range p.Platform.Memories {
		f.limits = append(f.limits, p.Platform.Memories[m].CapacityBytes)
	}
	slices.Sort(f.limits)
	f.limits = slices.Compact(f.limits)
	if p.whole {
		f.countWhole(counts)
		return f
	}
	seen := make([]int32, g.NumAtoms()) // 1 + the task that named the atom last
	for t := range g.Tasks {
		for _, a := range g.Covers(dag.TaskID(t)) {
			if !counts(a.Storage) {
				continue
			}
			for _, atom := range g.AtomsOf(a) {
				if seen[atom] != int32(t)+1 {
					seen[atom] = int32(t) + 1
					f.bytes[t] += g.AtomBytes(dag.AtomID(atom))
				}
			}
		}
	}
	return f
}

// countWhole counts the whole storages that tasks name, and all parameters and optimiser state.
func (f *footprint) countWhole(counts func(storage dag.BufferID) bool) {
	g, kept := f.p.Graph, int64(0)
	keeps := func(storage dag.BufferID) bool {
		role := g.Buffers[storage].Role
		return role == dag.Parameter || role == dag.State
	}
	for b := range g.Buffers {
		if g.Buffers[b].ViewOf == dag.None && keeps(dag.BufferID(b)) {
			kept += layout.Align(g.Buffers[b].Bytes())
		}
	}
	seen := make([]int32, len(g.Buffers)) // 1 + the task that named the storage last
	for t := range g.Tasks {
		f.bytes[t] = kept
		for _, a := range g.Tasks[t].Accesses {
			if s := g.Storage(a.Buffer); counts(s) && !keeps(s) && seen[s] != int32(t)+1 {
				seen[s] = int32(t) + 1
				f.bytes[t] += layout.Align(g.Buffers[s].Bytes()) * int64(g.Versions(s))
			}
		}
	}
}

// limits reports whether all storages that count exceed some memory.
func (p *Problem) limits(counts func(storage dag.BufferID) bool) bool {
	total := int64(0)
	for b := range p.Graph.Buffers {
		if p.Graph.Buffers[b].ViewOf == dag.None && counts(dag.BufferID(b)) {
			total += p.Graph.Buffers[b].Bytes()
		}
	}
	for m := range p.Platform.Memories {
		if limit := p.Platform.Memories[m].CapacityBytes; limit > 0 && limit < total {
			return true
		}
	}
	return false
}

// tooSmall is the largest capacity of memories that are too small for a task; zero means none.
func (f *footprint) tooSmall(t dag.TaskID) (most int64) {
	if f.bytes == nil {
		return 0
	}
	for _, limit := range f.limits {
		if f.bytes[t] > limit {
			most = limit
		}
	}
	return most
}

// holds reports whether a memory is larger than a capacity.
func holds(m *platform.Memory, capacity int64) bool {
	return m.CapacityBytes == 0 || m.CapacityBytes > capacity
}

// refusal says why a worker cannot run a task, as the end of a sentence that names both.
func (f *footprint) refusal(t dag.TaskID, w platform.WorkerID) string {
	m := f.p.Platform.MemoryOf(w)
	if holds(&f.p.Platform.Memories[m], f.tooSmall(t)) {
		return "which cannot run it"
	}
	mem := &f.p.Platform.Memories[m]
	return fmt.Sprintf("where it needs %s at once and memory %q has %s", quantity.ShortBytes(f.bytes[t]), mem.Name, quantity.ShortBytes(mem.CapacityBytes))
}
