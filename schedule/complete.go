package schedule

import (
	"cmp"
	"slices"
	"time"
)

// Complete sorts the spans, transfers and evictions of a run and derives the rest from
// them: makespan, first step, period, occupancy and peaks. Both worlds call it.
// It fails when a buffer's home is not a memory of the platform.
func (s *Schedule) Complete(p *Problem) error {
	bySpan := func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.End, b.End))
	}
	if !slices.IsSortedFunc(s.Spans, bySpan) {
		slices.SortStableFunc(s.Spans, bySpan) // tasks of no duration keep their worker's order
	}
	slices.SortStableFunc(s.Transfers, func(a, b Transfer) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.End, b.End),
			cmp.Compare(a.Step, b.Step), cmp.Compare(p.Graph.Rank(a.For), p.Graph.Rank(b.For)), cmp.Compare(p.Graph.Buffers[a.Buffer].Name, p.Graph.Buffers[b.Buffer].Name))
	})
	slices.SortStableFunc(s.Evictions, func(a, b Eviction) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Memory, b.Memory)) })
	sortChanges(s.Changes)
	s.setTimes()
	return s.setMemory(p)
}

// setTimes derives makespan, first step and period. The period is the mean
// distance of step ends over the last half of the steps, where the start of the
// run no longer shows.
func (s *Schedule) setTimes() {
	ends := make([]time.Duration, s.Steps)
	s.Makespan = 0
	for i := range s.Spans {
		span := &s.Spans[i]
		ends[span.Step] = max(ends[span.Step], span.End)
		s.Makespan = max(s.Makespan, span.End)
	}
	s.FirstStep, s.Period = ends[0], 0
	if last := s.Steps - 1; last > 0 {
		half := last / 2
		s.Period = (ends[last] - ends[half]) / time.Duration(last-half)
	}
}
