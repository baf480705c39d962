package explain

import (
	"time"

	"dahl/schedule"
)

// Starts tells of any span and any transfer what its start had to wait for. [CriticalPath] follows
// the last of these back from the end of a run.
type Starts struct{ walk *pathWalk }

// Freed is one thing that a start had to wait for, and since when it did not any more. By is what
// ended at that moment.
type Freed struct {
	By    PathStep
	Bound Bound
	At    time.Duration
}

// NewStarts prepares a schedule. p and s must belong together, as [audit.Check]
// verifies.
func NewStarts(p *schedule.Problem, s *schedule.Schedule) *Starts { return &Starts{newPathWalk(p, s)} }

// OfSpan lists what span i waited for. The first of those that ended last is the cause of its start.
func (st *Starts) OfSpan(i int32) []Freed { return st.of(spanStep(i)) }

// OfTransfer lists what transfer i waited for. Of the route and the copy engines that it took, each
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

// LastFreed is the place of the cause of a start among what it waited for; -1: it waited for nothing.
func LastFreed(all []Freed) int {
	last := -1
	for i := range all {
		if last < 0 || all[i].At > all[last].At {
			last = i
		}
	}
	return last
}
