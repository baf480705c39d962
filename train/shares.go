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
	work, chains, err := m.Work(ctx, opt)
	if err != nil {
		return nil, err
	}
	var all []shares.Work
	for _, w := range work {
		of := shares.Work{Name: w.Name, Sometimes: w.Sometimes}
		for _, f := range w.Forms {
			form := shares.Form{Op: f.Op, Type: f.Type.String(), Flops: f.Flops, Sides: f.Sides, Summed: f.Summed, Result: f.Result, Also: f.Also}
			for _, m := range f.Moved {
				form.Moved = append(form.Moved, shares.Moved(m))
			}
			of.Forms = append(of.Forms, form)
		}
		all = append(all, of)
	}
	links := make([][]shares.Link, len(chains))
	for i, chain := range chains {
		for _, l := range chain {
			links[i] = append(links[i], shares.Link(l))
		}
	}
	return shares.NewStep(all, links), nil
}
