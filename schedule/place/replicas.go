package place

import (
	"math/bits"

	"dahl/dag"
	"dahl/platform"
)

// replicas numbers the buffers of a placed graph: each of the origin has one in every
// memory that needs one, the host memory's first; several, one after the other, where
// contents leave the memory and come back.
type replicas struct {
	g         *dag.Graph
	host      platform.MemoryID
	use       []uint64           // by buffer of the origin: the memories that need it
	first     []dag.BufferID     // by buffer of the origin: its first replica
	several   map[location]int32 // how many a storage has in a memory, where there is more than one
	of        []dag.BufferID     // by replica: its buffer
	firstAtom []int32            // by storage of the origin: the first atom of its first replica
	atoms     int32              // of all
}

// newReplicas gives every buffer the replicas that a graph needs.
func (t *traffic) newReplicas() *replicas {
	g := t.g
	x := &replicas{g: g, host: t.host, use: t.usedIn(), first: make([]dag.BufferID, len(g.Buffers)), firstAtom: make([]int32, len(g.Buffers)), several: map[location]int32{}}
	for i := range t.spills {
		for at, n := range t.spills[i].uses {
			if n > 0 {
				x.several[at] = max(x.several[at], n+1)
			}
		}
	}
	total := 0
	for _, set := range x.use {
		total += bits.OnesCount64(set)
	}
	x.of = make([]dag.BufferID, 0, total)
	for b := range g.Buffers {
		id := dag.BufferID(b)
		x.first[b] = dag.BufferID(len(x.of))
		x.firstAtom[b] = x.atoms
		n := x.count(id, x.use[b])
		for range n {
			x.of = append(x.of, id)
		}
		if g.Storage(id) == id {
			first, end := g.StorageAtoms(id)
			x.atoms += n * int32(end-first)
		}
	}
	return x
}

// count is how many replicas a buffer has in a set of memories.
func (x *replicas) count(b dag.BufferID, in uint64) int32 {
	n := int32(bits.OnesCount64(in))
	if len(x.several) > 0 {
		for ; in != 0; in &= in - 1 {
			n += max(0, x.several[location{x.g.Storage(b), platform.MemoryID(bits.TrailingZeros64(in))}]-1)
		}
	}
	return n
}

// id is the n-th replica of a buffer in a memory.
func (x *replicas) id(at location, n int32) dag.BufferID {
	before := uint64(0) // the memories whose replicas come before
	if at.memory != x.host {
		before = x.use[at.storage] & (1<<at.memory - 1 | 1<<x.host)
	}
	return x.first[at.storage] + dag.BufferID(x.count(at.storage, before)+n)
}

// shift is the difference between the number of an atom of the origin and its number in a replica of its storage.
func (x *replicas) shift(replica dag.BufferID) int32 {
	b := x.of[replica]
	first, end := x.g.StorageAtoms(b)
	return x.firstAtom[b] + int32(replica-x.first[b])*int32(end-first) - int32(first)
}

// memoryOf is the memory of a replica, and which one of several there it is.
func (x *replicas) memoryOf(replica dag.BufferID) (m platform.MemoryID, n int32) {
	b := x.of[replica]
	n = int32(replica - x.first[b])
	for rest := x.use[b]; ; rest &^= 1 << m {
		m = platform.MemoryID(bits.TrailingZeros64(rest))
		if rest&(1<<x.host) != 0 {
			m = x.host
		}
		here := x.count(b, 1<<m)
		if n < here {
			return m, n
		}
		n -= here
	}
}

// usedIn is the set of memories that need a replica of each buffer: a storage where
// tasks use it, where it comes from and goes to, and at home if it has contents between
// runs; a view where tasks use it.
func (t *traffic) usedIn() []uint64 {
	g := t.g
	use := make([]uint64, len(g.Buffers))
	for task := range g.Tasks {
		set := uint64(1) << t.memoryOf(dag.TaskID(task))
		for _, a := range g.Tasks[task].Accesses {
			use[a.Buffer] |= set
			use[g.Storage(a.Buffer)] |= set
		}
	}
	for _, moves := range [][]*Move{t.moves, t.enter, t.leave} {
		for _, m := range moves {
			if m != nil {
				use[m.Buffer] |= 1<<m.From | 1<<m.To
			}
		}
	}
	for b := range use { // a buffer that nobody uses may be the user's
		if owner := g.Buffers[b].ViewOf; use[b] == 0 && owner != dag.None {
			use[b] = use[owner]
		} else if use[b] == 0 {
			use[b] = 1 << t.homes[b]
		}
	}
	return use
}
