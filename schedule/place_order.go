package schedule

import (
	"cmp"
	"fmt"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// The order of the copies on each engine comes from an estimate of three steps: workers
// run their lists, a task takes what it costs and a copy what its route takes with
// nothing else on it; an engine takes the copy that has been ready longest, and of
// several the one whose reader comes first, ties by name. What it did in the middle step is the order.
// It is one that all lanes can keep together, whatever the times turn out to be: it is
// the order in which things started in a run that kept all dependences.
const (
	estimatedSteps = 3
	steadyStep     = 1
)

// estimate is that run.
type estimate struct {
	p     *Problem // of the origin
	pg    *PlacedGraph
	lanes []Lane

	lists   [][]dag.TaskID // by lane of a worker
	at      []Instance     // by lane of a worker: position in its list, and step
	groups  []engineGroup
	waiting map[engineGroup]*Heap[readyCopy]
	busy    []bool // by lane

	pending  [estimatedSteps][]int32 // predecessors that have not ended
	now      time.Duration
	ends     Heap[laneEnd]
	order    [][]dag.TaskID // by lane of an engine: copies of the steady step, as started
	started  []dag.TaskID   // all of the steady step
	position []int32        // by task of the origin
	done     int
}

// engineGroup is the engines that can do the same copies.
type engineGroup struct {
	memory platform.MemoryID
	in     bool
}

// groupOf is the engines that serve a move: as for the Engine ([platform.Platform.EnginesTaken]), those of its
// destination, else those of its source. ok is false where no limited engine does.
func groupOf(p *platform.Platform, m *Move) (group engineGroup, ok bool) {
	in, out := p.EnginesTaken(m.From, m.To)
	if in {
		return engineGroup{m.To, true}, true
	}
	return engineGroup{m.From, false}, out
}

// Unlaned lists the copies that no limited engine makes.
func (pg *PlacedGraph) Unlaned(p *platform.Platform) (copies []dag.TaskID) {
	for t, m := range pg.moves {
		if m == nil {
			continue
		}
		if _, ok := groupOf(p, m); !ok {
			copies = append(copies, dag.TaskID(t))
		}
	}
	return copies
}

// Reaches reports whether a lane is an engine that can make a move.
func (placed *Placed) Reaches(lane int, m *Move) bool {
	l := &placed.Lanes[lane]
	group, ok := groupOf(placed.Platform, m)
	return ok && l.Worker < 0 && group == engineGroup{l.Memory, l.In}
}

// orderLanes lists the tasks of a steady step for each lane.
func orderLanes(p *Problem, pg *PlacedGraph, plan *Plan, lanes []Lane) error {
	if len(lanes) > len(p.Platform.Workers) && pg.moves != nil {
		_, err := startOrder(p, pg, plan, lanes)
		return err
	}
	pg.Order = pg.listsOf(plan, len(lanes))
	return nil
}

// listsOf are the tasks of a plan by worker, as they are in the placed graph.
func (pg *PlacedGraph) listsOf(plan *Plan, workers int) [][]dag.TaskID {
	lists := make([][]dag.TaskID, workers)
	if pg.moves == nil {
		copy(lists, plan.Order)
		return lists
	}
	for w, list := range plan.Order {
		lists[w] = make([]dag.TaskID, len(list))
		for i, t := range list {
			lists[w][i] = pg.PlacedAs(t)
		}
	}
	return lists
}

// startOrder lists the tasks of a steady step for each lane, and returns them all in the
// order in which they started.
func startOrder(p *Problem, pg *PlacedGraph, plan *Plan, lanes []Lane) (started []dag.TaskID, err error) {
	e := newEstimate(p, pg, plan, lanes)
	for {
		e.dispatch()
		if len(e.ends) == 0 {
			break
		}
		e.now = e.ends[0].at
		for len(e.ends) > 0 && e.ends[0].at == e.now {
			end := e.ends.Pop()
			if end.lane != noLane {
				e.busy[end.lane] = false
			}
			e.end(end.instance)
		}
	}
	if want := estimatedSteps * pg.NumTasks(); e.done != want {
		return nil, fmt.Errorf("the plan's order contradicts the dependences of its copies: %d of %d tasks could start", e.done, want)
	}
	copy(e.order, e.lists)
	pg.Order = e.order
	return e.started, nil
}

func newEstimate(p *Problem, pg *PlacedGraph, plan *Plan, lanes []Lane) *estimate {
	e := &estimate{p: p, pg: pg, lanes: lanes, waiting: map[engineGroup]*Heap[readyCopy]{},
		busy: make([]bool, len(lanes)), order: make([][]dag.TaskID, len(lanes)), at: make([]Instance, len(p.Platform.Workers))}
	_, e.position = plan.placement(len(p.Graph.Tasks))
	e.lists = pg.listsOf(plan, len(p.Platform.Workers))
	for _, l := range lanes[len(p.Platform.Workers):] {
		group := engineGroup{l.Memory, l.In}
		if e.waiting[group] == nil {
			e.groups = append(e.groups, group)
			e.waiting[group] = &Heap[readyCopy]{}
		}
	}
	for step := range e.pending {
		e.pending[step] = make([]int32, pg.NumTasks())
		for t := range e.pending[step] {
			id := dag.TaskID(t)
			e.pending[step][t] = 1 + int32(len(pg.Preds(id)))
			if step > 0 {
				e.pending[step][t] += int32(len(pg.CarriedPreds(id)) + len(pg.ReusePreds(id)))
			}
		}
	}
	for step := range e.pending {
		for t := range e.pending[step] {
			e.countDown(Instance{dag.TaskID(t), int32(step)})
		}
	}
	return e
}

// end counts down the successors of what has ended.
func (e *estimate) end(i Instance) {
	e.done++
	for _, t := range e.pg.Succs(i.Task) {
		e.countDown(Instance{dag.TaskID(t), i.Step})
	}
	if i.Step+1 == estimatedSteps {
		return
	}
	for _, next := range [2][]int32{e.pg.CarriedSuccs(i.Task), e.pg.ReuseSuccs(i.Task)} {
		for _, t := range next {
			e.countDown(Instance{dag.TaskID(t), i.Step + 1})
		}
	}
}

// countDown queues a copy that waits for nothing any more.
func (e *estimate) countDown(i Instance) {
	left := &e.pending[i.Step][i.Task]
	if *left--; *left > 0 {
		return
	}
	m := e.pg.Move(i.Task)
	if m == nil {
		return
	}
	if group, ok := groupOf(e.p.Platform, m); ok {
		is := readyCopy{estimate: e, Instance: i, since: e.now, readerStep: i.Step, readerAt: e.position[m.For]}
		if m.NextStep {
			is.readerStep++
		}
		e.waiting[group].Push(is)
	} else {
		e.start(noLane, i, e.p.Platform.RouteTime(m.From, m.To, m.Bytes))
	}
}

// dispatch starts what can start on lanes that are free.
func (e *estimate) dispatch() {
	for w, list := range e.lists {
		at := &e.at[w] // Task counts positions here
		if e.busy[w] || len(list) == 0 || at.Step == estimatedSteps || e.pending[at.Step][list[at.Task]] > 0 {
			continue
		}
		i := Instance{list[at.Task], at.Step}
		if at.Task++; int(at.Task) == len(list) {
			*at = Instance{Step: at.Step + 1}
		}
		e.start(w, i, e.p.occupies(e.pg.TaskOf(i.Task), platform.WorkerID(w)))
	}
	for _, group := range e.groups {
		for queue := e.waiting[group]; len(*queue) > 0; {
			l, ok := e.freeEngine(group)
			if !ok {
				break
			}
			i := queue.Pop().Instance
			if i.Step == steadyStep {
				e.order[l] = append(e.order[l], i.Task)
			}
			m := e.pg.moves[i.Task]
			e.start(l, i, e.p.Platform.RouteTime(m.From, m.To, m.Bytes))
		}
	}
}

// freeEngine is the free engine of a group that has the fewest copies in its list.
func (e *estimate) freeEngine(group engineGroup) (lane int, ok bool) {
	for l := len(e.lists); l < len(e.lanes); l++ {
		if (engineGroup{e.lanes[l].Memory, e.lanes[l].In}) == group && !e.busy[l] && (!ok || len(e.order[l]) < len(e.order[lane])) {
			lane, ok = l, true
		}
	}
	return lane, ok
}

func (e *estimate) start(lane int, i Instance, takes time.Duration) {
	if i.Step == steadyStep {
		e.started = append(e.started, i.Task)
	}
	if lane != noLane {
		e.busy[lane] = true
	}
	e.ends.Push(laneEnd{e.now + takes, lane, i})
}

// noLane is where a copy runs that waits for no engine.
const noLane = -1

// laneEnd is when a lane has done what it runs.
type laneEnd struct {
	at       time.Duration
	lane     int
	instance Instance
}

// Before orders ends by time, then lane.
func (a laneEnd) Before(b laneEnd) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.instance.Step, b.instance.Step), cmp.Compare(a.instance.Task, b.instance.Task)) < 0
}

// readyCopy is a copy that waits for an engine since some time.
type readyCopy struct {
	*estimate
	Instance
	since      time.Duration
	readerStep int32
	readerAt   int32 // position in its worker's list
}

// Before is the order in which an engine takes copies.
func (a readyCopy) Before(b readyCopy) bool {
	if a.since != b.since {
		return a.since < b.since
	}
	c := cmp.Or(cmp.Compare(a.readerStep, b.readerStep), cmp.Compare(a.readerAt, b.readerAt))
	return c < 0 || c == 0 && a.pg.compareCopies(a.Task, b.Task) < 0
}
