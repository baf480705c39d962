package explain

import (
	"cmp"
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
	BoundChange                   // a change of state of the worker, or of a link
	BoundBusy                     // the previous occupant of the worker, the route or the copy engine; before a change of clock, of its domain
)

// PathStep is a span, a transfer or a change of state on the critical path of a schedule; exactly
// one of the indices is not -1.
type PathStep struct {
	Span, Transfer, Change int32 // indices into Schedule.Spans, Transfers and Changes
	Bound                  Bound // bound of its start
	// Wait is the time between the end of that bound and its start: dispatch, or time that no
	// constraint explains.
	Wait time.Duration
}

// Times are when a step began and ended.
func (step *PathStep) Times(s *schedule.Schedule) (start, end time.Duration) {
	switch {
	case step.Span >= 0:
		return s.Spans[step.Span].Start, s.Spans[step.Span].End
	case step.Transfer >= 0:
		return s.Transfers[step.Transfer].Start, s.Transfers[step.Transfer].End
	}
	return s.Changes[step.Change].Start, s.Changes[step.Change].End
}

// CriticalPath returns the chain of spans, transfers and changes of state that explains the
// makespan, in the order of time. It walks back from the span that ended last. Each step goes to
// the latest end among the predecessors, the operands that moved, the changes of the worker, and
// its previous task. A change goes on to the other bounds of the task or transfer that it held up.
// Durations and waits along the path, with the first start, add up to the end of the last span.
//
// This is the path of one schedule, not of the graph: it goes through resources
// as well as dependences. On a tie dependences go before transfers, those before changes, and
// those before resources, because removing a resource would then not help.
//
// p and s must belong together, as [audit.Check] verifies.
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
	step := spanStep(last)
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

func spanStep(i int32) PathStep     { return PathStep{Span: i, Transfer: -1, Change: -1} }
func transferStep(i int32) PathStep { return PathStep{Span: -1, Transfer: i, Change: -1} }
func changeStep(i int32) PathStep   { return PathStep{Span: -1, Transfer: -1, Change: i} }

// pathWalk is the state of one walk back. Everything is taken at most once, so that tasks of zero
// duration cannot make it run in circles.
type pathWalk struct {
	h          *history
	onWorker   [][]int32       // spans, in order
	place      []int32         // by span: its place there
	onWay      map[way][]int32 // transfers, by end
	spanSeen   []bool
	transSeen  []bool
	changeSeen []bool
	heldUp     PathStep // the last span or transfer of the walk
}

func newPathWalk(p *schedule.Problem, s *schedule.Schedule) *pathWalk {
	w := &pathWalk{h: newHistory(p, s), onWorker: make([][]int32, len(p.Platform.Workers)), place: make([]int32, len(s.Spans)), onWay: map[way][]int32{},
		spanSeen: make([]bool, len(s.Spans)), transSeen: make([]bool, len(s.Transfers)), changeSeen: make([]bool, len(s.Changes))}
	for i := range s.Spans {
		on := &w.onWorker[s.Spans[i].Worker]
		w.place[i], *on = int32(len(*on)), append(*on, int32(i))
	}
	for _, i := range w.h.byEnd {
		for _, on := range w.ways(&s.Transfers[i]) {
			w.onWay[on] = append(w.onWay[on], i)
		}
	}
	return w
}

// way is a route between two memories, or the copy engines of one of them: out of from if to is noMemory, into to if
// from is noMemory.
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
	start, _ := step.Times(w.h.s)
	var end time.Duration // stays 0 where nothing bound the start
	consider := func(from PathStep, b Bound) {
		if _, ended := from.Times(w.h.s); ended <= start && (step.Bound == BoundNothing || ended > end) {
			before, step.Bound, end = from, b, ended
		}
	}
	if step.Change >= 0 {
		w.changeSeen[step.Change] = true
	} else {
		w.heldUp = *step
	}
	w.bounds(step, start, consider)
	step.Wait = start - end
	return before
}

// bounds considers the waits of the held-up span or transfer, or of a change before it.
func (w *pathWalk) bounds(step *PathStep, start time.Duration, consider func(from PathStep, b Bound)) {
	if w.heldUp.Span >= 0 {
		w.boundsOfSpan(step, start, consider)
	} else {
		w.boundsOfTransfer(start, consider)
	}
}

// boundsOfSpan considers the waits of a span, or of a change that held it up.
func (w *pathWalk) boundsOfSpan(step *PathStep, start time.Duration, consider func(from PathStep, b Bound)) {
	i := w.heldUp.Span
	on := w.h.s.Spans[i].Worker
	w.spanSeen[i] = true
	span := func(k int32, b Bound) {
		if k >= 0 && !w.spanSeen[k] {
			consider(spanStep(k), b)
		}
	}
	span(w.h.lastPred(i, start), BoundPredecessor)
	if k := w.h.lastArrival(i, -1, start); k >= 0 && !w.transSeen[k] {
		consider(transferStep(k), BoundTransfer)
	}
	w.lastChange(w.h.unitChanges[on], start, consider)
	if at := w.place[i]; at > 0 {
		span(w.onWorker[on][at-1], BoundBusy)
	}
	if step.Change < 0 {
		return
	}
	c := &w.h.s.Changes[step.Change]
	for other, unit := range w.h.p.Platform.Workers {
		if c.Covers(unit.Device, unit.Index) {
			list := w.onWorker[other]
			n, _ := slices.BinarySearchFunc(list, start, func(k int32, at time.Duration) int { return cmp.Compare(w.h.s.Spans[k].Start, at) })
			if n > 0 {
				span(list[n-1], BoundBusy)
			}
		}
	}
}

// boundsOfTransfer considers the waits of a transfer, or of a change of a link that held it up.
func (w *pathWalk) boundsOfTransfer(start time.Duration, consider func(from PathStep, b Bound)) {
	w.transSeen[w.heldUp.Transfer] = true
	t := &w.h.s.Transfers[w.heldUp.Transfer]
	// A predecessor of the transfer's reader wrote the contents, or was the last to make the reader ready.
	if need := w.h.span(t.For, t.Step); need >= 0 {
		if k := w.h.lastPred(need, min(start, w.h.s.Spans[need].Start)); k >= 0 && !w.spanSeen[k] {
			consider(spanStep(k), BoundPredecessor)
		}
	}
	for _, use := range w.h.p.Platform.LinkUses(t.From, t.To) {
		w.lastChange(w.h.linkChanges[use.Link], start, consider)
	}
	for _, on := range w.ways(t) {
		for _, k := range slices.Backward(w.h.endedBy(w.onWay[on], start)) {
			if !w.transSeen[k] {
				consider(transferStep(k), BoundBusy)
				break
			}
		}
	}
}

// lastChange considers the last change of a clock in a list, and the last one of sleep, that was over
// by a time. The former may overlap the latter.
func (w *pathWalk) lastChange(list []int32, by time.Duration, consider func(from PathStep, b Bound)) {
	n, _ := slices.BinarySearchFunc(list, by, func(k int32, by time.Duration) int { return cmp.Or(cmp.Compare(w.h.s.Changes[k].Start, by), -1) })
	var found [2]bool
	for _, k := range slices.Backward(list[:n]) {
		c := &w.h.s.Changes[k]
		if w.changeSeen[k] || c.End > by {
			continue
		}
		of := &found[min(c.Kind, 1)]
		if *of { // the other kind was over before
			return
		}
		*of = true
		consider(changeStep(k), BoundChange)
	}
}
