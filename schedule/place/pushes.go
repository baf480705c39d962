package place

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// push is an atom that has to reach a reader, of the same step or of the next one, in
// another memory as soon as it is written.
type push struct {
	order  uint64 // the step, the reader's place in the plan, the rank of its name
	reader dag.TaskID
	atom   int32
}

// nextStep is set in the order of a push to a reader of the next step.
const nextStep = 1 << 63

// pushes lists the atoms to move as soon as they are written. Each writer serves its readers of this step first and
// then of the next, by their place in the plan, then by name.
type pushes struct {
	start []int32 // by task: the first of its pushes, and one past the last
	all   []push
}

// byWriter lists the pushes of a task. The number past the last task stands for the contents before the first step.
func (p *pushes) byWriter(writer int) []push { return p.all[p.start[writer]:p.start[writer+1]] }

// findPushes finds the readers of every value.
func (t *traffic) findPushes() *pushes {
	g, n := t.g, len(t.g.Tasks)
	p := &pushes{start: make([]int32, n+2)}
	t.eachPush(func(writer int32, _ push) { p.start[writer]++ })
	end := int32(0)
	for w, count := range p.start { // where each list ends: filling it from its end makes that its start
		end += count
		p.start[w] = end
	}
	p.all = make([]push, end)
	t.eachPush(func(writer int32, is push) {
		is.order |= uint64(t.position[is.reader])<<32 | uint64(g.Rank(is.reader))
		p.start[writer]--
		p.all[p.start[writer]] = is
	})
	for w := range n + 1 {
		list := p.byWriter(w)
		slices.Reverse(list)
		if before := func(a, b push) int { return cmp.Compare(a.order, b.order) }; !slices.IsSortedFunc(list, before) {
			slices.SortStableFunc(list, before)
		}
	}
	return p
}

// eachPush visits what is read in another memory than where it was written or is at home.
func (t *traffic) eachPush(visit func(writer int32, is push)) {
	EachReading(t.g, func(writer int32, reader dag.TaskID, atom int32, next bool) {
		if t.writtenIn(writer, t.g.AtomStorage(dag.AtomID(atom)), t.memoryOf(reader)) == t.memoryOf(reader) {
			return
		}
		is := push{reader: reader, atom: atom}
		if next {
			is.order = nextStep
		}
		visit(writer, is)
	})
}

// EachReading visits the reads of every task of a steady step, atom by atom, with the task that wrote the atom in the
// same step or in the one before. The number of tasks stands for a writer before the first step.
func EachReading(g *dag.Graph, visit func(writer int32, reader dag.TaskID, atom int32, nextStep bool)) {
	eachReading(g, []bool{false, true}, visit)
}

// EachReadingOfFirst visits the reads of every task of the first step.
func EachReadingOfFirst(g *dag.Graph, visit func(writer int32, reader dag.TaskID, atom int32)) {
	eachReading(g, []bool{false}, func(writer int32, reader dag.TaskID, atom int32, _ bool) { visit(writer, reader, atom) })
}

func eachReading(g *dag.Graph, passes []bool, visit func(writer int32, reader dag.TaskID, atom int32, nextStep bool)) {
	none := int32(len(g.Tasks)) // what is there before the first step
	last := slices.Repeat([]int32{none}, g.NumAtoms())
	for _, next := range passes {
		for id := range dag.TaskID(none) {
			for _, a := range g.Covers(id) {
				if !a.Mode.Reads() || next && !g.Carried(a.Storage) {
					continue
				}
				for _, atom := range g.AtomsOf(a) {
					// The second pass adds only values that the step before left.
					if w := last[atom]; w >= 0 && !(next && w == none) {
						visit(w, id, atom, next)
					}
				}
			}
			for _, a := range g.Covers(id) {
				if !a.Mode.Writes() {
					continue
				}
				writer := int32(id)
				if next {
					writer = -1 // written in this very step: the first pass has seen it
				}
				for _, atom := range g.AtomsOf(a) {
					last[atom] = writer
				}
			}
		}
	}
}

// writtenIn is where a task has written a storage; for the one past the last, where the
// storage is at home for a reader.
func (t *traffic) writtenIn(writer int32, storage dag.BufferID, reader platform.MemoryID) platform.MemoryID {
	if int(writer) == len(t.worker) {
		return t.startsIn(storage, reader)
	}
	return t.memoryOf(dag.TaskID(writer))
}
