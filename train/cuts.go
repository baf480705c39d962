package train

import (
	"context"
	"maps"

	"dahl/dag"
	"dahl/nn"
	"dahl/plan"
	"dahl/schedule"
)

// cutParts is in how many parts a layer is cut to see what that costs.
const cutParts = 2

// CutCosts lists what it costs on each device of the platform to cut single layers of the network in two; see [plan.CutCosts].
func (w *Workload) CutCosts(ctx context.Context) ([]plan.CutCost, error) {
	batch := w.Options.Batch
	cuts := nn.LayerCuts(w.Model, batch, cutParts)
	names := make([]plan.CutOf, len(cuts))
	for i := range cuts {
		names[i] = plan.CutOf{Layer: cuts[i].Layer, Along: cuts[i].Along}
	}
	whole := nn.WholeLowering(w.Model, batch, 0, w.Options.Type)
	return plan.CutCosts(ctx, names, func(cut int) (*schedule.Priced, error) {
		l := whole
		if cut >= 0 {
			l.Layers = maps.Clone(whole.Layers)
			l.Layers[cuts[cut].Layer] = cuts[cut].LayerLowering
		}
		of := *w
		of.Options.Lowering = &l
		if err := of.Lower(Samples{Train: batch}); err != nil {
			return nil, err
		}
		of.Program.Graphs, of.Program.Order = of.Program.Graphs[:1], []dag.Segment{{Graph: 0, Steps: 1}}
		return schedule.Price(of.Program, of.Platform, of.Target())
	})
}
