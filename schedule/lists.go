package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
	"dahl/schedule/ready"
)

// noLane stands for the lane of a transfer that waits for no engine.
const noLane = -1

// Lists replays a plan: every lane of a placed graph runs its list in order, period after
// period, and waits for its next task even if a later one is ready. A transfer without a lane starts as soon as its
// predecessors have ended. Moves before the first step run at the same time as the step, and hold the tasks that read
// their contents.
//
// Lists has no clock. Its driver reports every end, and learns of every start.
type Lists struct {
	pg       *place.Graph
	p        *Problem // of the origin
	workers  int
	steps    *ready.Steps
	released []dag.Instance
	lane     []int32         // by task; noLane
	walk     *place.Walk     // through the lists of lanes
	busy     []bool          // by lane
	touched  []int           // lanes that may have something to start
	readyAt  []time.Duration // by slot and task
	entry    entry

	orders [][]dag.Edge // beyond the graph's, by the number of steps between the two tasks
}

// entry is the moves before the first step.
type entry struct {
	byLane  [][]int32      // moves that a lane has not started
	lane    []int32        // by move
	after   [][]int32      // by move: the next hops of its contents
	stages  []int32        // by move: the number of hops before it that have not ended
	readers [][]dag.TaskID // by move: tasks of the first step that wait for it
}

// deliveries are the moves that bring each atom before the first step: by atom, the destinations and numbers of the moves, ascending.
type deliveries struct {
	start []int32 // by atom; one more
	all   []uint64
}

func newDeliveries(atoms int, moves []*place.Move) *deliveries {
	d := &deliveries{start: make([]int32, atoms+1)}
	each := func(visit func(atom int32, key uint64)) {
		for i, m := range moves {
			for _, atom := range m.Atoms {
				if !m.Anywhere {
					visit(atom, uint64(m.To)<<32|uint64(i))
				}
			}
		}
	}
	each(func(atom int32, _ uint64) { d.start[atom]++ })
	end := int32(0)
	for atom, count := range d.start { // where each list ends: filling it from its end makes that its start
		end += count
		d.start[atom] = end
	}
	d.all = make([]uint64, end)
	each(func(atom int32, key uint64) {
		d.start[atom]--
		d.all[d.start[atom]] = key
	})
	for atom := range atoms {
		slices.Sort(d.all[d.start[atom]:d.start[atom+1]])
	}
	return d
}

// last is the last of the moves with numbers below some that brings an atom to a memory.
func (d *deliveries) last(atom int32, to platform.MemoryID, below int) (move int32, ok bool) {
	list := d.all[d.start[atom]:d.start[atom+1]]
	i, _ := slices.BinarySearch(list, uint64(to)<<32|uint64(below))
	if i == 0 || list[i-1]>>32 != uint64(to) {
		return 0, false
	}
	return int32(uint32(list[i-1])), true
}

// ListItem is a task, a transfer, or a move before the first step. It starts on a lane, or on none where Lane is
// negative.
type ListItem struct {
	Lane  int32
	Task  dag.Instance // of the placed graph
	Enter int32        // index into the graph's Enter, or -1 for a task or a transfer
}

// NewLists prepares a run of some steps of a graph that follows a plan.
func (d *Decision) NewLists(graph, steps int, timed bool) *Lists {
	pg := d.Placed.Graphs[graph]
	lanes := len(pg.Order)
	l := &Lists{pg: pg, p: d.Problem(graph, steps, timed), workers: len(d.Placed.Platform.Workers), orders: pg.MemoryOrders(),
		lane: slices.Repeat([]int32{noLane}, pg.NumTasks()), walk: pg.NewWalk(pg.Order, steps), busy: make([]bool, lanes)}
	if pg.Moves() == nil {
		l.orders = l.p.Orders()
	} else if steps > 1 {
		l.orders = pg.Orders()
	}
	l.steps = ready.New(pg.Links, steps, l.orders, nil, pg.MaxLag())
	l.readyAt = make([]time.Duration, int(ready.Ring(pg.Links, steps, pg.MaxLag()))*pg.NumTasks())
	for lane, list := range pg.Order {
		for _, t := range list {
			l.lane[t] = int32(lane)
		}
	}
	l.prepareEntry()
	return l
}

// Pace is the model of the times of the tasks.
func (l *Lists) Pace() *Pace {
	pg := l.pg
	return newPace(l.p, pg.Body(), newHandoffs(l.p, pg.Links, l.orders), pg.TaskOf)
}

// ReadyAt is the time at which an instance had all it waits for. It holds until the instance ends.
func (l *Lists) ReadyAt(i dag.Instance) time.Duration { return l.readyAt[l.steps.Slot(i)] }

// Finished reports whether every task and transfer of every step has ended.
func (l *Lists) Finished() bool { return l.steps.Finished() }

// Start begins the run and appends the items that start.
func (l *Lists) Start(items []ListItem) []ListItem {
	l.steps.Begin(slices.Concat(l.entry.readers...))
	for lane := range l.busy {
		l.touched = append(l.touched, lane)
	}
	for i, m := range l.pg.Enter {
		if !m.Anywhere && l.entry.stages[i] == 0 && l.entry.lane[i] == noLane {
			items = append(items, ListItem{noLane, dag.Instance{}, int32(i)})
		}
	}
	return l.startItems(0, items)
}

