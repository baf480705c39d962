package best

import (
	"context"
	"time"

	"dahl/plan/certificate"
	"dahl/plan/relax"
)

const (
	// leavesOfAll is into how many parts of all sets of devices a bound for all lowerings goes, and workOfAll bounds the parts times
	// the operations of a step.
	leavesOfAll, workOfAll = 24, 2000
	// partOfAll is the part of the time of a search that the bound may take in addition.
	partOfAll = 0.05
)

// boundAll finds a bound for all lowerings on all sets of devices, if the space knows their work. It holds for the plans of the
// certificate as well.
func (r *Result) boundAll(ctx context.Context, c *certificate.Certificate) error {
	f := r.from
	if f.Quick || f.space.Shares == nil {
		return nil
	}
	step, p, err := f.space.Shares()
	if err != nil {
		return err
	}
	ended := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	if ended || f.Time > 0 {
		limit := time.Duration(0)
		if !ended {
			limit = time.Duration(partOfAll * float64(f.Time))
		}
		within, cancel := context.WithTimeout(ctx, max(limit, time.Second/4))
		defer cancel()
		ctx = within
	}
	leaves := max(1, min(leavesOfAll, workOfAll/max(1, len(step.Work))))
	bound, err := relax.Shares(ctx, &relax.Sharing{Step: step, Platform: p, Aim: f.Aim, Leaves: leaves, Enough: r.Value})
	if err != nil {
		return nil // a device of which bounds know nothing
	}
	if r.All = min(bound.Bound(), r.Value); r.All > 0 {
		c.Layers = bound
		r.Bound = max(r.Bound, r.All)
		r.Proven = r.Bound >= r.Value*(1-rounding)
	}
	return nil
}
