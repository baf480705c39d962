package audit

import (
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// TestFitsOrder: a worker's spans come in the order of their starts, since who draws gaps looks for what follows one. Those of another worker may lie anywhere.
func TestFitsOrder(t *testing.T) {
	p := &schedule.Problem{Graph: &dag.Graph{Tasks: make([]dag.Task, 3)}, Platform: &platform.Platform{Workers: make([]platform.Worker, 2)}}
	span := func(task dag.TaskID, w platform.WorkerID, start, end time.Duration) schedule.Span {
		return schedule.Span{Task: task, Worker: w, Start: start, End: end}
	}
	s := &schedule.Schedule{Steps: 1, Makespan: 20, Spans: []schedule.Span{span(0, 0, 10, 20), span(1, 1, 0, 5), span(2, 0, 20, 20)}}
	must.Do(t, Fits(s, p))
	s.Spans[2].Start, s.Spans[2].End = 0, 5
	if err := Fits(s, p); err == nil || !strings.Contains(err.Error(), "span 2 (task 2) of worker 0 begins at 0s") {
		t.Errorf("spans in another order: %v", err)
	}
}
