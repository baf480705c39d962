package explain

import (
	"time"

	"dahl/schedule"
)

// Starts lists the waits of the start of any span and any transfer. [CriticalPath] follows
// the last of these back from the end of a run.
type Starts struct{ walk *pathWalk }

// Freed is one wait of a start, and its end. By is the span, transfer or change that ended then.
type Freed struct {
	By    PathStep
	Bound Bound
	At    time.Duration
}

// NewStarts prepares a schedule. p and s must belong together, as [audit.Check]
// verifies.
func NewStarts(p *schedule.Problem, s *schedule.Schedule) *Starts { return &Starts{newPathWalk(p, s)} }

// OfSpan lists the waits of span i. The first of the last ends is the cause of its start.
func (st *Starts) OfSpan(i int32) []Freed { return st.of(spanStep(i)) }

// OfTransfer lists the waits of transfer i. Of the route and the copy engines that it took, each
// counts for itself.
func (st *Starts) OfTransfer(i int32) []Freed { return st.of(transferStep(i)) }

func (st *Starts) of(step PathStep) (all []Freed) {
	w := st.walk
	start, _ := step.Times(w.h.s)
	w.heldUp = step
	w.bounds(&step, start, func(by PathStep, b Bound) {
		if _, ended := by.Times(w.h.s); ended <= start {
			all = append(all, Freed{by, b, ended})
		}
	})
	if step.Span >= 0 { // a walk takes everything once; this is none
		w.spanSeen[step.Span] = false
	} else {
		w.transSeen[step.Transfer] = false
	}
	return all
}

// LastFreed is the place of the cause of a start among its waits, or -1 without waits.
func LastFreed(all []Freed) int {
	last := -1
	for i := range all {
		if last < 0 || all[i].At > all[last].At {
			last = i
		}
	}
	return last
}
