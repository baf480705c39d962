package main

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/cmd/cli"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/plan/improve"
	"dahl/plan/problem"
	"dahl/plan/space"
)

// rounded is a relative distance from a bound that floating-point numbers may leave where clocks are the best.
const rounded = 1e-6

// chooseClocks takes the plan of a file at the clocks that are best for the objective. Its tasks stay where they are, in their order.
func (w *workload) chooseClocks(ctx context.Context) (*best.Result, error) {
	o, program := w.opts, w.Program
	w.Workload = *w.firstGraph()
	if err := w.decide(); err != nil {
		return nil, err
	}
	of := improve.Options{Aim: problem.Aim{Objective: problem.Objective(o.Objective), Steady: o.Steps > 1, Deadline: o.Deadline}, Moves: cmp.Or(o.Budget, math.MaxInt)}
	for i := range w.Platform.Devices {
		of.Clocks = append(of.Clocks, w.Platform.Devices[i].FreeClocks())
	}
	if o.BudgetTime > 0 {
		within, cancel := context.WithDeadline(ctx, o.Begun.Add(o.BudgetTime))
		defer cancel()
		ctx = within
	}
	found, err := improve.Clocks(ctx, w.Decision.Priced, w.Options.Plan, of)
	if err != nil {
		return nil, cli.AsInput(err)
	}
	if o.Deadline > 0 && found.Time > o.Deadline {
		return nil, cli.InputErrorf("--deadline %s: by no clocks that were found is a step of %s as short; one takes %s", cli.ShortTime(o.Deadline), o.Plan, cli.ShortTime(found.Time))
	}
	if w.Options.Plan, w.Decision, w.Program = found.Plan(), found.Evaluated.Decision, program; o.Epochs > 0 {
		if err := w.Choose(); err != nil {
			return nil, err
		}
	}
	r := &best.Result{Result: exact.Result{Plan: found.Plan(), Makespan: found.Time, Joules: found.Joules, Value: found.Value, Bound: found.Bound,
		Proven: found.Bound >= found.Value*(1-rounded)},
		Evaluated: found.Evaluated, Choice: space.Choice{Devices: w.Options.Devices}, Covered: best.Covered{Clocks: true}}
	for _, other := range append(found.Front, found.Result) {
		r.Simulated = append(r.Simulated, best.Attempt{Choice: r.Choice, Policy: other.Plan().Policy, Makespan: other.Time, Joules: other.Joules, Value: other.Value, Plan: other.Plan()})
	}
	slices.SortStableFunc(r.Simulated, func(a, b best.Attempt) int { return cmp.Compare(a.Makespan, b.Makespan) })
	return r, nil
}
