package explain

import (
	"slices"
	"testing"
	"time"

	"dahl/schedule"
)

// The last span of gapSchedule is d of step 1 (60-70). It waited 10 after d of
// step 0 (20-50), which ran right after b (0-20) on the same core, which began
// with the run: durations 10+30+20 and waits 10+0+0 are the makespan 70.
func TestCriticalPathGoesThroughCarriedStorageAndWorker(t *testing.T) {
	p := gapProblem(t)
	got := CriticalPath(p, gapSchedule(p))
	want := []PathStep{
		{Span: 1, Transfer: -1, Change: -1, Bound: BoundNothing},
		{Span: 2, Transfer: -1, Change: -1, Bound: BoundBusy},
		{Span: 4, Transfer: -1, Change: -1, Bound: BoundPredecessor, Wait: 10},
	}
	if !slices.Equal(got, want) {
		t.Errorf("path %+v, want %+v", got, want)
	}
}

// Without d of step 1 the last span is c (37-57). It waited 3 after y's arrival
// (25-34), which waited for the route, taken by x (10-25), which could start when
// a had ended (0-10): 20+3 + 9 + 15 + 10 = 57.
func TestCriticalPathGoesThroughTransfers(t *testing.T) {
	p := gapProblem(t)
	s := gapSchedule(p)
	s.Spans, s.Makespan = s.Spans[:4], 57
	got := CriticalPath(p, s)
	want := []PathStep{
		{Span: 0, Transfer: -1, Change: -1, Bound: BoundNothing},
		{Span: -1, Transfer: 0, Change: -1, Bound: BoundPredecessor},
		{Span: -1, Transfer: 1, Change: -1, Bound: BoundBusy},
		{Span: 3, Transfer: -1, Change: -1, Bound: BoundTransfer, Wait: 3},
	}
	if !slices.Equal(got, want) {
		t.Errorf("path %+v, want %+v", got, want)
	}
}

// Whatever the schedule, durations and waits along the path add up to its end.
func TestCriticalPathAddsUp(t *testing.T) {
	p := gapProblem(t)
	for n := 1; n <= 5; n++ {
		for _, late := range []time.Duration{0, 1, 13} {
			s := gapSchedule(p)
			s.Spans = s.Spans[:n]
			for i := range s.Spans {
				s.Spans[i].Start += late
				s.Spans[i].End += late
			}
			sum, end := time.Duration(0), time.Duration(0)
			for _, sp := range s.Spans {
				end = max(end, sp.End)
			}
			for _, step := range CriticalPath(p, s) {
				sum += step.Wait
				from, to := step.Times(s)
				sum += to - from
			}
			if sum != end {
				t.Errorf("%d spans, %d late: the path adds up to %d, the last span ends at %d", n, late, sum, end)
			}
		}
	}
}

// Tasks of zero duration at one moment bound each other both ways; the walk must end.
func TestCriticalPathEndsWithZeroDurations(t *testing.T) {
	p := gapProblem(t)
	s := &schedule.Schedule{Steps: 2, Spans: []schedule.Span{
		span(taskD, 0, cpu0, 0, 0), span(taskD, 1, cpu0, 0, 0), span(taskA, 0, cpu0, 0, 0), span(taskA, 1, cpu0, 0, 0),
	}}
	if n := len(CriticalPath(p, s)); n < 1 || n > 4 {
		t.Errorf("the path has %d steps of 4 spans", n)
	}
}

func TestCriticalPathOfNothing(t *testing.T) {
	if path := CriticalPath(gapProblem(t), &schedule.Schedule{}); path != nil {
		t.Errorf("path %+v of an empty schedule", path)
	}
}
