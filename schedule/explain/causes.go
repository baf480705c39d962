package explain

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// IdleCause says why a worker did nothing.
type IdleCause uint8

// The causes of idle time, in the order in which they follow each other in one gap but for the last.
const (
	WaitPredecessor IdleCause = iota // a predecessor of its next task was running
	WaitTransfer                     // an operand of its next task was moving
	WaitDispatch                     // its next task could have started
	NoWork                           // it had no task left
	WaitChange                       // before dispatch: its clock changed once its domain was free, it fell asleep or woke
	NumIdleCauses
)

func (c IdleCause) String() string {
	return [NumIdleCauses]string{"dependence", "transfer", "dispatch", "no work left", "change of state"}[c]
}

// Idle is a stretch of time in which a worker did nothing for one cause.
type Idle struct {
	Worker     platform.WorkerID
	Start, End time.Duration
	Cause      IdleCause
	// Transfer is the index in Schedule.Transfers of the transfer for which the next task waited
	// (WaitTransfer), else -1.
	Transfer int32
}

// Idles explains every gap of every worker between time 0 and the makespan, in
// the order of the spans that end the gaps, then by worker.
//
// A gap before a task is cut at two moments: the end of the last predecessor (in its own step, or in an earlier one
// through carried or reused storages) and the arrival of the last operand. Before the first
// the worker waited for a predecessor, then for a transfer. From then on it waited for changes of
// its state as far as there were any, and else for dispatch. The parts are disjoint and add up to
// the worker's idle time exactly. [Stretches] says for how much of it the worker slept.
//
// p and s must belong together, as [audit.Check] verifies.
func Idles(p *schedule.Problem, s *schedule.Schedule) []Idle {
	h := newHistory(p, s)
	var idles []Idle
	busyUntil := make([]time.Duration, len(p.Platform.Workers))
	for i := range s.Spans {
		w := s.Spans[i].Worker
		idles = h.explain(idles, int32(i), busyUntil[w])
		busyUntil[w] = max(busyUntil[w], s.Spans[i].End)
	}
	for w, from := range busyUntil {
		if from < s.Makespan {
			idles = append(idles, Idle{Worker: platform.WorkerID(w), Start: from, End: s.Makespan, Cause: NoWork, Transfer: -1})
		}
	}
	return idles
}

// explain appends the parts of the gap that begins at from and ends with span i.
func (h *history) explain(idles []Idle, i int32, from time.Duration) []Idle {
	span := &h.s.Spans[i]
	part := func(cause IdleCause, until time.Duration, transfer int32) {
		if until = min(until, span.Start); until > from {
			idles = append(idles, Idle{span.Worker, from, until, cause, transfer})
			from = until
		}
	}
	if from >= span.Start {
		return idles
	}
	if pred := h.lastPred(i, span.Start); pred >= 0 {
		part(WaitPredecessor, h.s.Spans[pred].End, -1)
	}
	if transfer := h.lastArrival(i, from, span.Start); transfer >= 0 {
		part(WaitTransfer, h.s.Transfers[transfer].End, transfer)
	}
	for _, k := range h.changesSince(span.Worker, from) {
		c := &h.s.Changes[k]
		if c.Start >= span.Start {
			break
		}
		if c.Kind != schedule.SwitchClock { // a clock changes when what runs at the former one has ended
			part(WaitDispatch, c.Start, -1)
		}
		part(WaitChange, c.End, -1)
	}
	part(WaitDispatch, span.Start, -1)
	return idles
}

// changesSince lists the changes of a worker without the first ones, which were over by a time. The time does not go
// back from call to call.
func (h *history) changesSince(w platform.WorkerID, at time.Duration) []int32 {
	list := h.unitChanges[w]
	for len(list) > 0 && h.s.Changes[list[0]].End <= at {
		list = list[1:]
	}
	h.unitChanges[w] = list
	return list
}

// history finds the spans and transfers that a span had to wait for.
type history struct {
	p *schedule.Problem
	s *schedule.Schedule

	steps  int32
	spanOf []int32     // by step and task; -1: did not run
	orders [2]dag.Rows // predecessors by Problem.Reuse, and by Problem.ReuseNext

	unitChanges, linkChanges [][]int32 // by worker and by link, by start

	// Transfers in the order of their ends: all, by their atoms, and by the instance for which
	// they started.
	byEnd      []int32
	byAtom     map[int32][]int32
	byInstance map[dag.Instance][]int32
}

