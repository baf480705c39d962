package dag

import (
	"slices"
	"strings"
)

// MaxBufferElems bounds one buffer, so that byte counts cannot overflow.
const MaxBufferElems = 1 << 50

// Graph is a loop body: tasks in program order over regions of buffers, with the
// dependences derived from them. It is immutable after Build.
type Graph struct {
	Name    string
	Buffers []Buffer
	Tasks   []Task
	OpCosts []OpCosts // sorted by Op; already copied into the tasks

	preds, succs          edges // within a step
	carried, carriedSuccs edges // predecessors in the previous step, through carried storages
	reuse, reuseSuccs     edges // predecessors in the step that used the same instance of a storage before

	access      []int32 // first access of each task in spans, and one past the last
	spans       []span  // where the atoms of each access are in atomLists
	atomLists   []int32
	atomStorage []BufferID
	atomElems   []int64
	storageAtom []AtomID // first atom of each storage and one past the last; views repeat their owner's
	isCarried   []bool   // by buffer

	rank   []int32  // position of each task in the order of names
	byName []TaskID // the tasks in that order

	hash   func() string  // computes it once
	pieces func() []*grid // by buffer; cuts the storages again, once, when asked
}

// edges are rows of small lists in compressed form: row i is to[start[i]:start[i+1]].
type edges struct {
	start []int32
	to    []int32
}

func (e edges) row(i int32) []int32 { return e.to[e.start[i]:e.start[i+1]] }

// transpose returns the edges turned round, for rows rows.
func (e edges) transpose(rows int) edges {
	t := edges{start: make([]int32, rows+1), to: make([]int32, len(e.to))}
	for _, v := range e.to {
		t.start[v+1]++
	}
	for i := range rows {
		t.start[i+1] += t.start[i]
	}
	next := slices.Clone(t.start[:rows])
	for i := range len(e.start) - 1 {
		for _, v := range e.row(int32(i)) {
			t.to[next[v]] = int32(i)
			next[v]++
		}
	}
	return t
}

// NumTasks is the number of tasks of one step.
func (g *Graph) NumTasks() int { return len(g.Tasks) }

// Preds are the tasks of the same step that must end before t starts, ascending.
func (g *Graph) Preds(t TaskID) []int32 { return g.preds.row(int32(t)) }

// Succs are the tasks of the same step that wait for t, ascending.
func (g *Graph) Succs(t TaskID) []int32 { return g.succs.row(int32(t)) }

// CarriedPreds are the tasks of the previous step that must end before t starts,
// because of storages that keep their contents from step to step.
func (g *Graph) CarriedPreds(t TaskID) []int32 { return g.carried.row(int32(t)) }

// CarriedSuccs are the tasks of the next step that wait for t through carried storages.
func (g *Graph) CarriedSuccs(t TaskID) []int32 { return g.carriedSuccs.row(int32(t)) }

// ReusePreds are the tasks that must end before t may overwrite their operands, in the last step
// that used the same instance of the storage. That is the previous step when there is one
// instance, and the step before it when there are two.
func (g *Graph) ReusePreds(t TaskID) []int32 { return g.reuse.row(int32(t)) }

// ReuseSuccs are the reverse of ReusePreds.
func (g *Graph) ReuseSuccs(t TaskID) []int32 { return g.reuseSuccs.row(int32(t)) }

// NumAtoms is the number of atoms of all storages.
func (g *Graph) NumAtoms() int { return len(g.atomStorage) }

// Atoms are the atoms that access i of task t covers.
func (g *Graph) Atoms(t TaskID, i int) []int32 {
	s := g.spans[g.access[t]+int32(i)]
	return g.atomLists[s.first:s.end:s.end]
}

// AtomStorage is the buffer that owns the atom's storage.
func (g *Graph) AtomStorage(a AtomID) BufferID { return g.atomStorage[a] }

// AtomBytes is the size of an atom.
func (g *Graph) AtomBytes(a AtomID) int64 {
	return g.atomElems[a] * g.Buffers[g.atomStorage[a]].Type.SizeBytes()
}

// StorageAtoms returns the first atom of a buffer's storage and one past the last.
func (g *Graph) StorageAtoms(b BufferID) (first, end AtomID) {
	s := g.Storage(b)
	return g.storageAtom[2*s], g.storageAtom[2*s+1]
}

// Storage is the buffer that owns the storage of b: b itself, or the buffer that b views.
func (g *Graph) Storage(b BufferID) BufferID {
	if v := g.Buffers[b].ViewOf; v != None {
		return v
	}
	return b
}

// Carried reports whether the buffer keeps its contents from step to step: it is
// a parameter or optimiser state, or a step reads some of it before writing it.
func (g *Graph) Carried(b BufferID) bool { return g.isCarried[g.Storage(b)] }

// WrittenStorages marks, by buffer, the storages that some task writes.
func (g *Graph) WrittenStorages() []bool {
	written := make([]bool, len(g.Buffers))
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			if a.Mode.Writes() {
				written[g.Storage(a.Buffer)] = true
			}
		}
	}
	return written
}

// Box returns the box of access i of task t; the whole buffer's box when it is nil.
func (g *Graph) Box(t TaskID, i int) Box {
	a := &g.Tasks[t].Accesses[i]
	if a.Box != nil {
		return a.Box
	}
	return whole(g.Buffers[a.Buffer].Shape)
}

// RegionBytes is the size of access i of task t.
func (g *Graph) RegionBytes(t TaskID, i int) int64 {
	a := &g.Tasks[t].Accesses[i]
	b := &g.Buffers[a.Buffer]
	if a.Box == nil {
		return b.Bytes()
	}
	return a.Box.Elems() * b.Type.SizeBytes()
}

// Rank is the position of the task in the order of names. It breaks ties, so
// that a result never depends on the order of insertion.
func (g *Graph) Rank(t TaskID) int32 { return g.rank[t] }

// TaskByName finds a task in logarithmic time.
func (g *Graph) TaskByName(name string) (TaskID, bool) {
	i, ok := slices.BinarySearchFunc(g.byName, name, func(t TaskID, name string) int {
		return strings.Compare(g.Tasks[t].Name, name)
	})
	if !ok {
		return 0, false
	}
	return g.byName[i], true
}

// BufferByName finds a buffer.
func (g *Graph) BufferByName(name string) (BufferID, bool) {
	for i := range g.Buffers {
		if g.Buffers[i].Name == name {
			return BufferID(i), true
		}
	}
	return None, false
}

func (g *Graph) rankNames() {
	g.byName = orderByName(g.Tasks)
	g.rank = make([]int32, len(g.Tasks))
	for r, t := range g.byName {
		g.rank[t] = int32(r)
	}
}
