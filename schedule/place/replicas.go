package place

import (
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// replicas numbers the buffers of a placed graph: each of the origin has one in every
// memory that needs one, the host memory's first; several, one after the other, where
// contents leave the memory and come back.
type replicas struct {
	g       *dag.Graph
	host    platform.MemoryID
	use     platform.FewSets   // by buffer of the origin: the memories that need it
	first   []dag.BufferID     // by buffer of the origin: its first replica
	several map[location]int32 // how many a storage has in a memory, where there is more than one
	of      []dag.BufferID     // by replica: its buffer
	shift   []int32            // by replica of a storage: the number of an atom less its number in the origin; see numberAtoms
	atoms   int32              // of all
}

// newReplicas gives every buffer the replicas that a graph needs.
func (t *traffic) newReplicas() *replicas {
	g := t.g
	x := &replicas{g: g, host: t.host, use: t.usedIn(), first: make([]dag.BufferID, len(g.Buffers)), several: map[location]int32{}}
	for i := range t.spills {
		for at, n := range t.spills[i].uses {
			if n > 0 {
				x.several[at] = max(x.several[at], n+1)
			}
		}
	}
	total := 0
	for b := range g.Buffers {
		total += x.use.Count(int32(b))
	}
	x.of = make([]dag.BufferID, 0, total)
	for b := range g.Buffers {
		id := dag.BufferID(b)
		x.first[b] = dag.BufferID(len(x.of))
		for range x.count(id) {
			x.of = append(x.of, id)
		}
	}
	x.shift = make([]int32, len(x.of))
	return x
}

// count is how many replicas a buffer has.
func (x *replicas) count(b dag.BufferID) (n int32) {
	if len(x.several) == 0 {
		return int32(x.use.Count(int32(b)))
	}
	for _, m := range x.use.AppendTo(nil, int32(b)) {
		n += x.in(b, m)
	}
	return n
}

// in is how many replicas a buffer has in a memory that needs it.
func (x *replicas) in(b dag.BufferID, m platform.MemoryID) int32 {
	if len(x.several) == 0 {
		return 1
	}
	return max(1, x.several[location{x.g.Storage(b), m}])
}

// id is the n-th replica of a buffer in a memory.
func (x *replicas) id(at location, n int32) dag.BufferID {
	if at.memory == x.host {
		return x.first[at.storage] + dag.BufferID(n)
	}
	b := int32(at.storage) // the replicas in the host memory and in memories of smaller numbers come before
	if x.host > at.memory && x.use.Has(b, x.host) {
		n += x.in(at.storage, x.host)
	}
	if len(x.several) == 0 {
		return x.first[at.storage] + dag.BufferID(int32(x.use.CountBefore(b, at.memory))+n)
	}
	for _, m := range x.use.AppendTo(nil, b) {
		if m >= at.memory {
			break
		}
		n += x.in(at.storage, m)
	}
	return x.first[at.storage] + dag.BufferID(n)
}

// numberAtoms numbers the atoms of each replica from the first to the last one that tasks and transfers use there: of what many devices share, each may use little.
func (x *replicas) numberAtoms(body *dag.Body) {
	used := make([][2]int32, len(x.of))
	for t := range dag.TaskID(body.Tasks) {
		body.Each(t, func(replica dag.BufferID, _ dag.Mode, atoms []int32, _ int32) {
			first, end := slices.Min(atoms), slices.Max(atoms)+1
			if r := &used[replica]; r[1] == 0 {
				*r = [2]int32{first, end}
			} else {
				*r = [2]int32{min(r[0], first), max(r[1], end)}
			}
		})
	}
	for replica, r := range used {
		x.shift[replica] = x.atoms - r[0]
		x.atoms += r[1] - r[0]
	}
}

// memoryOf is the memory of a replica, and which one of several there it is.
func (x *replicas) memoryOf(replica dag.BufferID) (m platform.MemoryID, n int32) {
	b := x.of[replica]
	n = int32(replica - x.first[b])
	if x.use.Has(int32(b), x.host) {
		here := x.in(b, x.host)
		if n < here {
			return x.host, n
		}
		n -= here
	}
	for _, m = range x.use.AppendTo(nil, int32(b)) {
		if m == x.host {
			continue
		}
		here := x.in(b, m)
		if n < here {
			return m, n
		}
		n -= here
	}
	panic("place: a buffer has fewer replicas than were numbered")
}

// usedIn is the set of memories that need a replica of each buffer: a storage where
// tasks use it, where it comes from and goes to, and at home if it has contents between
// runs; a view where tasks use it.
func (t *traffic) usedIn() platform.FewSets {
	g := t.g
	use := t.p.NewFewSets(len(g.Buffers))
	for task := range g.Tasks {
		m := t.memoryOf(dag.TaskID(task))
		for _, a := range g.Tasks[task].Accesses {
			use.Add(int32(a.Buffer), m)
			use.Add(int32(g.Storage(a.Buffer)), m)
		}
	}
	for _, moves := range [][]*Move{t.moves, t.enter, t.leave} {
		for _, m := range moves {
			if m != nil {
				use.Add(int32(m.Buffer), m.From)
				use.Add(int32(m.Buffer), m.To)
			}
		}
	}
	for b := range g.Buffers { // a buffer that nobody uses may be the user's
		if owner := g.Buffers[b].ViewOf; use.Count(int32(b)) == 0 && owner != dag.None {
			for _, m := range use.AppendTo(nil, int32(owner)) {
				use.Add(int32(b), m)
			}
		} else if use.Count(int32(b)) == 0 {
			use.Add(int32(b), t.homes[b])
		}
	}
	return use
}