func newHistory(p *schedule.Problem, s *schedule.Schedule) *history {
	n := len(p.Graph.Tasks)
	h := &history{p: p, s: s, orders: [2]dag.Rows{dag.NewRows(n, dag.Turn(p.Reuse)), dag.NewRows(n, dag.Turn(p.ReuseNext))},
		byAtom: map[int32][]int32{}, byInstance: map[dag.Instance][]int32{}}
	for i := range s.Spans {
		h.steps = max(h.steps, s.Spans[i].Step+1)
	}
	h.unitChanges, h.linkChanges = changesOf(p, s)
	if s.World == schedule.Measured { // a change that nobody saw held up nothing, see schedule.Schedule.ModelStates
		clear(h.linkChanges)
		for w := range h.unitChanges {
			if !p.Platform.Devices[p.Platform.Workers[w].Device].IsEmulated() {
				h.unitChanges[w] = nil
			}
		}
	}
	h.spanOf = slices.Repeat([]int32{-1}, int(h.steps)*n)
	for i := range s.Spans {
		h.spanOf[int(s.Spans[i].Step)*n+int(s.Spans[i].Task)] = int32(i)
	}
	for i := range s.Transfers {
		h.byEnd = append(h.byEnd, int32(i))
	}
	slices.SortStableFunc(h.byEnd, func(a, b int32) int { return cmp.Compare(s.Transfers[a].End, s.Transfers[b].End) })
	for _, i := range h.byEnd {
		t := &s.Transfers[i]
		for _, a := range t.Atoms {
			h.byAtom[a] = append(h.byAtom[a], i)
		}
		of := dag.Instance{Task: t.For, Step: t.Step}
		h.byInstance[of] = append(h.byInstance[of], i)
	}
	return h
}

// endedBy returns the part of a list of transfers, ordered by end, that had ended.
func (h *history) endedBy(list []int32, at time.Duration) []int32 {
	n, _ := slices.BinarySearchFunc(list, at, func(k int32, at time.Duration) int {
		return cmp.Or(cmp.Compare(h.s.Transfers[k].End, at), -1)
	})
	return list[:n]
}

// span returns the index of the span of an instance, -1 if it did not run.
func (h *history) span(t dag.TaskID, step int32) int32 {
	if step < 0 || step >= h.steps {
		return -1
	}
	return h.spanOf[int(step)*len(h.p.Graph.Tasks)+int(t)]
}

// lastPred returns the last predecessor of span i to end by a time; -1 if there is none.
// Ties go to the later step, then to the lower rank.
func (h *history) lastPred(i int32, by time.Duration) int32 {
	span, g := &h.s.Spans[i], h.p.Graph
	last := int32(-1)
	consider := func(back int32, tasks []int32) {
		for _, t := range tasks {
			k := h.span(dag.TaskID(t), span.Step-back)
			if k >= 0 && k != i && h.s.Spans[k].End <= by && (last < 0 || h.laterEnd(k, last)) {
				last = k
			}
		}
	}
	for back := range g.Reach() + 1 {
		for _, tasks := range g.PredsBack(span.Task, back) {
			consider(back, tasks)
		}
	}
	for back := range h.orders {
		consider(int32(back), h.orders[back].Row(int32(span.Task)))
	}
	return last
}

// laterEnd orders spans by their ends, with ties broken by step and name.
func (h *history) laterEnd(a, b int32) bool {
	x, y := &h.s.Spans[a], &h.s.Spans[b]
	return cmp.Or(cmp.Compare(x.End, y.End), cmp.Compare(x.Step, y.Step),
		cmp.Compare(h.p.Graph.Rank(y.Task), h.p.Graph.Rank(x.Task))) > 0
}

// lastArrival returns the transfer of an operand into span i's memory that ended last, after one time and up to another; -1 if
// there is none.
func (h *history) lastArrival(i int32, after, by time.Duration) int32 {
	if len(h.s.Transfers) == 0 {
		return -1
	}
	span := &h.s.Spans[i]
	memory := h.p.Platform.MemoryOf(span.Worker)
	last := int32(-1)
	consider := func(list []int32) {
		for _, k := range slices.Backward(h.endedBy(list, by)) {
			t := &h.s.Transfers[k]
			if t.End <= after {
				return
			}
			if t.Step > span.Step && h.p.Graph.Versions(t.Buffer) > 1 {
				continue // into another version of the buffer
			}
			if t.To == memory {
				last, after = k, t.End
				return
			}
		}
	}
	consider(h.byInstance[dag.Instance{Task: span.Task, Step: span.Step}])
	for a, access := range h.p.Graph.Tasks[span.Task].Accesses {
		if access.Mode.Reads() {
			for _, atom := range h.p.Graph.Atoms(span.Task, a) {
				consider(h.byAtom[atom])
			}
		}
	}
	return last
}
