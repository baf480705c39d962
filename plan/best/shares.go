package best

import (
	"context"

	"dahl/plan/relax"
)

// leavesOfAll is into how many parts of all sets of devices a bound for all lowerings goes, and workOfAll bounds the parts times
// the operations of a step.
const leavesOfAll, workOfAll = 24, 2000

// boundAll finds a bound for all lowerings on all sets of devices, if the space knows their work. It holds for the plans of the
// certificate as well.
func (f *finder) boundAll(ctx context.Context) error {
	if f.space.Shares == nil {
		return nil
	}
	step, p, err := f.space.Shares(ctx)
	if err != nil {
		return err
	}
	leaves := max(1, min(leavesOfAll, workOfAll/max(1, len(step.Work))))
	// Without a bound there is a device of which bounds know nothing.
	f.all, _ = relax.Shares(ctx, &relax.Sharing{Step: step, Platform: p, Aim: f.Aim, Leaves: leaves, Enough: f.best.Value})
	return nil
}
