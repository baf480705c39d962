package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/ready"
)

// PlanFrom writes down the decisions of a run: for each worker the tasks of one step in the order
// in which they started. It takes the step in the middle, which neither the start nor the end of
// the run disturbs.
func PlanFrom(s *Schedule, policy string, g *dag.Graph) *Plan {
	step := int32((s.Steps - 1) / 2)
	plan := &Plan{Policy: policy, GraphHash: g.Hash()}
	var spans []Span
	for _, span := range s.Spans {
		if span.Step == step {
			spans = append(spans, span)
		}
	}
	// A task of no duration ends before the next one starts, and several at one moment are
	// in the order in which their worker ran them.
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	for _, span := range spans {
		for int(span.Worker) >= len(plan.Order) {
			plan.Order = append(plan.Order, nil)
		}
		plan.Order[span.Worker] = append(plan.Order[span.Worker], span.Task)
	}
	return plan
}

// Check verifies that a plan fits a problem: every task once, on a worker that can run it, colocated tasks together,
// in an order without contradiction to the dependences.
func (plan *Plan) Check(p *Problem) error {
	fit, err := NewFit(p)
	if err != nil {
		return err
	}
	g, pl := p.Graph, p.Platform
	if len(plan.Order) > len(pl.Workers) {
		return fmt.Errorf("the plan is for %d workers, platform %q has %d", len(plan.Order), pl.Name, len(pl.Workers))
	}
	seen := make([]bool, len(g.Tasks))
	for w, list := range plan.Order {
		for _, t := range list {
			if int(t) < 0 || int(t) >= len(g.Tasks) {
				return fmt.Errorf("the plan gives worker %q task %d; graph %q has %d", pl.Workers[w].Name, t, g.Name, len(g.Tasks))
			}
			if seen[t] {
				return fmt.Errorf("the plan runs task %q twice in one step", g.Tasks[t].Name)
			}
			seen[t] = true
			if !fit.CanRun(t, platform.WorkerID(w)) {
				return fmt.Errorf("the plan puts task %q on worker %q, %s", g.Tasks[t].Name, pl.Workers[w].Name, fit.Refusal(t, platform.WorkerID(w)))
			}
			fit.Give(t, platform.WorkerID(w))
		}
	}
	for t, ok := range seen {
		if !ok {
			return fmt.Errorf("the plan leaves out task %q", g.Tasks[t].Name)
		}
	}
	if plan.Lags != nil {
		return plan.checkLags(g)
	}
	if _, stuck := ready.Sort(g.Links, p.Reuse, plan.Order); stuck >= 0 {
		return fmt.Errorf("the plan's order contradicts the dependences: task %q could never start", g.Tasks[stuck].Name)
	}
	return nil
}

// checkLags verifies that the periods of a plan can run. The graph has the versions of the plan.
func (plan *Plan) checkLags(g *dag.Graph) error {
	if n := len(plan.Lags); n != len(g.Tasks) {
		return fmt.Errorf("the plan has lags of %d tasks; graph %q has %d", n, g.Name, len(g.Tasks))
	}
	for t, lag := range plan.Lags {
		if lag < 0 || lag > maxLag {
			return fmt.Errorf("the plan lets task %q run %d steps behind others; write a number from 0 to %d", g.Tasks[t].Name, lag, maxLag)
		}
	}
	if _, stuck := ready.SortPeriod(g.Links, plan.Lags, plan.Order); stuck >= 0 {
		return fmt.Errorf("the plan's order and lags contradict the dependences: task %q could never start; let it lag more, or give buffers more versions", g.Tasks[stuck].Name)
	}
	return nil
}

// maxLag bounds the steps in progress.
const maxLag = 1024
