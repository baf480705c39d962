package best

import (
	"context"
	"slices"

	"dahl/plan/space"
	"dahl/schedule/policy"
)

// cutLayers goes downhill from the best choices over single layers, until nothing helps or a third of the nodes that are left
// is spent. It goes on to another neighbourhood when nothing in those before helps any of these choices, with a tenth of the nodes
// at most. After a step there it begins with the first again (variable neighbourhood descent: P. Hansen, N. Mladenović, European
// Journal of Operational Research 130(3), 2001).
// A search by one policy has no such part, since all its nodes are for these neighbourhoods.
// Durations are known as well there as of the choices of the space: measured, or else all by fits or by peak rates.
func (f *finder) cutLayers(ctx context.Context) error {
	least, most := f.left-f.left/3, searched
	if f.Quick {
		most = 1
	}
	for i := range f.space.Neighbourhoods {
		if i > 0 && f.Policy == nil {
			least = max(least, f.left-f.left/10)
		}
		starts := slices.DeleteFunc(f.byValue(), func(c *candidate) bool { return c != f.best && c.bound >= f.best.Value })
		for _, from := range starts[:min(len(starts), most)] {
			if err := f.cutFrom(ctx, from, f.space.Neighbourhoods[:i+1], least); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutLayersLonger is cutLayers with five times the nodes that were spent before.
func (f *finder) cutLayersLonger(ctx context.Context) error {
	f.left = 3 * 5 * (f.Nodes - f.left)
	return f.cutLayers(ctx)
}

// cutFrom goes downhill from a choice, in the last of some neighbourhoods at first, until only the least number of nodes is left.
func (f *finder) cutFrom(ctx context.Context, from *candidate, through []space.Neighbourhood, least int) error {
	for i := len(through) - 1; i < len(through) && f.left > least; {
		to, err := f.cutEach(ctx, from, through[i], least)
		if err != nil {
			return err
		}
		if to == from {
			i++
			continue
		}
		i, from = 0, to // planned by one policy so far
		if err := f.planBatch(ctx, []*candidate{from}, (*candidate).first); err != nil {
			return err
		}
	}
	return nil
}

// cutEach cuts one layer after the other, the layers with the most work first, and continues from the best result until only
// the least number of nodes is left.
func (f *finder) cutEach(ctx context.Context, from *candidate, through space.Neighbourhood, least int) (*candidate, error) {
	groups, err := through(from.Choice)
	for i := 0; err == nil && i < len(groups) && f.left > least; i++ {
		to, err := f.stepNeighbours(ctx, from, groups[i], least)
		if err != nil {
			return nil, err
		}
		if to != from {
			from = to
			if groups, err = through(from.Choice); err != nil {
				return nil, err
			}
		}
	}
	return from, err
}

// stepNeighbours plans for the neighbours of a choice by the policy of its own plan, except neighbours whose bound excludes a better
// one, and takes the best of all. A quick
// search lowers no more of them than the nodes above the least suffice for.
func (f *finder) stepNeighbours(ctx context.Context, from *candidate, choices []space.Choice, least int) (*candidate, error) {
	if f.Quick {
		choices = choices[:min(len(choices), max(1, (f.left-least)/from.nodesOfPlan()))]
	}
	neighbours, _, err := f.add(ctx, choices)
	if err != nil {
		return nil, err
	}
	known := from.priced.Costs(0).LeastKnown()
	for _, c := range neighbours {
		c.dropped = c.priced.Costs(0).LeastKnown() > known // what is best by estimates is often only estimated too well
	}
	for _, c := range neighbours {
		c.origin = from
	}
	if err := f.boundEach(ctx, neighbours); err != nil {
		return nil, err
	}
	neighbours = slices.DeleteFunc(neighbours, func(c *candidate) bool { return c.dropped || c.bound >= f.best.Value })
	err = f.planBatch(ctx, neighbours, func(c *candidate, ctx context.Context, f *finder) error {
		policy, err := policy.ByName(from.Policy)
		if err != nil || f.Quick || c.isSmall(f.Options) {
			return c.first(ctx, f)
		}
		_, err = c.planBy(ctx, f.Options, policy, nil)
		return err
	})
	return slices.MinFunc(slices.Insert(neighbours, 0, from), byValue), err
}

// dropOutside drops every candidate outside the space except the best, before any proof: a certificate covers
// the space, and what else has the plan.
func (f *finder) dropOutside(context.Context) error {
	for _, c := range f.candidates {
		c.dropped = c.origin != nil && c != f.best
	}
	return nil
}
