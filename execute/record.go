package execute

import (
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/platform"
	"dahl/schedule"
)

// maxRecords bounds the tasks recorded in one run, and with them its memory.
const maxRecords = 1 << 27

// logs collects the spans of all lanes and the changes of clocks and of sleep. Times of devices are put
// on the clock of the run.
func (r *Runner) logs(j *job) (lanes [][]schedule.Span, changes []schedule.Change) {
	for _, w := range r.workers {
		lanes = append(lanes, w.spans)
	}
	if j.ranked != nil {
		for _, a := range j.ranked.arrives {
			lanes = append(lanes, a.spans)
		}
	}
	for d := range r.eachDevice {
		clock := d.times.align(d)
		if st, ok := d.Driver.(driver.Stater); ok {
			for _, c := range st.Changes() {
				c.Start, c.End = clock.At(c.Start), clock.At(c.End)
				changes = append(changes, c)
			}
		}
		for _, l := range d.lanes {
			spans := make([]schedule.Span, len(l.spans))
			for i, s := range l.spans {
				spans[i] = schedule.Span{Task: dag.TaskID(s.task), Step: s.step, Worker: platform.WorkerID(l.id), Start: clock.At(s.Start), End: clock.At(s.End)}
			}
			lanes = append(lanes, spans)
		}
	}
	return lanes, changes
}

// collect turns the notes of the lanes into a schedule. The schedule of a run cut short has as
// many steps as were begun.
func (r *Runner) collect(j *job, p *schedule.Problem) (*schedule.Schedule, error) {
	s := &schedule.Schedule{World: schedule.Measured, GraphHash: p.Graph.Hash(), Policy: r.decision.PolicyName(j.graph.index), Steps: j.steps}
	var others []outcome
	if n := r.opt.Ranks; n != nil && j.failure.Load() == nil {
		var err error
		if others, err = n.outcomes(); err != nil {
			j.fail(err)
		}
	}
	if !j.record {
		s.Makespan, s.Period = j.ended, r.period(j, others)
		return s, nil
	}
	lanes, changes := r.logs(j)
	for _, o := range others {
		lanes, changes = append(lanes, o.Spans...), append(changes, o.Changes...)
	}
	s.Changes = changes
	s.Spans, s.Steps = mergeSpans(lanes), 1
	for i := range s.Spans {
		s.Steps = max(s.Steps, int(s.Spans[i].Step)+1)
	}
	var err error
	if c := j.graph; c.graph != c.origin {
		note := func() { noteReady(s, c.graph, c.placed.Orders()) }
		if note(); r.opt.Ranks != nil {
			settle(s, len(r.platform.Workers), note)
		}
		s, err = s.ToOrigin(p, c.placed, j.entered)
	} else {
		noteReady(s, p.Graph, [][]dag.Edge{p.Reuse, p.ReuseNext})
		err = s.Complete(p)
	}
	if err != nil {
		return nil, fmt.Errorf("execute graph %q: schedule of the run: %w", p.Graph.Name, err)
	}
	s.ModelStates(p)
	return s, nil
}

// mergeSpans merges the spans of lanes, each sorted by start, into one list by start, then lane. It
// uses the lists up.
func mergeSpans(lanes [][]schedule.Span) []schedule.Span {
	merged := slices.Concat(lanes...)
	for i := range merged {
		first := -1
		for l, spans := range lanes {
			if len(spans) > 0 && (first < 0 || spans[0].Start < lanes[first][0].Start) {
				first = l
			}
		}
		merged[i], lanes[first] = lanes[first][0], lanes[first][1:]
	}
	return merged
}

// noteReady sets, for every span, when its last predecessor had ended.
func noteReady(s *schedule.Schedule, g *dag.Graph, orders [][]dag.Edge) {
	n := len(g.Tasks)
	ends := make([]time.Duration, n*s.Steps)
	for _, sp := range s.Spans {
		ends[int(sp.Step)*n+int(sp.Task)] = sp.End
	}
	into := predecessors(g, orders)
	for i := range s.Spans {
		sp := &s.Spans[i]
		into(sp.Task, func(back int32, preds []int32) {
			if back > sp.Step {
				return
			}
			for _, q := range preds {
				sp.Ready = max(sp.Ready, ends[int(sp.Step-back)*n+int(q)])
			}
		})
	}
}
