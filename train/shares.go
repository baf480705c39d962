package train

import (
	"context"

	"dahl/nn"
	"dahl/plan/shares"
)

// shares is the work of the first step in every lowering.
func (w *Workload) shares(ctx context.Context) (*shares.Step, error) {
	o := w.programOptions()
	batch := min(o.Batch, o.TrainSamples)
	return Shares(ctx, w.Model, nn.LowerOptions{Batch: batch, Samples: o.TrainSamples, Type: o.Type, Optimizer: o.Optimizer, SampleType: o.SampleType, Divisor: o.Divisor, Stream: o.Stream})
}

// Shares is the work of a training step of a network in every lowering.
func Shares(ctx context.Context, m *nn.Model, opt nn.LowerOptions) (*shares.Step, error) {
	step, err := m.Work(ctx, opt)
	if err != nil {
		return nil, err
	}
	return shares.NewStep(step), nil
}
