package execute

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// maxRecords bounds the tasks recorded in one run, and with them its memory.
const maxRecords = 1 << 27

// logs collects the spans of all lanes, the transfers that a policy has made, and the changes of
// clocks and of sleep. Those of devices
// are put on the clock of the run.
func (r *Runner) logs() (lanes [][]schedule.Span, transfers []schedule.Transfer, changes []schedule.Change) {
	for _, w := range r.workers {
		lanes = append(lanes, w.spans)
	}
	for d := range r.eachDevice {
		clock := d.times.align(d)
		if st, ok := d.driver.(stater); ok {
			for _, c := range st.changes() {
				c.Start, c.End = clock.at(c.Start), clock.at(c.End)
				changes = append(changes, c)
			}
		}
		for _, l := range d.lanes {
			spans := make([]schedule.Span, len(l.spans))
			for i, s := range l.spans {
				spans[i] = schedule.Span{Task: dag.TaskID(s.task), Step: s.step, Worker: platform.WorkerID(l.id), Start: clock.at(s.start), End: clock.at(s.end)}
			}
			if l.queue == nil || l.Worker >= 0 {
				lanes = append(lanes, spans)
				continue
			}
			for i, t := range l.queue.moved { // this lane has no tasks
				t.Start, t.End = spans[i].Start, spans[i].End
				transfers = append(transfers, t)
			}
		}
	}
	return lanes, transfers, changes
}

// collect turns the notes of the lanes into a schedule. The schedule of a run cut short has as
// many steps as were begun.
func (r *Runner) collect(j *job, p *schedule.Problem) (*schedule.Schedule, error) {
	s := &schedule.Schedule{World: schedule.Measured, GraphHash: p.Graph.Hash(), Policy: r.decision.PolicyName(j.graph.index), Steps: j.steps}
	if !j.record {
		s.Makespan, s.Period = j.ended, r.period(j)
		return s, nil
	}
	lanes, transfers, changes := r.logs()
	s.Changes = changes
	s.Spans, s.Steps = mergeSpans(lanes), 1
	for i := range s.Spans {
		s.Steps = max(s.Steps, int(s.Spans[i].Step)+1)
	}
	var err error
	if c := j.graph; c.graph != c.origin {
		noteReady(s, c.graph, c.placed.Orders())
		s, err = s.ToOrigin(p, c.placed, j.entered)
	} else {
		noteReady(s, p.Graph, [][]dag.Edge{p.Reuse, p.ReuseNext})
		if j.dynamic != nil && r.spread {
			s.Transfers, s.Evictions = transfers, inTime(s, p.Graph, j.dynamic.evictions)
			noteArrivals(s, p)
		}
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

// noteArrivals moves the ready time of spans to the arrival of their last operand.
func noteArrivals(s *schedule.Schedule, p *schedule.Problem) {
	type place struct {
		atom   int32
		memory platform.MemoryID
	}
	arrived := map[place]time.Duration{}
	byEnd := slices.SortedFunc(slices.Values(s.Transfers), func(a, b schedule.Transfer) int { return cmp.Compare(a.End, b.End) })
	next := 0
	for i := range s.Spans {
		sp := &s.Spans[i]
		for ; next < len(byEnd) && byEnd[next].End <= sp.Start; next++ {
			for _, a := range byEnd[next].Atoms {
				arrived[place{a, byEnd[next].To}] = byEnd[next].End
			}
		}
		memory := p.Platform.MemoryOf(sp.Worker)
		for k, access := range p.Graph.Tasks[sp.Task].Accesses {
			if !access.Mode.Reads() {
				continue
			}
			for _, a := range p.Graph.Atoms(sp.Task, k) {
				sp.Ready = max(sp.Ready, arrived[place{a, memory}])
			}
		}
	}
}

// inTime drops evictions of contents that had their last use. The measured end of a task lies a
// little before the moment at which the Engine hears of it. Contents that leave in between are no
// evictions.
func inTime(s *schedule.Schedule, g *dag.Graph, evictions []schedule.Eviction) []schedule.Eviction {
	type life struct{ from, to time.Duration }
	lives := map[int32][]life{} // by evicted atom that lives within a step, and step
	written := g.WrittenStorages()
	for i := range evictions {
		for _, a := range evictions[i].Atoms {
			if b := evictions[i].Buffer; written[b] && !g.Carried(b) {
				lives[a] = make([]life, s.Steps)
			}
		}
	}
	for i := range s.Spans {
		sp := &s.Spans[i]
		for k := range g.Tasks[sp.Task].Accesses {
			for _, a := range g.Atoms(sp.Task, k) {
				if steps, ok := lives[a]; ok {
					l := &steps[sp.Step]
					if l.to == 0 {
						l.from = sp.Start // spans are by start
					}
					l.to = max(l.to, sp.End)
				}
			}
		}
	}
	late := func(a int32, at time.Duration) bool {
		steps, within := lives[a]
		return within && !slices.ContainsFunc(steps, func(l life) bool { return l.from <= at && at <= l.to })
	}
	kept := evictions[:0]
	for _, e := range evictions {
		e.Atoms = slices.DeleteFunc(e.Atoms, func(a int32) bool { return late(a, e.At) })
		e.Bytes = 0
		for _, a := range e.Atoms {
			e.Bytes += g.AtomBytes(dag.AtomID(a))
		}
		if len(e.Atoms) > 0 {
			kept = append(kept, e)
		}
	}
	return kept
}
