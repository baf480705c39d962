package place

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/ready"
)

// The order of the transfers on each engine comes from an estimate of three steps, and as many before them as tasks lag
// behind others. Workers run their lists. A task
// takes its cost, and a transfer the time of its route with nothing else on it. An engine takes a transfer for the earliest step, and of several
// the one with the most urgent reader: what follows this reader takes the longest time. So a gradient that only an update reads waits for activations. Of several for one reader
// an engine takes the one that has been ready longest, and then the one from the memory next to its own, around the ring of all
// memories: so engines do not all begin with one memory. The name breaks ties. The order is that
// in the middle step. All lanes can keep it together, whatever the times turn out to be, since a run that kept all
// dependences started things in this order. Of a graph with more than manyTransfers tasks and transfers one step is estimated.
const (
	estimatedSteps = 3
	manyTransfers  = 1 << 18
)

// estimate is that run.
type estimate struct {
	*Graph
	lists   [][]dag.TaskID // by lane of a worker
	walk    *Walk          // through these
	touched []int          // lanes of workers that may have something to start
	queues  []engineQueue
	queueOf []int32 // by lane of an engine; lanes of workers have none
	waiting []int32 // queues that may have something to start
	busy    []bool  // by lane

	of       []estimated // by task
	steps    *ready.Steps
	released []dag.Instance
	now      time.Duration
	ends     ready.Heap[laneEnd]
	order    [][]dag.TaskID // by lane of an engine: transfers of the steady step, as started
	started  []dag.TaskID   // all of the steady step
	done     int
	all      int   // steps
	steady   int32 // period
}

// estimated is a task or a transfer in the estimate.
type estimated struct {
	takes, follows time.Duration // by itself; the longest path from its start to the end of the step
	lane           int32         // of a task
	queue          int32         // of a transfer; noLane: it needs no engine
}

// Walk goes through the lists of lanes in a run of some steps, period after period. It knows of each task the next one of its list, so that it does not look
// into the lists of thousands of lanes at each moment.
type Walk struct {
	pg    *Graph
	lists [][]dag.TaskID
	next  []dag.TaskID   // by task; -1: it is the last one of its list, or in none
	at    []dag.Instance // by lane: a task, -1 behind the last one, and the period
	steps int
}

// NewWalk begins with the first task of each list.
func (pg *Graph) NewWalk(lists [][]dag.TaskID, steps int) *Walk {
	w := &Walk{pg: pg, lists: lists, next: slices.Repeat([]dag.TaskID{-1}, pg.NumTasks()), at: make([]dag.Instance, len(lists)), steps: steps}
	for lane, list := range lists {
		for i := 1; i < len(list); i++ {
			w.next[list[i-1]] = list[i]
		}
		if len(list) > 0 {
			w.at[lane].Task = list[0]
		} else {
			w.at[lane].Step = int32(steps) + pg.maxLag
		}
	}
	return w
}

// At is the instance that a lane runs next: of a step before the period where its task lags. Places in a list without an instance are passed over. Without any it returns false.
func (w *Walk) At(lane int) (i dag.Instance, ok bool) {
	for at := &w.at[lane]; ; at.Task = w.next[at.Task] {
		if at.Task < 0 {
			*at = dag.Instance{Task: w.lists[lane][0], Step: at.Step + 1}
		}
		if int(at.Step) >= w.steps+int(w.pg.maxLag) {
			return dag.Instance{}, false
		}
		if i = (dag.Instance{Task: at.Task, Step: at.Step - w.pg.Lag(at.Task)}); i.Step >= 0 && int(i.Step) < w.steps {
			return i, true
		}
	}
}

// Pass goes on behind the instance of a lane.
func (w *Walk) Pass(lane int) { w.at[lane].Task = w.next[w.at[lane].Task] }

// engineGroup is the engines that can make the same transfers.
type engineGroup struct {
	memory platform.MemoryID
	in     bool
}

// groupOf is the engines that serve a move: the destination's, else the source's ([platform.Platform.EnginesTaken]).
// ok is false where no limited engine does.
func groupOf(p *platform.Platform, m *Move) (group engineGroup, ok bool) {
	in, out := p.EnginesTaken(m.From, m.To)
	if in {
		return engineGroup{m.To, true}, true
	}
	return engineGroup{m.From, false}, out
}

// Unlaned lists the transfers that no limited engine makes.
func (pg *Graph) Unlaned() (copies []dag.TaskID) {
	for t, m := range pg.moves {
		if m == nil {
			continue
		}
		if _, ok := groupOf(pg.p, m); !ok {
			copies = append(copies, dag.TaskID(t))
		}
	}
	return copies
}

// Reaches reports whether a lane is an engine that can make a move.
func (pg *Graph) Reaches(lane int, m *Move) bool { return slices.Contains(pg.Engines(m), lane) }

