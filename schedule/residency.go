package schedule

import (
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// residency knows the memories with valid contents of every atom, and the live bytes of every memory.
//
// An atom of a storage that keeps its contents from step to step stays live until a write
// elsewhere makes it invalid. An atom of any other storage is freed after its last use in the
// step. An input without a home is everywhere and costs nothing.
type residency struct {
	p        *Problem
	versions []int32             // by storage: number of versions; nil means one of each
	valid    platform.FewSets    // by atom and version ([residency.versionOf]): memories that have it
	uses     []int32             // by atom: number of accesses in a step after which it is freed; zero means never
	left     []int32             // by atom and version: number of those accesses still to come
	live     []int64             // bytes by memory
	dropped  []platform.MemoryID // scratch of drop
	counted  []platform.MemoryID // whose bytes may have changed since the caller has emptied the list
}

// newResidency begins before the first step. inUse reports which storages have contents in the host memory of a node: a node
// makes what its tasks need, and others do not have it.
func newResidency(p *Problem, inUse func(storage dag.BufferID, host platform.MemoryID) bool) (*residency, error) {
	g := p.Graph
	memories := len(p.Platform.Memories)
	r := &residency{p: p, versions: g.AllVersions(), valid: p.Platform.NewFewSets(g.NumAtoms() * int(g.Reach())),
		uses: make([]int32, g.NumAtoms()), live: make([]int64, memories)}
	written := g.WrittenStorages()
	for b := range g.Buffers {
		id := dag.BufferID(b)
		if g.Storage(id) != id {
			continue
		}
		start, err := InitialOf(p, id, written[b])
		if err != nil {
			return nil, err
		}
		homes := start.Homes(p.Platform)
		homes = slices.DeleteFunc(homes, func(m platform.MemoryID) bool { return m != start.Home && !inUse(id, m) })
		first, end := g.StorageAtoms(id)
		for a := first; a < end; a++ {
			if start.Everywhere {
				r.valid.Everywhere(int32(a))
			}
			for _, m := range homes {
				r.valid.Add(int32(a), m)
				r.live[m] += g.AtomBytes(a)
			}
		}
	}
	for t := range g.Tasks {
		for _, a := range g.Covers(dag.TaskID(t)) {
			if s := a.Storage; written[s] && !g.Carried(s) {
				for _, atom := range g.AtomsOf(a) {
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
			r.leave(old, m)
		}
	}
}

// leave takes an atom out of a memory, if it is there.
func (r *residency) leave(is int32, m platform.MemoryID) {
	if r.valid.Has(is, m) {
		r.count(m, -r.p.Graph.AtomBytes(dag.AtomID(int(is)%len(r.uses))))
		r.valid.Remove(is, m)
	}
}

// Initial is where the contents of a storage are before the first step.
type Initial struct {
	Everywhere bool // they are in each memory and take no room
	None       bool
	Home       platform.MemoryID // of a cluster's first node, where that is the host memory of each
	EachHost   bool
}

// Homes are the memories with the contents, if they take room.
func (i *Initial) Homes(p *platform.Platform) []platform.MemoryID {
	switch {
	case i.Everywhere || i.None:
		return nil
	case i.EachHost:
		return p.Hosts()
	}
	return []platform.MemoryID{i.Home}
}

// InitialOf is where a storage's contents are before the first step.
func InitialOf(p *Problem, storage dag.BufferID, written bool) (i Initial, err error) {
	b := &p.Graph.Buffers[storage]
	switch {
	case b.Home == "" && !written:
		return Initial{Everywhere: true}, nil
	case b.Home == "" && !p.Graph.Carried(storage):
		return Initial{None: true}, nil
	}
	i.Home, err = place.Home(p.Platform, b)
	i.EachHost = place.AtEachHost(b)
	return i, err
}

// occupy makes room for the results of a task and makes them invalid in all other memories.
func (r *residency) occupy(i dag.Instance, m platform.MemoryID) {
	g, t := r.p.Graph, i.Task
	for _, a := range g.Covers(t) {
		if !a.Mode.Writes() {
			continue
		}
		for _, atom := range g.AtomsOf(a) {
			r.displace(atom, i.Step, m)
			is := r.versionOf(atom, i.Step)
			r.drop(is, atom)
			r.valid.Only(is, m)
			r.take(atom, m)
		}
	}
}

// end frees atoms that no later task of the step uses.
func (r *residency) end(i dag.Instance) {
	g := r.p.Graph
	for _, a := range g.Covers(i.Task) {
		for _, atom := range g.AtomsOf(a) {
			if r.uses[atom] == 0 {
				continue
			}
			is := r.versionOf(atom, i.Step)
			if r.left[is]--; r.left[is] == 0 {
				r.left[is] = r.uses[atom]
				r.drop(is, atom)
			}
		}
	}
}

// take counts an atom in a memory from now on.
func (r *residency) take(atom int32, m platform.MemoryID) {
	r.count(m, r.p.Graph.AtomBytes(dag.AtomID(atom)))
}

// count changes the live bytes of a memory.
func (r *residency) count(m platform.MemoryID, bytes int64) {
	r.live[m] += bytes
	if n := len(r.counted); n == 0 || r.counted[n-1] != m {
		r.counted = append(r.counted, m)
	}
}

// drop takes an atom out of all memories.
func (r *residency) drop(is, atom int32) {
	r.dropped = r.valid.AppendTo(r.dropped[:0], is)
	for _, m := range r.dropped {
		r.count(m, -r.p.Graph.AtomBytes(dag.AtomID(atom)))
	}
	r.valid.Clear(is)
}
