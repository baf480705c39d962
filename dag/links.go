package dag

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Links are the edges of a loop body: the orders of its tasks.
type Links struct {
	tasks        int
	reach        int32
	preds, succs Rows // within a step
	found        atomic.Pointer[across]
	find         func() *across
}

// across are the edges from earlier steps. They are found when they are first asked for, since a run of one step has none.
type across struct {
	carried, carriedSuccs Rows // predecessors in the previous step, through carried storages
	// By how many steps back, less 1: predecessors in the step that used the same version of a storage before.
	reuse, reuseSuccs []Rows
}

func (l *Links) across() *across {
	a := l.found.Load()
	if a == nil {
		a = l.find()
	}
	return a
}

// NumTasks is the number of tasks of one step.
func (l *Links) NumTasks() int { return l.tasks }

// Preds are the tasks of the same step that must end before t starts, ascending.
func (l *Links) Preds(t TaskID) []int32 { return l.preds.Row(int32(t)) }

// Succs are the tasks of the same step that wait for t, ascending.
func (l *Links) Succs(t TaskID) []int32 { return l.succs.Row(int32(t)) }

// CarriedPreds are the tasks of the previous step that must end before t starts, because storages keep their contents
// from step to step.
func (l *Links) CarriedPreds(t TaskID) []int32 { return l.across().carried.Row(int32(t)) }

// CarriedSuccs are the tasks of the next step that wait for t through carried storages.
func (l *Links) CarriedSuccs(t TaskID) []int32 { return l.across().carriedSuccs.Row(int32(t)) }

// ReusePreds are the tasks that must end before t may overwrite their operands, in the last step with the same
// version of the storage. It is back steps earlier, the number of the storage's versions.
func (l *Links) ReusePreds(t TaskID, back int32) []int32 {
	return l.across().reuse[back-1].Row(int32(t))
}

// ReuseSuccs are the reverse of ReusePreds.
func (l *Links) ReuseSuccs(t TaskID, back int32) []int32 {
	return l.across().reuseSuccs[back-1].Row(int32(t))
}

// Reach is the greatest number of steps between a task and a predecessor: the most versions of a storage, at least 1.
func (l *Links) Reach() int32 { return l.reach }

// PredsBack are the tasks of a step that must end before t starts, by the number of steps back. Zero means t's own
// step. Earlier steps have carried and reused ones.
func (l *Links) PredsBack(t TaskID, back int32) [2][]int32 {
	switch back {
	case 0:
		return [2][]int32{l.Preds(t)}
	case 1:
		return [2][]int32{l.CarriedPreds(t), l.ReusePreds(t, 1)}
	}
	return [2][]int32{l.ReusePreds(t, back)}
}

// Body is a loop body as far as the order of its tasks depends on it.
type Body struct {
	Tasks, Atoms int
	Keeps        []bool  // by storage: it keeps its contents from step to step whatever the tasks do
	Versions     []int32 // by storage: number of versions, which steps use in turn; nil means one of each
	Edges        int     // about how many there will be within a step
	// Each passes on the uses of atoms by a task, access by access. The numbers of a list count on from shift.
	// No task names an atom twice with a write among the two.
	Each func(t TaskID, use Use)
	// After appends the tasks that one follows without data.
	After func(t TaskID, tasks []int32) []int32
}

// Use is an access to atoms of a storage.
type Use func(storage BufferID, mode Mode, atoms []int32, shift int32)

// Link derives the edges by running over two consecutive steps, and finds the storages that keep their contents from
// step to step and the written ones. Edges within the first step are the body's. Edges from the first into the second
// are carried. For storages that are rewritten in every step they order the reuse of one version. The second step is
// then the next one with the same version.
func (b *Body) Link() (l *Links, carried, written []bool) {
	k := &linker{Links: &Links{tasks: b.Tasks, reach: mostVersions(b.Versions)}, versions: b.Versions, carries: slices.Clone(b.Keeps), written: make([]bool, len(b.Keeps)), readFirst: make([]bool, len(b.Keeps))}
	k.hazards = hazards{writer: slices.Repeat([]int32{unwritten}, b.Atoms), readers: slices.Repeat([]int32{-1}, b.Atoms), free: -1,
		first: make([]reader, min(b.Edges, readerChunk))}
	k.preds.start = append(make([]int32, 0, b.Tasks+1), 0)
	k.preds.to = make([]int32, 0, b.Edges)
	use := k.within
	for t := range TaskID(b.Tasks) {
		k.task = int32(t)
		b.Each(t, use)
		k.preds.to = b.After(t, k.preds.to)
		k.preds.closeRow()
	}
	for s := range k.carries {
		k.carries[s] = k.carries[s] || k.readFirst[s] && k.written[s]
	}
	k.preds = k.preds.fit()
	k.succs = k.preds.transpose(b.Tasks)
	k.find = sync.OnceValue(func() *across {
		k.found.Store(k.findAcross(b))
		return k.found.Load()
	})
	return k.Links, k.carries, k.written
}

