package dag

import (
	"fmt"
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

	// RecordedOn is the name of the platform file of the machine on which the costs were recorded. It lies in the directory of the
	// graph's own file. Empty means that costs hold as they are. It is no part of the hash.
	RecordedOn string

	*Links

	access      []int32   // first access of each task in covers, and one past the last
	covers      []Covered // of each access
	atomLists   []int32
	atomStorage []BufferID
	atomBytes   []int64
	storageAtom []AtomID // first atom of each storage and one past the last; views repeat their owner's
	isCarried   []bool   // by storage
	isWritten   []bool   // by storage
	versions    []int32  // by storage; nil means one of each
	grids       []*grid  // by storage: its cuts; nil where it has none, as [Graph.cutStorages] says

	// Each of these is found once, when asked for.
	names         func() *taskNames
	buffersByName func() []BufferID // the buffers in the order of their names
	hash          func() string
}

// taskNames is the order of the names of tasks.
type taskNames struct {
	rank   []int32  // position of each task
	byName []TaskID // the tasks in that order
}

// NumAtoms is the number of atoms of all storages.
func (g *Graph) NumAtoms() int { return len(g.atomStorage) }

// Covered is the part of a storage that an access covers. A walk over many tasks finds it sooner than the accesses themselves.
type Covered struct {
	Storage BufferID
	Mode    Mode
	span
}

// Covers lists what the accesses of a task cover, in their order.
func (g *Graph) Covers(t TaskID) []Covered { return g.covers[g.access[t]:g.access[t+1]] }

// AtomsOf are the atoms that an access covers.
func (g *Graph) AtomsOf(c Covered) []int32 { return g.atomLists[c.first:c.end:c.end] }

// Atoms are the atoms that access i of task t covers.
func (g *Graph) Atoms(t TaskID, i int) []int32 { return g.AtomsOf(g.covers[g.access[t]+int32(i)]) }

// AtomStorage is the buffer that owns the atom's storage.
func (g *Graph) AtomStorage(a AtomID) BufferID { return g.atomStorage[a] }

// AtomBytes is the size of an atom.
func (g *Graph) AtomBytes(a AtomID) int64 { return g.atomBytes[a] }

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

// CarriedStorages marks, by buffer, the storages that keep their contents from step to step.
// The list is the graph's own.
func (g *Graph) CarriedStorages() []bool { return g.isCarried }

// WrittenStorages marks, by buffer, the storages that some task writes. The list is the
// graph's own.
func (g *Graph) WrittenStorages() []bool { return g.isWritten }

// Versions is how many times a buffer's storage exists ([Buffer.Versions]).
func (g *Graph) Versions(b BufferID) int32 {
	if g.versions == nil {
		return 1
	}
	return g.versions[g.Storage(b)]
}

// AllVersions is how many times each storage exists, by buffer; nil means once. The list is the graph's own.
func (g *Graph) AllVersions() []int32 { return g.versions }

// WithVersions is the graph with other numbers of versions of its storages, by buffer. It keeps the
// buffers as they were declared, and with them its hash.
func (g *Graph) WithVersions(versions []int32) (*Graph, error) {
	for b, n := range versions {
		if n < 1 || n > MaxVersions {
			return nil, fmt.Errorf("buffer %q has %d versions; write a number from 1 to %d", g.Buffers[b].Name, n, MaxVersions)
		}
	}
	with := *g
	if with.versions = versions; mostVersions(versions) == 1 {
		with.versions = nil
	}
	with.Links, with.isCarried, with.isWritten = with.Body().Link()
	return &with, with.checkVersions()
}

// checkVersions refuses several versions of a storage that cannot have them.
func (g *Graph) checkVersions() error {
	for i, n := range g.versions {
		b := &g.Buffers[i]
		switch {
		case n == 1:
		case b.ViewOf != None:
			return fmt.Errorf("view %q has %d versions; write them at its owner %q", b.Name, n, g.Buffers[b.ViewOf].Name)
		case b.Role == Parameter || b.Role == State:
			return fmt.Errorf("buffer %q has %d versions and is a %s, of which there is one; leave copies out", b.Name, n, b.Role)
		case b.Home != "":
			return fmt.Errorf("buffer %q has %d versions and a home, where its contents are before the first step; leave one of the two out", b.Name, n)
		case !g.isWritten[i]:
			return fmt.Errorf("buffer %q has %d versions and no task writes it, so that all would hold the same; leave copies out", b.Name, n)
		case g.isCarried[i]:
			return fmt.Errorf("buffer %q has %d versions, and a task reads it before a task of the step writes it: its contents go on from step to step, in one; leave copies out", b.Name, n)
		}
	}
	return nil
}

// Box returns the box of access i of task t; the whole buffer's box when it is nil.
func (g *Graph) Box(t TaskID, i int) Box {
	a := &g.Tasks[t].Accesses[i]
	if a.Box != nil {
		return a.Box
	}
	return Whole(g.Buffers[a.Buffer].Shape)
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
func (g *Graph) Rank(t TaskID) int32 { return g.names().rank[t] }

// TaskByName finds a task in logarithmic time.
func (g *Graph) TaskByName(name string) (TaskID, bool) {
	byName := g.names().byName
	i, ok := slices.BinarySearchFunc(byName, name, func(t TaskID, name string) int {
		return strings.Compare(g.Tasks[t].Name, name)
	})
	if !ok {
		return 0, false
	}
	return byName[i], true
}

// BufferByName finds a buffer in logarithmic time.
func (g *Graph) BufferByName(name string) (BufferID, bool) {
	byName := g.buffersByName()
	i, ok := slices.BinarySearchFunc(byName, name, func(b BufferID, name string) int {
		return strings.Compare(g.Buffers[b].Name, name)
	})
	if !ok {
		return None, false
	}
	return byName[i], true
}

// rankTasks orders the tasks by name.
func (g *Graph) rankTasks() *taskNames {
	n := &taskNames{rank: make([]int32, len(g.Tasks)), byName: make([]TaskID, len(g.Tasks))}
	for r, t := range inOrder(len(g.Tasks), func(t int) string { return g.Tasks[t].Name }) {
		n.byName[r], n.rank[t] = TaskID(t), int32(r)
	}
	return n
}

// rankBuffers orders the buffers by name.
func (g *Graph) rankBuffers() []BufferID {
	byName := make([]BufferID, len(g.Buffers))
	for r, b := range inOrder(len(g.Buffers), func(b int) string { return g.Buffers[b].Name }) {
		byName[r] = BufferID(b)
	}
	return byName
}

// inOrder lists the indices of some names in the order of these.
func inOrder(n int, name func(i int) string) []int32 {
	type named struct {
		name string
		i    int32
	}
	all := make([]named, n)
	for i := range all {
		all[i] = named{name(i), int32(i)}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	order := make([]int32, n)
	for k, of := range all {
		order[k] = of.i
	}
	return order
}
