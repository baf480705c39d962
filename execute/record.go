package execute

import (
	"fmt"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// maxRecords bounds the tasks recorded in one run, and with them its memory.
const maxRecords = 1 << 27

// collect turns what the workers noted into a schedule. That of a run cut short
// has as many steps as were begun.
func (j *job) collect(workers []*worker, p *schedule.Problem) (*schedule.Schedule, error) {
	s := &schedule.Schedule{World: schedule.Measured, GraphHash: j.graph.graph.Hash(), Policy: j.graph.policy, Steps: j.steps}
	if !j.record {
		s.Makespan = j.now()
		return s, nil
	}
	var begun int32
	s.Spans, begun = mergeSpans(workers)
	s.Steps = int(begun)
	noteReady(s, p)
	if err := s.Complete(p); err != nil {
		return nil, fmt.Errorf("execute graph %q: schedule of the run: %w", p.Graph.Name, err)
	}
	return s, nil
}

// mergeSpans puts what the workers noted into one list by start, then worker; each
// worker's is so already. begun is one more than the greatest step, at least 1.
func mergeSpans(workers []*worker) (spans []schedule.Span, begun int32) {
	total := 0
	for _, w := range workers {
		total += len(w.spans)
	}
	spans, begun = make([]schedule.Span, 0, total), 1
	next := make([]int, len(workers))
	for range total {
		first := -1
		for i, w := range workers {
			if next[i] < len(w.spans) && (first < 0 || w.spans[next[i]].start < workers[first].spans[next[first]].start) {
				first = i
			}
		}
		r := &workers[first].spans[next[first]]
		next[first]++
		spans = append(spans, schedule.Span{Task: dag.TaskID(r.task), Step: r.step,
			Worker: platform.WorkerID(workers[first].id), Start: r.start, End: r.end})
		begun = max(begun, r.step+1)
	}
	return spans, begun
}

// noteReady sets when the last predecessor of every span had ended.
func noteReady(s *schedule.Schedule, p *schedule.Problem) {
	g, n := p.Graph, len(p.Graph.Tasks)
	ends := make([]time.Duration, n*s.Steps)
	for _, sp := range s.Spans {
		ends[int(sp.Step)*n+int(sp.Task)] = sp.End
	}
	same, next := edgesInto(n, p.Reuse), edgesInto(n, p.ReuseNext)
	for i := range s.Spans {
		sp := &s.Spans[i]
		latest := func(step int, preds []int32) {
			if step < 0 {
				return
			}
			for _, q := range preds {
				sp.Ready = max(sp.Ready, ends[step*n+int(q)])
			}
		}
		here, before := int(sp.Step), int(sp.Step)-1
		latest(here, g.Preds(sp.Task))
		latest(here, same[sp.Task])
		latest(before, g.CarriedPreds(sp.Task))
		latest(before, g.ReusePreds(sp.Task))
		latest(before, next[sp.Task])
	}
}
