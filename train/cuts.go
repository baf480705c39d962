package train

import (
	"context"

	"dahl/dag"
	"dahl/plan"
	"dahl/schedule"
)

// CutCosts lists what it costs on each device of the platform to cut single layers of the network; see [plan.CutCosts].
func (w *Workload) CutCosts(ctx context.Context) ([]plan.CutCost, error) {
	if w.Model.BusiestLayer() == "" {
		return nil, nil // it has no weights
	}
	t, err := w.Tilings()
	if err != nil {
		return nil, err
	}
	return plan.CutCosts(ctx, t, w.PriceAs)
}

// PriceAs prices a step on batches of as many samples with another lowering.
func (w *Workload) PriceAs(l dag.Lowering) (*schedule.Priced, error) {
	of := *w
	of.Options.Lowering, of.Samples = &l, Samples{Train: of.Options.Batch, Type: w.Samples.Type}
	if of.Options.Evaluate {
		of.Samples.Test = of.Options.Batch
	}
	if err := of.Lower(); err != nil {
		return nil, err
	}
	of.Program.Graphs, of.Program.Order = of.Program.Graphs[:1], []dag.Segment{{Graph: 0, Steps: 1}}
	return schedule.Price(of.Program, of.Platform, of.Target())
}
