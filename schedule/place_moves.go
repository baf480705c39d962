package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// traffic is what a plan moves between memories in a steady step.
//
// A *version* of an atom is what a task wrote there, or what was there before the run. A memory
// needs a version if one of its tasks reads it: in the same step, or in the next one for the last
// version of a storage that keeps its contents. The version goes there once, as soon as it is
// written. Everything of one storage, one writer and one first reader goes together.
type traffic struct {
	p        *Problem
	worker   []platform.WorkerID // by task
	position []int32             // by task: in its worker's list
	written  []bool              // by storage
	homes    []platform.MemoryID // by storage
	after    [][]*Move           // by task: what moves as soon as it has ended
	enter    []*Move
	leave    []*Move
	ways     map[[2]platform.MemoryID][]platform.MemoryID // hops found so far
}

// newTraffic derives the movements of a plan that fits its problem.
func newTraffic(p *Problem, plan *Plan) (*traffic, error) {
	n := len(p.Graph.Tasks)
	t := &traffic{p: p, written: p.Graph.WrittenStorages(), after: make([][]*Move, n), ways: map[[2]platform.MemoryID][]platform.MemoryID{}}
	t.worker, t.position = plan.placement(n)
	pushes := newPushes(p.Graph, t.position)
	for writer := range n {
		from := t.memoryOf(dag.TaskID(writer))
		moves, err := t.distribute(pushes.byWriter[writer], Move{Writer: dag.TaskID(writer), Reason: ReasonPrefetch}, func(dag.BufferID) platform.MemoryID { return from })
		if err != nil {
			return nil, err
		}
		t.after[writer] = moves
	}
	if err := t.findHomes(); err != nil {
		return nil, err
	}
	var err error
	t.enter, err = t.distribute(pushes.byWriter[n], Move{Writer: -1, Reason: ReasonEnter}, func(b dag.BufferID) platform.MemoryID { return t.homes[b] })
	if err != nil {
		return nil, err
	}
	return t, t.bringHome()
}

func (t *traffic) memoryOf(task dag.TaskID) platform.MemoryID { return t.p.memoryOf(t.worker[task]) }

// findHomes finds where the contents of every storage are kept between runs.
func (t *traffic) findHomes() error {
	t.homes = make([]platform.MemoryID, len(t.p.Graph.Buffers))
	for b := range t.homes {
		t.homes[b] = t.p.Platform.HostMemory()
		name := t.p.Graph.Buffers[b].Home
		if name == "" || name == HostHome {
			continue
		}
		m, ok := t.p.Platform.MemoryByName(name)
		if !ok {
			return fmt.Errorf("buffer %q: its home %q is not a memory of platform %q; write one, or %q", t.p.Graph.Buffers[b].Name, name, t.p.Platform.Name, HostHome)
		}
		t.homes[b] = m
	}
	return nil
}

// distribute sends versions that were made together to the readers that need them,
// which come in the order in which to serve them. like has their writer and the reason,
// source is the memory that has a storage's version.
func (t *traffic) distribute(to []pushTo, like Move, source func(storage dag.BufferID) platform.MemoryID) ([]*Move, error) {
	var moves []*Move
	reached := map[delivery]bool{} // beside the source
	for _, push := range to {
		first := len(moves) // moves for this reader
		for _, atom := range push.atoms {
			storage := t.p.Graph.AtomStorage(dag.AtomID(atom))
			at := source(storage)
			hops, err := t.hops(storage, at, t.memoryOf(push.reader))
			if err != nil {
				return nil, fmt.Errorf("task %q: %w", t.p.Graph.Tasks[push.reader].Name, err)
			}
			for _, next := range hops {
				if !reached[delivery{atom, next}] {
					reached[delivery{atom, next}] = true
					like.Buffer, like.From, like.To, like.For, like.NextStep = storage, at, next, push.reader, push.nextStep
					moves = t.load(moves, first, like, atom)
				}
				at = next
			}
		}
		sortStages(moves[first:], func(m *Move) platform.MemoryID { return t.memoryOf(m.For) })
	}
	return moves, nil
}

