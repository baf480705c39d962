package schedule

import (
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Interval is when something started and ended.
type Interval struct{ Start, End time.Duration }

// ToOrigin turns a schedule of the placed graph, whose workers are lanes, into one of
// the origin: spans of tasks and of workers, and a transfer for every copy. p is the
// origin's problem. entered is when each move of Enter was made.
func (pg *PlacedGraph) ToOrigin(p *Problem, s *Schedule, entered []Interval) (*Schedule, error) {
	out := *s
	out.GraphHash, out.Spans, out.Transfers = p.Graph.Hash(), nil, nil
	for i, m := range pg.Enter {
		if !m.Anywhere {
			out.Transfers = append(out.Transfers, m.Transfer(0, entered[i]))
		}
	}
	for _, span := range s.Spans {
		m := pg.Moves[span.Task]
		if m == nil {
			span.Task = pg.TaskOf[span.Task]
			out.Spans = append(out.Spans, span)
			continue
		}
		if !m.Anywhere {
			out.Transfers = append(out.Transfers, m.Transfer(m.StepOf(span.Step, s.Steps), Interval{span.Start, span.End}))
		}
	}
	if err := out.Complete(p); err != nil || !pg.reloads() && out.fits(p.Platform) {
		return &out, err
	}
	out.Evictions = pg.evictions(p, s)
	return &out, out.Complete(p)
}

// reloads reports whether something comes back that a memory had dropped.
func (pg *PlacedGraph) reloads() bool {
	return slices.ContainsFunc(pg.Moves, func(m *Move) bool { return m != nil && m.Reason == ReasonReload })
}

// fits reports whether no memory holds more than it can, taking what is valid there to be
// there as long as the storage needs it anywhere.
func (s *Schedule) fits(p *platform.Platform) bool {
	for m, peak := range s.PeakBytes {
		if limit := p.Memories[m].CapacityBytes; limit > 0 && peak > limit {
			return false
		}
	}
	return true
}

// StepOf is the step of the task for which a move is made in a step of a run: that one or
// the next. In the last step too it is made for the next, which there is not; that counts
// as of the last.
func (m *Move) StepOf(made int32, steps int) int32 {
	if m.NextStep {
		return min(made+1, int32(steps-1))
	}
	return made
}

// Transfer is the record of the move, made for a step at some time.
func (m *Move) Transfer(step int32, when Interval) Transfer {
	return Transfer{Buffer: m.Buffer, Atoms: m.Atoms, Bytes: m.Bytes, From: m.From, To: m.To, For: m.For,
		Step: step, Reason: m.Reason, Start: when.Start, End: when.End}
}

// problem is that of replaying the placed graph, whose copies cost nothing: whoever replays
// them knows what they take. p is the origin's problem.
func (pg *PlacedGraph) problem(p *Problem) *Problem {
	if pg.Graph == pg.Origin {
		return p
	}
	q := *p
	q.Graph, q.Reuse, q.ReuseNext = pg.Graph, pg.Reuse, pg.ReuseNext
	q.Costs = &Costs{Class: make([]int32, len(pg.TaskOf)), ByClass: p.Costs.ByClass}
	for t, origin := range pg.TaskOf {
		if origin >= 0 {
			q.Costs.Class[t] = p.Costs.Class[origin]
		}
	}
	return &q
}

// placedAs finds the tasks of the origin.
func (pg *PlacedGraph) placedAs() []dag.TaskID {
	at := make([]dag.TaskID, len(pg.Origin.Tasks))
	for t, origin := range pg.TaskOf {
		if origin >= 0 {
			at[origin] = dag.TaskID(t)
		}
	}
	return at
}
