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
	work, chain, err := m.Work(ctx, opt)
	if err != nil {
		return nil, err
	}
	var links []shares.Link
	for _, l := range chain {
		links = append(links, shares.Link(l))
	}
	return shares.NewStep(worksOf(work), links), nil
}

func worksOf(work []nn.Work) (all []shares.Work) {
	for _, w := range work {
		of := shares.Work{Name: w.Name}
		for _, f := range w.Forms {
			form := shares.Form{Op: f.Op, Type: f.Type.String(), Flops: f.Flops, Sides: f.Sides, Also: worksOf(f.Also)}
			for _, m := range f.Moved {
				form.Moved = append(form.Moved, shares.Moved(m))
			}
			of.Forms = append(of.Forms, form)
		}
		all = append(all, of)
	}
	return all
}
