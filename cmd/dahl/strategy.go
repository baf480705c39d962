package main

import (
	"cmp"
	"context"
	"math"

	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/plan/pipeline"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/strategy"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train"
)

// addStrategy says what the cost model of a published strategy makes of its plan, and how a pipeline fills and drains.
func (w *workload) addStrategy(s *record.Summary, o *plan.Totals) {
	decided := &w.Decision.Graphs[0]
	s.Pipeline = plan.PipelinedOf(o.Main, decided.Plan)
	if step, ok := w.StepOf(); ok {
		s.Strategy = &record.StrategySummary{ModelS: step.Seconds, Says: words.StepText(&step), Minibatches: 1}
		if of := w.Options.Strategy; of != nil {
			s.Strategy.Paper = of.Doc().Paper
		}
		return
	}
	of, ok := w.Options.Policy.(*strategy.Strategy)
	if !ok || decided.Plan == nil || decided.Plan.Policy != of.Doc().Name {
		return
	}
	if model, err := of.Model(&decided.Problem); err == nil {
		s.Strategy = &record.StrategySummary{ModelS: model.Seconds, Says: of.Says, Paper: of.Doc().Paper, Minibatches: model.Minibatches, Stages: model.Stages}
	}
}

// overlapping looks for the plan of a graph file with the shortest steady step, in which steps overlap. Its seeds are the plans of all policies and published
// strategies. Nil means no such plan, or another objective.
func (w *workload) overlapping(ctx context.Context, s *train.Space) *pipeline.Result {
	o := w.opts
	if o.Model != "" || o.Objective != string(problem.Time) || o.Steps <= 1 || o.Deadline > 0 {
		return nil
	}
	if o.BudgetTime > 0 {
		within, cancel := context.WithDeadline(ctx, o.Begun.Add(o.BudgetTime/3))
		defer cancel()
		ctx = within
	}
	priced, err := s.Space.Price(space.Choice{})
	if err != nil {
		return nil
	}
	of := pipeline.Options{Nodes: cmp.Or(o.Budget, math.MaxInt32), Seed: o.Seed, Steps: min(o.Steps, mostTimed), Evaluator: &plan.Evaluator{}}
	var seeds []*schedule.Plan
	for _, policy := range policy.All() {
		if e, err := of.Evaluator.Policy(ctx, priced, policy, true); err == nil && e != nil {
			seeds = append(seeds, e.Plan())
		}
	}
	for _, strategy := range strategy.All() {
		if made, err := strategy.Plan(priced.Problem(0, 1)); err == nil {
			seeds = append(seeds, made)
		}
	}
	found, _ := pipeline.Search(ctx, priced, seeds, of)
	return found
}

// mostTimed bounds the steps in which plans are compared.
const mostTimed = 12

// withOverlap is the better one of the result of a search and a plan with overlapping steps.
func withOverlap(found *best.Result, overlapping *pipeline.Result) *best.Result {
	if overlapping == nil || overlapping.Step.Time >= found.Makespan {
		return found
	}
	step := overlapping.Step
	value := problem.Time.Of(step.Time, step.Joules)
	r := &best.Result{Result: exact.Result{Plan: overlapping.Plan(), Makespan: step.Time, Joules: step.Joules, Value: value, Bound: overlapping.Bound.Seconds(), Nodes: overlapping.Nodes},
		Evaluated: overlapping.Evaluated, Covered: best.Covered{Lags: true}, Tried: found.Tried, Simulated: found.Simulated}
	r.Proven = r.Bound >= r.Value
	r.Simulated = append([]best.Attempt{{Choice: r.Choice, Policy: r.Plan.Policy, Makespan: step.Time, Joules: step.Joules, Value: value, Plan: r.Plan}}, r.Simulated...)
	return r
}
