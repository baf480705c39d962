package schedule

import (
	"fmt"
	"math/bits"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// residency knows where the contents of every atom are valid, where copies bring them, and how
// many bytes are live in every memory. A set of memories is a word, one bit for each.
//
// An atom of a storage that keeps its contents from step to step stays live until a write
// elsewhere makes it invalid. An atom of any other storage is freed after its last use in the
// step. An input without a home is everywhere and costs nothing.
type residency struct {
	p        *Problem
	copies   []int32    // by storage: how many versions exist beside each other; nil: one of each
	valid    []uint64   // by atom and copy ([residency.of]): memories that have it
	wanted   []uint64   // by atom: memories that have asked for a copy which has not started; nil outside the Engine
	arriving []uint64   // by atom: memories to which a copy is moving it; nil outside the Engine
	uses     []int32    // by atom: number of accesses in a step after which it is freed; 0: never freed
	left     []int32    // by atom and copy: number of those accesses still to come
	live     []int64    // bytes by memory
	evictors []*evictor // by memory; nil where it cannot overflow, for the host's memory, and outside the Engine
	shared   *sharing   // nil outside the Engine
}

const everywhere = ^uint64(0)

func newResidency(p *Problem) (*residency, error) {
	g := p.Graph
	memories := len(p.Platform.Memories)
	r := &residency{p: p, copies: g.AllCopies(), valid: make([]uint64, g.NumAtoms()*int(g.Reach())),
		uses: make([]int32, g.NumAtoms()), live: make([]int64, memories), evictors: make([]*evictor, memories)}
	written := g.WrittenStorages()
	for b := range g.Buffers {
		id := dag.BufferID(b)
		if g.Storage(id) != id {
			continue
		}
		start, counted, err := initialMemories(p, id, written[b])
		if err != nil {
			return nil, err
		}
		first, end := g.StorageAtoms(id)
		for a := first; a < end; a++ {
			r.valid[a] = start
			if counted {
				r.live[bits.TrailingZeros64(start)] += g.AtomBytes(a)
			}
		}
	}
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			if s := g.Storage(a.Buffer); written[s] && !g.Carried(s) {
				for _, atom := range g.Atoms(dag.TaskID(t), i) {
					r.uses[atom]++
				}
			}
		}
	}
	r.left = slices.Repeat(r.uses, int(g.Reach()))
	return r, nil
}

// several reports whether there are several copies of an atom's storage. Then all workers are at the
// host's memory, and what they read is there.
func (r *residency) several(atom int32) bool {
	return r.copies != nil && r.copies[r.p.Graph.AtomStorage(dag.AtomID(atom))] > 1
}

// of is the number of an atom in a step, in lists by atom and copy.
func (r *residency) of(atom, step int32) int32 {
	if r.copies == nil {
		return atom
	}
	return atom + step%r.copies[r.p.Graph.AtomStorage(dag.AtomID(atom))]*int32(len(r.uses))
}

// displace frees what a memory holds of an atom of the earlier step whose copy a step takes there,
// where another memory has more copies.
func (r *residency) displace(atom, step int32, m platform.MemoryID) {
	if r.p.Copies == nil {
		return
	}
	if before := step - r.p.copiesIn(r.p.Graph.AtomStorage(dag.AtomID(atom)), m); before >= 0 {
		if old := r.of(atom, before); old != r.of(atom, step) {
			r.drop(atom, r.valid[old]&(1<<m))
			r.valid[old] &^= 1 << m
		}
	}
}

// initialMemories is the set of memories with a storage's contents before the first step. counted
// says whether its bytes count there.
func initialMemories(p *Problem, storage dag.BufferID, written bool) (set uint64, counted bool, err error) {
	b := &p.Graph.Buffers[storage]
	switch {
	case b.Home != "":
		m, err := place.Home(p.Platform, b)
		return 1 << m, true, err
	case !written:
		return everywhere, false, nil
	case p.Graph.Carried(storage):
		return 1 << p.Platform.HostMemory(), true, nil
	}
	return 0, false, nil
}

// begin makes room for the results of a task. It fails when the memory is too small.
func (r *residency) begin(i dag.Instance, m platform.MemoryID) error {
	r.occupy(i, m)
	return r.overfull(m)
}

// occupy makes room for the results of a task and makes all other copies of them invalid.
func (r *residency) occupy(i dag.Instance, m platform.MemoryID) {
	g, t, here := r.p.Graph, i.Task, uint64(1)<<m
	for k, a := range g.Tasks[t].Accesses {
		if !a.Mode.Writes() {
			continue
		}
		for _, atom := range g.Atoms(t, k) {
			r.displace(atom, i.Step, m)
			is := r.of(atom, i.Step)
			all := r.valid[is] | r.coming(atom)
			r.drop(atom, all&^here)
			for others := all &^ here; others != 0; others &= others - 1 {
				if evictor := r.evictors[bits.TrailingZeros64(others)]; evictor != nil {
					evictor.doom(t, atom)
				}
			}
			if all&here == 0 {
				r.take(atom, m)
			}
			r.valid[is] = here
			r.callOff(atom)
		}
	}
}