// Engines lists the lanes of the engines that can make a move. There are none where no limited engine does.
func (pg *Graph) Engines(m *Move) []int {
	group, ok := groupOf(pg.p, m)
	if !ok {
		return nil
	}
	return pg.engines()[group]
}

// enginesOf lists the lanes of engines that can make the same transfers.
func enginesOf(lanes []Lane) map[engineGroup][]int {
	all := map[engineGroup][]int{}
	for l := range lanes {
		if of := &lanes[l]; of.Worker < 0 {
			group := engineGroup{of.Memory, of.In}
			all[group] = append(all[group], l)
		}
	}
	return all
}

// ReadBefore reports whether the reader of a transfer comes before the reader of a move before the first step.
func (pg *Graph) ReadBefore(copy dag.Instance, entry *Move) bool {
	m := pg.moves[copy.Task]
	return copy.Step == 0 && !m.NextStep && pg.position[m.For] < pg.position[entry.For]
}

// orderLanes lists the tasks of a steady step for each lane.
func (pg *Graph) orderLanes() error {
	if (len(pg.lanes) > len(pg.p.Workers) || pg.MaxLag() > 0) && pg.moves != nil {
		_, err := pg.StartOrder()
		return err
	}
	pg.Order = pg.listsOf(len(pg.lanes))
	return nil
}

// listsOf are the tasks of a plan by worker, as they are in the placed graph.
func (pg *Graph) listsOf(workers int) [][]dag.TaskID {
	lists := make([][]dag.TaskID, workers)
	if pg.moves == nil {
		copy(lists, pg.plan.Order)
		return lists
	}
	for w, list := range pg.plan.Order {
		lists[w] = make([]dag.TaskID, len(list))
		for i, t := range list {
			lists[w][i] = pg.PlacedAs(t)
		}
	}
	return lists
}

// StartOrder lists the tasks of a steady step for each lane, and returns them all in the
// order in which they started.
func (pg *Graph) StartOrder() (started []dag.TaskID, err error) {
	e := newEstimate(pg)
	for {
		e.dispatch()
		if len(e.ends) == 0 {
			break
		}
		e.now = e.ends[0].at
		for len(e.ends) > 0 && e.ends[0].at == e.now {
			end := e.ends.Pop()
			e.free(end.lane)
			e.done++
			e.steps.End(end.instance)
			e.takeReleased()
		}
	}
	if want := e.all * pg.NumTasks(); e.done != want {
		return nil, fmt.Errorf("the plan's order contradicts the dependences of its transfers: %d of %d tasks could start", e.done, want)
	}
	copy(e.order, e.lists)
	pg.Order = e.order
	return e.started, nil
}

func newEstimate(pg *Graph) *estimate {
	lag := pg.MaxLag()
	all, steady := estimatedSteps+int(lag), lag+1
	if lag == 0 && pg.NumTasks() > manyTransfers {
		all, steady = 1, 0
	}
	e := &estimate{Graph: pg, all: all, steady: steady, queueOf: make([]int32, len(pg.lanes)), steps: ready.New(pg.Links, all, nil, nil, lag),
		busy: make([]bool, len(pg.lanes)), order: make([][]dag.TaskID, len(pg.lanes))}
	e.lists = pg.listsOf(len(pg.p.Workers))
	e.walk = pg.NewWalk(e.lists, all)
	for l := len(e.lists); l < len(pg.lanes); l++ {
		lanes := pg.engines()[engineGroup{pg.lanes[l].Memory, pg.lanes[l].In}]
		if lanes[0] != l {
			continue
		}
		for _, of := range lanes {
			e.queueOf[of] = int32(len(e.queues))
		}
		e.queues = append(e.queues, engineQueue{lanes: lanes})
	}
	e.findFollows()
	e.steps.Begin(nil)
	e.takeReleased()
	return e
}

// findFollows finds the longest paths through dependences and the lists of workers. Lists with lags have tasks of several steps, and do not count.
func (e *estimate) findFollows() {
	lists := e.lists
	if e.MaxLag() > 0 {
		lists = nil
	}
	sorted, _ := ready.Sort(e.Links, nil, lists) // a circle stops the estimate itself
	e.of = make([]estimated, e.NumTasks())
	for t := range e.of {
		e.of[t] = e.alone(dag.TaskID(t))
	}
	for _, t := range slices.Backward(sorted) {
		longest := time.Duration(0)
		if next := e.walk.next[t]; next >= 0 && lists != nil {
			longest = e.of[next].follows
		}
		for _, s := range e.Succs(t) {
			longest = max(longest, e.of[s].follows)
		}
		e.of[t].follows = longest + e.of[t].takes
	}
}

