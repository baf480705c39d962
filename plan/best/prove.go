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

// relaxation finds proofs of a bound of a model, of parts that are all plans together.
type relaxation func(ctx context.Context, m *certificate.Model, value float64) ([]*certificate.Proof, error)

// one makes a relaxation of one that finds a single proof.
func one(find func(ctx context.Context, m *certificate.Model, value float64, iterations int) (*certificate.Proof, error)) relaxation {
	return func(ctx context.Context, m *certificate.Model, value float64) ([]*certificate.Proof, error) {
		proof, err := find(ctx, m, value, iterations)
		return []*certificate.Proof{proof}, err
	}
}

// branched relaxes parts of all plans, see [relax.Branch].
func branched(ctx context.Context, m *certificate.Model, value float64) ([]*certificate.Proof, error) {
	const parts = 100
	return relax.Branch(ctx, m, value, parts, iterations)
}

// boundWork bounds all choices by the work that they have, and sorts them by that.
func (f *finder) boundWork(ctx context.Context) error {
	err := inParallel(ctx, len(f.candidates), func(i int) error {
		if c := f.candidates[i]; !c.proven {
			return f.bound(ctx, one(relax.Area), c)
		}
		return nil
	})
	slices.SortStableFunc(f.candidates, func(a, b *candidate) int { return cmp.Compare(a.bound, b.bound) })
	return err
}

// How the bound of a choice was found, from weak to strong.
const (
	byWork   = iota
	byJoined // by one relaxation for choices that differ in numbers of units only
	byRelaxation
	byParts
)

// prove raises the bound of the choice that has the least one, from step to step, until that is done for the one that
// has it, or the nodes are spent. A relaxation counts as four plans, one by parts as 40.
func (f *finder) prove(ctx context.Context) error {
	for {
		least := slices.MinFunc(f.candidates, func(a, b *candidate) int { return cmp.Compare(a.bound, b.bound) })
		if least.by == byParts || least.proven || least.bound >= f.best.Value || f.left <= 0 {
			return nil
		}
		least.by++
		group, by, plans := []*candidate{least}, one(relax.Bound), 4
		switch least.by {
		case byJoined:
			if group = f.like(least); len(group) == 1 {
				continue
			}
		case byParts:
			by, plans = branched, 40
		}
		f.left -= plans * least.nodesOfPlan()
		if err := f.bound(ctx, by, group...); err != nil {
			return err
		}
	}
}

// like are the choices that differ from one in numbers of units only, itself first.
func (f *finder) like(of *candidate) []*candidate {
	group := []*candidate{of}
	for _, c := range f.candidates {
		if c != of && c.by < byJoined && c.Tiles == of.Tiles && c.graph == of.graph && slices.Equal(c.names(), of.names()) {
			c.by = byJoined
			group = append(group, c)
		}
	}
	return group
}

// names are those of the devices that may run any task.
func (c *candidate) names() (names []string) {
	p := c.priced.Platform
	for i := range p.Devices {
		if d := &p.Devices[i]; !d.PlacedOnly {
			names = append(names, d.Name)
		}
	}
	return names
}

// bound proves a bound of choices together, and keeps it for those that have a lower one.
func (f *finder) bound(ctx context.Context, by relaxation, group ...*candidate) error {
	parts, err := certificate.Parts(string(f.Objective))
	if err != nil {
		return err
	}
	leaf := &certificate.Leaf{Choice: group[0].Choice, Graph: group[0].graph}
	for _, c := range group[1:] {
		leaf.Joined = append(leaf.Joined, c.Devices)
	}
	for _, part := range parts {
		models := make([]*certificate.Model, len(group))
		for i, c := range group {
			if models[i], err = certificate.NewModel(c.priced, 0, part, f.Steady); err != nil {
				return err
			}
		}
		m, err := certificate.Join(models...)
		if err != nil {
			return err
		}
		known := map[certificate.Objective]float64{certificate.Time: float64(f.best.Makespan), certificate.Energy: float64(f.best.Joules * 1e9),
			certificate.EDP: float64(f.best.Value * 1e18)}[part]
		proofs, err := by(ctx, m, known)
		if err != nil {
			return err
		}
		if err := leaf.Add(m, proofs...); err != nil {
			return err
		}
	}
	bound := leaf.Bound()
	for _, c := range group {
		if c.leaf == nil || bound > c.leaf.Bound() {
			c.leaf = leaf
		}
		c.bound = max(c.bound, bound)
	}
	return nil
}
