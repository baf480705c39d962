package best

import (
	"cmp"
	"context"
	"slices"

	"dahl/plan/certificate"
	"dahl/plan/relax"
)

// iterations bounds each linear program, far above what the largest have taken.
const iterations = 200_000

// relaxation finds the proof of a bound of a model.
type relaxation func(ctx context.Context, m *certificate.Model, value float64, iterations int) (*certificate.Proof, error)

// boundWork bounds all choices by the work that they have, and sorts them by that.
func (f *finder) boundWork(ctx context.Context) error {
	err := inParallel(ctx, len(f.candidates), func(i int) error {
		if c := f.candidates[i]; !c.proven {
			return f.bound(ctx, c, relax.Area)
		}
		return nil
	})
	slices.SortStableFunc(f.candidates, func(a, b *candidate) int { return cmp.Compare(a.bound, b.bound) })
	return err
}

// prove bounds the choice with the least bound by its relaxation, until that is done for the one that has it
// or the nodes are spent. A relaxation counts as four plans.
func (f *finder) prove(ctx context.Context) error {
	for {
		least := slices.MinFunc(f.candidates, func(a, b *candidate) int { return cmp.Compare(a.bound, b.bound) })
		if least.linear || least.proven || least.bound >= f.best.Value || f.left <= 0 {
			return nil
		}
		f.left -= 4 * least.nodesOfPlan()
		if err := f.bound(ctx, least, relax.Bound); err != nil {
			return err
		}
		least.linear = true
	}
}

// bound proves a bound of a choice, and keeps it if it is above what is known.
func (f *finder) bound(ctx context.Context, c *candidate, by relaxation) error {
	parts, err := certificate.Parts(string(f.Objective))
	if err != nil {
		return err
	}
	leaf := &certificate.Leaf{Choice: c.Choice, Graph: c.priced.Program.Graphs[0].Hash()}
	for _, part := range parts {
		m, err := certificate.NewModel(c.priced, 0, part, f.Steady)
		if err != nil {
			return err
		}
		known := float64(f.best.Joules * 1e9)
		if part == certificate.Time {
			known = float64(f.best.Makespan)
		}
		proof, err := by(ctx, m, known, iterations)
		if err != nil {
			return err
		}
		if err := leaf.Add(m, proof); err != nil {
			return err
		}
	}
	bound := leaf.Bound()
	if c.leaf == nil || bound > c.leaf.Bound() {
		c.leaf = leaf
	}
	c.bound = max(c.bound, bound)
	return nil
}