// end frees atoms that no later task of the step uses.
func (r *residency) end(i dag.Instance) {
	g := r.p.Graph
	for _, evictor := range r.evictors {
		if evictor != nil {
			evictor.undoom(i.Task)
		}
	}
	for k := range g.Tasks[i.Task].Accesses {
		for _, atom := range g.Atoms(i.Task, k) {
			if r.uses[atom] == 0 {
				continue
			}
			is := r.of(atom, i.Step)
			if r.left[is]--; r.left[is] == 0 {
				r.left[is] = r.uses[atom]
				r.drop(atom, r.valid[is]|r.coming(atom))
				r.valid[is] = 0
				r.callOff(atom)
			}
		}
	}
}

// coming is where a copy of an atom is on its way to.
func (r *residency) coming(atom int32) uint64 {
	if r.arriving == nil {
		return 0
	}
	return r.arriving[atom]
}

// callOff lets no transfer of an atom come.
func (r *residency) callOff(atom int32) {
	if r.arriving != nil {
		r.arriving[atom], r.wanted[atom] = 0, 0
	}
}

// take counts an atom in a memory from now on.
func (r *residency) take(atom int32, m platform.MemoryID) {
	r.live[m] += r.p.Graph.AtomBytes(dag.AtomID(atom))
	if evictor := r.evictors[m]; evictor != nil {
		evictor.taken(atom)
	}
}

// drop stops counting an atom in a set of memories.
func (r *residency) drop(atom int32, set uint64) {
	bytes := r.p.Graph.AtomBytes(dag.AtomID(atom))
	for ; set != 0; set &= set - 1 {
		m := bits.TrailingZeros64(set)
		r.live[m] -= bytes
		if evictor := r.evictors[m]; evictor != nil {
			evictor.gone(atom)
		}
	}
}

// overfull fails when a memory holds more than its capacity.
func (r *residency) overfull(m platform.MemoryID) error {
	mem := &r.p.Platform.Memories[m]
	if mem.CapacityBytes == 0 || r.live[m] <= mem.CapacityBytes {
		return nil
	}
	return fmt.Errorf("memory %q would hold %s and has %s: %s too many", mem.Name, platform.ShortBytes(r.live[m]), platform.ShortBytes(mem.CapacityBytes), platform.ShortBytes(r.live[m]-mem.CapacityBytes))
}

// fits reports whether a memory has room for so many more bytes.
func (r *residency) fits(m platform.MemoryID, bytes int64) bool {
	limit := r.p.Platform.Memories[m].CapacityBytes
	return limit == 0 || r.live[m]+bytes <= limit
}

// missing visits the atoms that a task reads and a memory lacks, with the size of the access that
// names them.
func (r *residency) missing(t dag.TaskID, m platform.MemoryID, visit func(atom int32, accessBytes int64)) {
	g := r.p.Graph
	for i, a := range g.Tasks[t].Accesses {
		if !a.Mode.Reads() {
			continue
		}
		bytes := int64(-1)
		for _, atom := range g.Atoms(t, i) {
			if r.valid[atom]&(1<<m) != 0 || r.several(atom) {
				continue
			}
			if bytes < 0 {
				bytes = g.RegionBytes(t, i)
			}
			visit(atom, bytes)
		}
	}
}

// holds reports whether a memory has everything that a task reads.
func (r *residency) holds(t dag.TaskID, m platform.MemoryID) bool {
	g := r.p.Graph
	for i, a := range g.Tasks[t].Accesses {
		if !a.Mode.Reads() {
			continue
		}
		for _, atom := range g.Atoms(t, i) {
			if r.valid[atom]&(1<<m) == 0 && !r.several(atom) {
				return false
			}
		}
	}
	return true
}

// overwritesElsewhere reports whether a task that writes in one memory makes contents of another
// one invalid, valid or on their way.
func (r *residency) overwritesElsewhere(t dag.TaskID, m platform.MemoryID) bool {
	g := r.p.Graph
	for i, a := range g.Tasks[t].Accesses {
		if !a.Mode.Writes() {
			continue
		}
		for _, atom := range g.Atoms(t, i) {
			if (r.valid[atom]|r.arriving[atom])&^(1<<m) != 0 {
				return true
			}
		}
	}
	return false
}

// source is the memory from which an atom reaches another one soonest, as part of a region of
// regionBytes. Ties go to the lower index.
func (r *residency) source(atom int32, to platform.MemoryID, regionBytes int64) platform.MemoryID {
	set := r.valid[atom]
	best := platform.MemoryID(bits.TrailingZeros64(set))
	if set&(set-1) == 0 {
		return best
	}
	for rest := set & (set - 1); rest != 0; rest &= rest - 1 {
		m := platform.MemoryID(bits.TrailingZeros64(rest))
		if r.p.Platform.RouteTime(m, to, regionBytes) < r.p.Platform.RouteTime(best, to, regionBytes) {
			best = m
		}
	}
	return best
}
