package main

import (
	"dahl/cmd/dahl/record"
	"dahl/plan"
	"dahl/plan/strategy"
)

// addStrategy says what the cost model of a published strategy makes of its plan, and how a pipeline fills and drains.
func (w *workload) addStrategy(s *record.Summary, o *plan.Totals) {
	decided := &w.Decision.Graphs[0]
	s.Pipeline = plan.PipelinedOf(o.Main, decided.Plan)
	of, ok := w.Options.Policy.(*strategy.Strategy)
	if !ok || decided.Plan == nil || decided.Plan.Policy != of.Doc().Name {
		return
	}
	if model, err := of.Model(&decided.Problem); err == nil {
		s.Strategy = &record.StrategySummary{ModelS: model.Seconds, Says: of.Says, Paper: of.Doc().Paper, Minibatches: model.Minibatches, Stages: model.Stages}
	}
}
