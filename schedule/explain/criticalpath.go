package explain

import (
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// Bound says why a span or a transfer did not start earlier.
type Bound uint8

// The bounds of a start.
const (
	BoundNothing     Bound = iota // the beginning of the run
	BoundPredecessor              // a predecessor, for a transfer one of the task that needed it
	BoundTransfer                 // the arrival of an operand
	BoundBusy                     // the previous occupant of the worker, the route or the copy engine
)

func (b Bound) String() string {
	return [...]string{"nothing", "predecessor", "transfer", "busy"}[b]
}

// PathStep is a span or a transfer on the critical path of a schedule; exactly
// one of the indices is not -1.
type PathStep struct {
	Span, Transfer int32 // indices into Schedule.Spans and Schedule.Transfers
	Bound          Bound // bound of its start
	// Wait is the time between the end of that bound and its start: dispatch, or time that no
	// constraint explains.
	Wait time.Duration
}

// CriticalPath returns the chain of spans and transfers that explains the makespan, in the order
// of time. It walks back from the span that ended last. Each step goes to the latest end among
// the predecessors, the operands that moved, and the previous task of the worker. Durations and
// waits along the path, with the first start, add up to the end of the last span.
//
// This is the path of one schedule, not of the graph: it goes through resources
// as well as dependences. On a tie dependences go before transfers, and those
// before resources, because removing a resource would then not help.
//
// p and s must belong together, as [schedule.Schedule.Check] verifies.
func CriticalPath(p *schedule.Problem, s *schedule.Schedule) []PathStep {
	if len(s.Spans) == 0 {
		return nil
	}
	w := newPathWalk(p, s)
	last := int32(0)
	for i := range s.Spans {
		if w.h.laterEnd(int32(i), last) {
			last = int32(i)
		}
	}
	var path []PathStep
	step := PathStep{Span: last, Transfer: -1}
	for {
		w.visit(step)
		var before PathStep
		if step.Span >= 0 {
			before, step.Bound, step.Wait = w.beforeSpan(step.Span)
		} else {
			before, step.Bound, step.Wait = w.beforeTransfer(step.Transfer)
		}
		path = append(path, step)
		if step.Bound == BoundNothing {
			slices.Reverse(path)
			return path
		}
		step = before
	}
}

// pathWalk is the state of one walk back. Every span and transfer is taken at
// most once, so that tasks of zero duration cannot make it run in circles.
type pathWalk struct {
	h         *history
	onWorker  []int32         // by span: the previous span of the worker, -1 for the first
	onWay     map[way][]int32 // transfers, by end
	waysOf    map[way][]way   // by route: the ways for which a transfer may have had to wait
	spanSeen  []bool
	transSeen []bool
}

func newPathWalk(p *schedule.Problem, s *schedule.Schedule) *pathWalk {
	w := &pathWalk{h: newHistory(p, s), onWorker: make([]int32, len(s.Spans)),
		onWay: map[way][]int32{}, waysOf: map[way][]way{},
		spanSeen: make([]bool, len(s.Spans)), transSeen: make([]bool, len(s.Transfers))}
	latest := slices.Repeat([]int32{-1}, len(p.Platform.Workers))
	for i := range s.Spans {
		on := s.Spans[i].Worker
		w.onWorker[i], latest[on] = latest[on], int32(i)
	}
	for _, i := range transfersByEnd(s) {
		for _, on := range w.waysOfTransfer(&s.Transfers[i]) {
			w.onWay[on] = append(w.onWay[on], i)
		}
	}
	return w
}

// way is a route between two memories, or the copy engines of one of them: those out of from if
// to is noMemory, those into to if from is noMemory.
type way struct{ from, to platform.MemoryID }

const noMemory platform.MemoryID = -1

// waysOfTransfer lists the route of a transfer and the engines that it took.
func (w *pathWalk) waysOfTransfer(t *schedule.Transfer) []way {
	route := way{t.From, t.To}
	if ways, known := w.waysOf[route]; known {
		return ways
	}
	ways := []way{route}
	in, out := w.h.p.Platform.EnginesTaken(t.From, t.To)
	if in {
		ways = append(ways, way{noMemory, t.To})
	}
	if out {
		ways = append(ways, way{t.From, noMemory})
	}
	w.waysOf[route] = ways
	return ways
}

func (w *pathWalk) visit(s PathStep) {
	if s.Span >= 0 {
		w.spanSeen[s.Span] = true
	} else {
		w.transSeen[s.Transfer] = true
	}
}

// latestBound collects candidates; an earlier one wins a tie.
type latestBound struct {
	step  PathStep
	bound Bound
	end   time.Duration
}

func (l *latestBound) consider(s PathStep, b Bound, end time.Duration) {
	if l.bound == BoundNothing || end > l.end {
		*l = latestBound{s, b, end}
	}
}

func (l *latestBound) result(start time.Duration) (PathStep, Bound, time.Duration) {
	return l.step, l.bound, start - l.end // end is 0 where nothing bound it
}

func (w *pathWalk) beforeSpan(i int32) (PathStep, Bound, time.Duration) {
	spans, start := w.h.s.Spans, w.h.s.Spans[i].Start
	var l latestBound
	if k := w.h.lastPred(i); k >= 0 && !w.spanSeen[k] {
		l.consider(PathStep{Span: k, Transfer: -1}, BoundPredecessor, spans[k].End)
	}
	if k := w.h.lastArrival(i); k >= 0 && !w.transSeen[k] {
		l.consider(PathStep{Span: -1, Transfer: k}, BoundTransfer, w.h.s.Transfers[k].End)
	}
	if k := w.onWorker[i]; k >= 0 && !w.spanSeen[k] && spans[k].End <= start {
		l.consider(PathStep{Span: k, Transfer: -1}, BoundBusy, spans[k].End)
	}
	return l.result(start)
}

func (w *pathWalk) beforeTransfer(i int32) (PathStep, Bound, time.Duration) {
	s := w.h.s
	t := &s.Transfers[i]
	var l latestBound
	if k := w.enabler(t); k >= 0 && !w.spanSeen[k] {
		l.consider(PathStep{Span: k, Transfer: -1}, BoundPredecessor, s.Spans[k].End)
	}
	for _, on := range w.waysOfTransfer(t) {
		for _, k := range slices.Backward(w.h.endedBy(w.onWay[on], t.Start)) {
			if k != i && !w.transSeen[k] {
				l.consider(PathStep{Span: -1, Transfer: k}, BoundBusy, s.Transfers[k].End)
				break
			}
		}
	}
	return l.result(t.Start)
}

// enabler returns the predecessor of the task that needed a transfer that ended
// last before the transfer started: it wrote what moves, or it was the last to
// make the task ready; -1 if there is none.
func (w *pathWalk) enabler(t *schedule.Transfer) int32 {
	need := w.h.span(t.For, t.Step)
	if need < 0 {
		return -1
	}
	last := int32(-1)
	w.h.eachPred(need, func(k int32) {
		if w.h.s.Spans[k].End <= t.Start && (last < 0 || w.h.laterEnd(k, last)) {
			last = k
		}
	})
	return last
}