// alone is a task or a transfer without what follows it.
func (e *estimate) alone(t dag.TaskID) estimated {
	m := e.Move(t)
	if m == nil {
		of := e.TaskOf(t)
		return estimated{takes: e.plan.Occupies(of, e.worker[of]), lane: int32(e.worker[of])}
	}
	is := estimated{takes: e.p.RouteTime(m.From, m.To, m.Bytes), queue: noLane}
	if lanes := e.Engines(m); lanes != nil {
		is.queue = e.queueOf[lanes[0]]
	}
	return is
}

// free notes that the task or transfer of a lane has ended.
func (e *estimate) free(lane int) {
	if lane == noLane {
		return
	}
	e.busy[lane] = false
	if lane < len(e.lists) {
		e.touched = append(e.touched, lane)
		return
	}
	e.waiting = append(e.waiting, e.queueOf[lane])
}

// takeReleased queues the transfers that wait for nothing any more. A transfer without an engine starts.
func (e *estimate) takeReleased() {
	e.released = e.steps.TakeAsReleased(e.released)
	for _, i := range e.released {
		m, queue := e.Move(i.Task), e.of[i.Task].queue
		if m == nil {
			e.touched = append(e.touched, int(e.of[i.Task].lane))
			continue
		}
		if queue == noLane {
			e.start(noLane, i)
			continue
		}
		is := readyTransfer{graph: e.Graph, Instance: i, since: e.now, readerStep: i.Step, urgency: e.of[e.PlacedAs(m.For)].follows, ahead: e.ahead(m)}
		if m.NextStep {
			is.readerStep++
		}
		e.queues[queue].copies.Push(is)
		e.waiting = append(e.waiting, queue)
	}
}

// dispatch starts tasks and transfers on free lanes.
func (e *estimate) dispatch() {
	slices.Sort(e.touched)
	for _, w := range e.touched {
		if e.busy[w] {
			continue
		}
		i, ok := e.walk.At(w)
		if !ok || !e.steps.Ready(i) {
			continue
		}
		e.walk.Pass(w)
		e.start(w, i)
	}
	e.touched = e.touched[:0]
	slices.Sort(e.waiting)
	for _, k := range slices.Compact(e.waiting) {
		for q := &e.queues[k]; len(q.copies) > 0; {
			l := e.freeEngine(q)
			if l == noLane {
				break
			}
			i := q.copies.Pop().Instance
			if e.isSteady(i) {
				e.order[l] = append(e.order[l], i.Task)
			}
			e.start(l, i)
		}
	}
	e.waiting = e.waiting[:0]
}

// engineQueue is the transfers that wait for the same engines.
type engineQueue struct {
	lanes  []int
	copies ready.Heap[readyTransfer]
}

// freeEngine is the free engine of a queue that has the fewest transfers in its list.
func (e *estimate) freeEngine(q *engineQueue) int {
	best := noLane
	for _, l := range q.lanes {
		if !e.busy[l] && (best == noLane || len(e.order[l]) < len(e.order[best])) {
			best = l
		}
	}
	return best
}

// isSteady reports whether an instance belongs to the period in whose order things start.
func (e *estimate) isSteady(i dag.Instance) bool { return i.Step+e.Lag(i.Task) == e.steady }

func (e *estimate) start(lane int, i dag.Instance) {
	if e.isSteady(i) {
		e.started = append(e.started, i.Task)
	}
	if lane != noLane {
		e.busy[lane] = true
	}
	e.ends.Push(laneEnd{e.now + e.of[i.Task].takes, lane, i})
}

// noLane stands for the lane of a transfer that waits for no engine.
const noLane = -1

// laneEnd is the end of the task or transfer of a lane.
type laneEnd struct {
	at       time.Duration
	lane     int
	instance dag.Instance
}

// Before orders ends by time, then lane.
func (a laneEnd) Before(b laneEnd) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.instance.Step, b.instance.Step), cmp.Compare(a.instance.Task, b.instance.Task)) < 0
}

// readyTransfer is a transfer that waits for an engine since some time.
type readyTransfer struct {
	graph *Graph
	dag.Instance
	since      time.Duration
	readerStep int32
	ahead      int32
	urgency    time.Duration // of its reader
}

// Before is the order in which an engine takes transfers.
func (a readyTransfer) Before(b readyTransfer) bool {
	c := cmp.Or(cmp.Compare(a.readerStep, b.readerStep), cmp.Compare(b.urgency, a.urgency), cmp.Compare(a.since, b.since), cmp.Compare(a.ahead, b.ahead))
	return c < 0 || c == 0 && a.graph.Compare(a.Task, b.Task) < 0
}

// ahead is how many memories the source is ahead of the destination, around the ring of all.
func (e *estimate) ahead(m *Move) int32 {
	if m.From < m.To {
		return int32(m.From-m.To) + int32(len(e.p.Memories))
	}
	return int32(m.From - m.To)
}