// Ended takes the end of an item, and appends the items that start.
func (l *Lists) Ended(was ListItem, now time.Duration, items []ListItem) []ListItem {
	if was.Lane != noLane {
		l.busy[was.Lane] = false
		l.touched = append(l.touched, int(was.Lane))
	}
	if was.Enter < 0 {
		l.steps.End(was.Task)
		return l.startItems(now, items)
	}
	for _, next := range l.entry.after[was.Enter] {
		if l.entry.stages[next]--; l.entry.stages[next] > 0 {
			continue
		}
		if lane := l.entry.lane[next]; lane != noLane {
			l.touched = append(l.touched, int(lane))
		} else {
			items = append(items, ListItem{noLane, dag.Instance{}, next})
		}
	}
	for _, t := range l.entry.readers[was.Enter] {
		l.steps.Release(t)
	}
	return l.startItems(now, items)
}

// startItems starts items: on lanes in their order, then items without a lane in the order of steps and names.
func (l *Lists) startItems(now time.Duration, items []ListItem) []ListItem {
	l.released = l.steps.TakeReleased(l.released)
	unlaned := l.released[:0]
	for _, i := range l.released {
		l.readyAt[l.steps.Slot(i)] = now
		if lane := l.lane[i.Task]; lane != noLane {
			l.touched = append(l.touched, int(lane))
		} else {
			unlaned = append(unlaned, i)
		}
	}
	slices.Sort(l.touched)
	for _, lane := range l.touched {
		if !l.busy[lane] {
			items = l.startOn(lane, items)
		}
	}
	first := len(items)
	for _, i := range unlaned {
		items = append(items, ListItem{noLane, i, -1})
	}
	slices.SortFunc(items[first:], func(a, b ListItem) int {
		return cmp.Or(cmp.Compare(a.Task.Step, b.Task.Step), l.pg.Compare(a.Task.Task, b.Task.Task))
	})
	l.touched = l.touched[:0]
	return items
}

// startOn starts the next item of a free lane, if it is ready: of its list, or of its moves before the first step. Of
// both, the one with the earlier reader goes first.
func (l *Lists) startOn(lane int, items []ListItem) []ListItem {
	i, ready := l.walk.At(lane)
	ready = ready && l.steps.Ready(i)
	if moves := l.entry.byLane[lane]; len(moves) > 0 && l.entry.stages[moves[0]] == 0 && !(ready && l.pg.ReadBefore(i, l.pg.Enter[moves[0]])) {
		l.entry.byLane[lane], l.busy[lane] = moves[1:], true
		return append(items, ListItem{int32(lane), dag.Instance{}, moves[0]})
	}
	if !ready {
		return items
	}
	l.walk.Pass(lane)
	l.busy[lane] = true
	return append(items, ListItem{int32(lane), i, -1})
}

// prepareEntry gives the moves before the first step to the engines and finds the hops and tasks that wait for them.
func (l *Lists) prepareEntry() {
	n := len(l.pg.Enter)
	l.entry = entry{byLane: make([][]int32, len(l.busy)), lane: slices.Repeat([]int32{noLane}, n), after: make([][]int32, n), stages: make([]int32, n), readers: make([][]dag.TaskID, n)}
	if n == 0 {
		return
	}
	brought := newDeliveries(l.pg.Origin.NumAtoms(), l.pg.Enter)
	for i, m := range l.pg.Enter {
		if m.Anywhere {
			continue
		}
		l.enterBy(int32(i), m)
		for _, atom := range m.Atoms {
			if first, ok := brought.last(atom, m.From, i); ok && appendNew(&l.entry.after[first], int32(i)) {
				l.entry.stages[i]++
			}
		}
	}
	if len(brought.all) > 0 {
		l.findReaders(brought)
	}
}

// enterBy gives a move to the engine that reaches it and has the fewest, the last of
// several; to none where it needs none.
func (l *Lists) enterBy(i int32, m *place.Move) {
	best := noLane
	for _, lane := range l.pg.Engines(m) {
		if best == noLane || len(l.entry.byLane[lane]) <= len(l.entry.byLane[best]) {
			best = lane
		}
	}
	if best != noLane {
		l.entry.byLane[best], l.entry.lane[i] = append(l.entry.byLane[best], i), int32(best)
	}
}

// findReaders finds the tasks that wait for moves before the first step.
func (l *Lists) findReaders(brought *deliveries) {
	g := l.pg.Origin
	entered := make([]bool, len(g.Buffers)) // by storage
	for _, m := range l.pg.Enter {
		entered[m.Buffer] = entered[m.Buffer] || !m.Anywhere
	}
	for w, list := range l.pg.Order[:l.workers] {
		memory := l.p.Platform.MemoryOf(platform.WorkerID(w))
		for _, t := range list {
			task := l.pg.TaskOf(t)
			for _, a := range g.Covers(task) {
				if !a.Mode.Reads() || !entered[a.Storage] {
					continue
				}
				for _, atom := range g.AtomsOf(a) {
					if move, ok := brought.last(atom, memory, len(l.pg.Enter)); ok {
						appendNew(&l.entry.readers[move], t)
					}
				}
			}
		}
	}
}

// appendNew appends what is not the last of a list.
func appendNew[T comparable](list *[]T, x T) bool {
	if n := len(*list); n > 0 && (*list)[n-1] == x {
		return false
	}
	*list = append(*list, x)
	return true
}
