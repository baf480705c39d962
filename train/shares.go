package train

import (
	"cmp"
	"context"

	"dahl/nn"
	"dahl/plan/shares"
)

// shares is the work of the first step in every lowering.
func (w *Workload) shares(ctx context.Context) (*shares.Step, error) {
	return Shares(ctx, w.Model, w.firstStep())
}

// firstStep says how the first graph of the program is lowered, but for its lowering.
func (w *Workload) firstStep() nn.LowerOptions {
	o := w.programOptions()
	samples := cmp.Or(o.TrainSamples, o.TestSamples)
	return nn.LowerOptions{Batch: min(o.Batch, samples), Samples: samples, Train: o.TrainSamples > 0, Type: o.Type, Optimizer: o.Optimizer,
		SampleType: o.SampleType, Divisor: o.Divisor, Stream: o.Stream, Outputs: o.Outputs, Prepared: o.TrainSamples == 0}
}

// Shares is the work of a step of a network in every lowering.
func Shares(ctx context.Context, m *nn.Model, opt nn.LowerOptions) (*shares.Step, error) {
	step, err := m.Work(ctx, opt)
	if err != nil {
		return nil, err
	}
	return shares.NewStep(step), nil
}