// findAcross runs over the second step.
func (k *linker) findAcross(b *Body) *across {
	a := &across{reuse: make([]Rows, k.reach)}
	all := []*Rows{&a.carried}
	for i := range a.reuse {
		all = append(all, &a.reuse[i])
	}
	for _, e := range all {
		e.start = append(make([]int32, 0, b.Tasks+1), 0)
	}
	use := func(storage BufferID, mode Mode, atoms []int32, shift int32) {
		k.follow(a, storage, mode, atoms, shift)
	}
	for t := range TaskID(b.Tasks) {
		b.Each(t, use)
		for _, e := range all {
			e.closeRow()
		}
	}
	a.carried = a.carried.fit()
	a.carriedSuccs = a.carried.transpose(b.Tasks)
	for i := range a.reuse {
		a.reuse[i] = a.reuse[i].fit()
		a.reuseSuccs = append(a.reuseSuccs, a.reuse[i].transpose(b.Tasks))
	}
	return a
}

// mostVersions is the greatest number of versions of a storage.
func mostVersions(copies []int32) int32 { return slices.Max(append([]int32{1}, copies...)) }

// linker is the state of Link.
type linker struct {
	*Links
	hazards
	task                        int32
	versions                    []int32 // by storage; nil means one of each
	carries, written, readFirst []bool  // by storage
}

// within appends the tasks that an access of the first step must follow, and records it.
func (k *linker) within(storage BufferID, mode Mode, atoms []int32, shift int32) {
	for _, atom := range atoms {
		atom += shift
		if w := k.writer[atom]; w >= 0 {
			k.preds.to = append(k.preds.to, w)
		} else if mode == Read || mode == ReadWrite {
			k.readFirst[storage] = true // a Reduce starts from nothing, and does not read what the last step left
		}
		if mode.Writes() {
			k.preds.to = k.takeReaders(k.preds.to, atom)
			k.writer[atom] = k.task
		} else {
			k.addReader(k.task, atom)
		}
	}
	if mode.Writes() {
		k.written[storage] = true
	}
}

// follow does so for an access of the second step, as far as it follows tasks of the first.
func (k *linker) follow(a *across, storage BufferID, mode Mode, atoms []int32, shift int32) {
	into := &a.reuse[0]
	switch {
	case k.carries[storage]:
		into = &a.carried
	case k.versions != nil:
		into = &a.reuse[k.versions[storage]-1]
	}
	for _, atom := range atoms {
		atom += shift
		if k.writer[atom] == overwritten {
			continue
		}
		if w := k.writer[atom]; w >= 0 {
			into.to = append(into.to, w)
		}
		if mode.Writes() {
			into.to = k.takeReaders(into.to, atom)
			k.writer[atom] = overwritten
		}
	}
}

// hazards is the state of the pass over the tasks: per atom the last writer and
// the readers since, as linked lists in one pool. The pool is in chunks, since it can
// become larger than the graph and growing would copy it.
type hazards struct {
	writer  []int32  // unwritten, overwritten, or the task
	readers []int32  // head of the list in pool, -1: empty
	first   []reader // the beginning of the pool, as much as is likely to be used
	pool    []*[readerChunk]reader
	used    int32 // of the pool
	free    int32 // head of the list of those used before, -1: empty
}

const (
	unwritten   = -1
	overwritten = -2 // in the second step
)

type reader struct{ task, next int32 }

const readerChunk = 1 << 13

func (h *hazards) reader(r int32) *reader {
	if int(r) < len(h.first) {
		return &h.first[r]
	}
	r -= int32(len(h.first))
	return &h.pool[r/readerChunk][r%readerChunk]
}

func (h *hazards) addReader(task, atom int32) {
	r := h.free
	switch {
	case r >= 0:
		h.free = h.reader(r).next
	case int(h.used) >= len(h.first) && (h.used-int32(len(h.first)))%readerChunk == 0:
		h.pool = append(h.pool, new([readerChunk]reader))
		fallthrough
	default:
		r = h.used
		h.used++
	}
	*h.reader(r) = reader{task, h.readers[atom]}
	h.readers[atom] = r
}

// takeReaders appends the readers of an atom, and empties its list.
func (h *hazards) takeReaders(to []int32, atom int32) []int32 {
	for r := h.readers[atom]; r >= 0; {
		is := h.reader(r)
		to = append(to, is.task)
		next := is.next
		is.next, h.free = h.free, r
		r = next
	}
	h.readers[atom] = -1
	return to
}