// load adds an atom to the move like the given one among those from first on, or to
// that one as a further move.
func (t *traffic) load(moves []*Move, first int, like Move, atom int32) []*Move {
	at := len(moves) - 1 // mostly the last one
	for at >= first && (moves[at].Buffer != like.Buffer || moves[at].From != like.From || moves[at].To != like.To) {
		at--
	}
	if at < first {
		at = len(moves)
		like.Anywhere = !t.written[like.Buffer] && t.p.Graph.Buffers[like.Buffer].Home == ""
		moves = append(moves, &like)
	}
	m := moves[at]
	if k, found := slices.BinarySearch(m.Atoms, atom); !found {
		m.Atoms = slices.Insert(m.Atoms, k, atom)
		m.Bytes += t.p.Graph.AtomBytes(dag.AtomID(atom))
	}
	return moves
}

// sortStages puts what is kept in the host memory for a moment before what goes on to a
// move's last memory.
func sortStages(moves []*Move, last func(*Move) platform.MemoryID) {
	stage := func(m *Move) int {
		if m.To == last(m) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(moves, func(a, b *Move) int { return stage(a) - stage(b) })
}

// hops are the memories through which a storage goes, the last one included: what would
// pass the host memory on its way between two others is kept there for a moment, since
// no engine reaches further. There are none within one memory.
func (t *traffic) hops(storage dag.BufferID, from, to platform.MemoryID) ([]platform.MemoryID, error) {
	if from == to {
		return nil, nil
	}
	if way, known := t.ways[[2]platform.MemoryID{from, to}]; known {
		return way, nil
	}
	pl := t.p.Platform
	if _, ok := pl.Route(from, to); !ok {
		return nil, fmt.Errorf("buffer %q has to move from memory %q to %q, and platform %q has no route between them",
			t.p.Graph.Buffers[storage].Name, pl.Memories[from].Name, pl.Memories[to].Name, pl.Name)
	}
	way := []platform.MemoryID{to}
	if host := pl.HostMemory(); pl.Passes(from, to, host) {
		way = []platform.MemoryID{host, to}
	}
	t.ways[[2]platform.MemoryID{from, to}] = way
	return way, nil
}

// bringHome finds what is valid only elsewhere after a step, of storages that keep
// their contents.
func (t *traffic) bringHome() error {
	g := t.p.Graph
	last := make([]dag.TaskID, g.NumAtoms()) // 1 + the task that writes it last
	for task := range g.Tasks {
		for i, a := range g.Tasks[task].Accesses {
			for _, atom := range g.Atoms(dag.TaskID(task), i) {
				if a.Mode.Writes() {
					last[atom] = dag.TaskID(task) + 1
				}
			}
		}
	}
	for atom, writer := range last {
		storage := g.AtomStorage(dag.AtomID(atom))
		if writer == 0 || !g.Carried(storage) || t.reaches(writer-1, int32(atom), t.homes[storage]) {
			continue
		}
		at := t.memoryOf(writer - 1)
		hops, err := t.hops(storage, at, t.homes[storage])
		if err != nil {
			return err
		}
		for _, next := range hops {
			t.leave = t.load(t.leave, 0, Move{Buffer: storage, From: at, To: next, For: -1, Writer: writer - 1, Reason: ReasonLeave}, int32(atom))
			at = next
		}
	}
	sortStages(t.leave, func(m *Move) platform.MemoryID { return t.homes[m.Buffer] })
	return nil
}

// reaches reports whether what a task wrote is in a memory when all that moves after
// it has arrived.
func (t *traffic) reaches(writer dag.TaskID, atom int32, m platform.MemoryID) bool {
	return t.memoryOf(writer) == m || slices.ContainsFunc(t.after[writer], func(move *Move) bool {
		_, has := slices.BinarySearch(move.Atoms, atom)
		return has && move.To == m
	})
}
