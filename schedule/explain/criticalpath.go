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
		before := w.before(&step)
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
	spanSeen  []bool
	transSeen []bool
}

func newPathWalk(p *schedule.Problem, s *schedule.Schedule) *pathWalk {
	w := &pathWalk{h: newHistory(p, s), onWorker: make([]int32, len(s.Spans)), onWay: map[way][]int32{},
		spanSeen: make([]bool, len(s.Spans)), transSeen: make([]bool, len(s.Transfers))}
	latest := slices.Repeat([]int32{-1}, len(p.Platform.Workers))
	for i := range s.Spans {
		on := s.Spans[i].Worker
		w.onWorker[i], latest[on] = latest[on], int32(i)
	}
	for _, i := range w.h.byEnd {
		for _, on := range w.ways(&s.Transfers[i]) {
			w.onWay[on] = append(w.onWay[on], i)
		}
	}
	return w
}

// way is a route between two memories, or the copy engines of one of them: those out of from if
// to is noMemory, those into to if from is noMemory.
type way struct{ from, to platform.MemoryID }

const noMemory platform.MemoryID = -1

// ways lists the route of a transfer and the engines that it took.
func (w *pathWalk) ways(t *schedule.Transfer) []way {
	ways := []way{{t.From, t.To}}
	in, out := w.h.p.Platform.EnginesTaken(t.From, t.To)
	if in {
		ways = append(ways, way{noMemory, t.To})
	}
	if out {
		ways = append(ways, way{t.From, noMemory})
	}
	return ways
}

// before sets the bound of a step and the wait after it, and returns the step that bound it: the
// one that ended last, of equal ones the first considered.
func (w *pathWalk) before(step *PathStep) (before PathStep) {
	s := w.h.s
	var start, end time.Duration // end stays 0 where nothing bound the start
	consider := func(from PathStep, b Bound, ended time.Duration) {
		if ended <= start && (step.Bound == BoundNothing || ended > end) {
			before, step.Bound, end = from, b, ended
		}
	}
	span := func(k int32, b Bound) {
		if k >= 0 && !w.spanSeen[k] {
			consider(PathStep{Span: k, Transfer: -1}, b, s.Spans[k].End)
		}
	}
	if i := step.Span; i >= 0 {
		w.spanSeen[i], start = true, s.Spans[i].Start
		span(w.h.lastPred(i, start), BoundPredecessor)
		if k := w.h.lastArrival(i); k >= 0 && !w.transSeen[k] {
			consider(PathStep{Span: -1, Transfer: k}, BoundTransfer, s.Transfers[k].End)
		}
		span(w.onWorker[i], BoundBusy)
	} else {
		t := &s.Transfers[step.Transfer]
		w.transSeen[step.Transfer], start = true, t.Start
		// A predecessor of the task that needed the transfer wrote what moves, or was the last to
		// make the task ready.
		if need := w.h.span(t.For, t.Step); need >= 0 {
			span(w.h.lastPred(need, min(start, s.Spans[need].Start)), BoundPredecessor)
		}
		for _, on := range w.ways(t) {
			for _, k := range slices.Backward(w.h.endedBy(w.onWay[on], start)) {
				if !w.transSeen[k] {
					consider(PathStep{Span: -1, Transfer: k}, BoundBusy, s.Transfers[k].End)
					break
				}
			}
		}
	}
	step.Wait = start - end
	return before
}
