package schedule

import (
	"math/bits"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// residency knows the memories with valid contents of every atom, and the live bytes of every memory.
// A set of memories is a word, one bit for each.
//
// An atom of a storage that keeps its contents from step to step stays live until a write
// elsewhere makes it invalid. An atom of any other storage is freed after its last use in the
// step. An input without a home is everywhere and costs nothing.
type residency struct {
	p        *Problem
	versions []int32  // by storage: number of versions; nil means one of each
	valid    []uint64 // by atom and version ([residency.versionOf]): memories that have it
	uses     []int32  // by atom: number of accesses in a step after which it is freed; zero means never
	left     []int32  // by atom and version: number of those accesses still to come
	live     []int64  // bytes by memory
}

const Everywhere = ^uint64(0)

func newResidency(p *Problem) (*residency, error) {
	g := p.Graph
	memories := len(p.Platform.Memories)
	r := &residency{p: p, versions: g.AllVersions(), valid: make([]uint64, g.NumAtoms()*int(g.Reach())),
		uses: make([]int32, g.NumAtoms()), live: make([]int64, memories)}
	written := g.WrittenStorages()
	for b := range g.Buffers {
		id := dag.BufferID(b)
		if g.Storage(id) != id {
			continue
		}
		start, counted, err := InitialMemories(p, id, written[b])
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

// versionOf is the number of an atom in a step, in lists by atom and version.
func (r *residency) versionOf(atom, step int32) int32 {
	if r.versions == nil {
		return atom
	}
	return atom + step%r.versions[r.p.Graph.AtomStorage(dag.AtomID(atom))]*int32(len(r.uses))
}

// displace frees an atom's contents of an earlier step, if a step takes their version's place in a memory with fewer
// versions than another.
func (r *residency) displace(atom, step int32, m platform.MemoryID) {
	if r.p.Versions == nil {
		return
	}
	if before := step - r.p.versionsIn(r.p.Graph.AtomStorage(dag.AtomID(atom)), m); before >= 0 {
		if old := r.versionOf(atom, before); old != r.versionOf(atom, step) {
			r.drop(atom, r.valid[old]&(1<<m))
			r.valid[old] &^= 1 << m
		}
	}
}

// InitialMemories is the set of memories with a storage's contents before the first step. counted
// says whether its bytes count there.
func InitialMemories(p *Problem, storage dag.BufferID, written bool) (set uint64, counted bool, err error) {
	b := &p.Graph.Buffers[storage]
	switch {
	case b.Home != "":
		m, err := place.Home(p.Platform, b)
		return 1 << m, true, err
	case !written:
		return Everywhere, false, nil
	case p.Graph.Carried(storage):
		return 1 << p.Platform.HostMemory(), true, nil
	}
	return 0, false, nil
}

// occupy makes room for the results of a task and makes them invalid in all other memories.
func (r *residency) occupy(i dag.Instance, m platform.MemoryID) {
	g, t, here := r.p.Graph, i.Task, uint64(1)<<m
	for k, a := range g.Tasks[t].Accesses {
		if !a.Mode.Writes() {
			continue
		}
		for _, atom := range g.Atoms(t, k) {
			r.displace(atom, i.Step, m)
			is := r.versionOf(atom, i.Step)
			r.drop(atom, r.valid[is]&^here)
			if r.valid[is]&here == 0 {
				r.take(atom, m)
			}
			r.valid[is] = here
		}
	}
}

// end frees atoms that no later task of the step uses.
func (r *residency) end(i dag.Instance) {
	g := r.p.Graph
	for k := range g.Tasks[i.Task].Accesses {
		for _, atom := range g.Atoms(i.Task, k) {
			if r.uses[atom] == 0 {
				continue
			}
			is := r.versionOf(atom, i.Step)
			if r.left[is]--; r.left[is] == 0 {
				r.left[is] = r.uses[atom]
				r.drop(atom, r.valid[is])
				r.valid[is] = 0
			}
		}
	}
}

// take counts an atom in a memory from now on.
func (r *residency) take(atom int32, m platform.MemoryID) {
	r.live[m] += r.p.Graph.AtomBytes(dag.AtomID(atom))
}

// drop stops counting an atom in a set of memories.
func (r *residency) drop(atom int32, set uint64) {
	for ; set != 0; set &= set - 1 {
		r.live[bits.TrailingZeros64(set)] -= r.p.Graph.AtomBytes(dag.AtomID(atom))
	}
}
