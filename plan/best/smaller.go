package best

import (
	"context"
	"math"
	"sort"

	"dahl/plan/space"
)

// leastGain is a part of the best value. A brief search goes on to choices with even fewer bytes where the last few have less.
const leastGain = 0.95

// trySmaller plans for choices like one that keep fewer bytes, where a memory is too small for it: it has no plan, or its plan reloads what a memory had dropped. In
// the second case it stops at choices of which one reloads nothing. A brief search stops where a few gain little. The nodes of these few plans are beyond the budget.
func (f *finder) trySmaller(ctx context.Context, c *candidate) error {
	if f.space.Smaller == nil || c.Strategy != "" || f.reduced[c.Choice] || !f.isShort(c) {
		return nil
	}
	f.reduced[c.Choice] = true
	all, err := f.space.Smaller(c.Choice)
	if err != nil {
		return err
	}
	left := f.left
	defer func() { f.left = left }()
	if f.Brief && f.best == nil {
		return f.tryByHalves(ctx, c, all)
	}
	for short := true; short && len(all) > 0; {
		now := all[:min(batch, len(all))]
		all = all[len(now):]
		before, value := len(f.candidates), math.Inf(1)
		if f.best != nil {
			value = f.best.Value
		}
		if err := f.try(ctx, now, c); err != nil {
			return err
		}
		for _, of := range f.candidates[before:] {
			short = short && (c.list == nil || f.isShort(of))
		}
		if f.Brief && f.best != nil && f.best.Value > value*leastGain {
			return nil
		}
	}
	return nil
}

// tryByHalves looks for the first of some choices like one that has a plan, by halving the list: each choice keeps fewer bytes than the one before.
func (f *finder) tryByHalves(ctx context.Context, like *candidate, all []space.Choice) (err error) {
	sort.Search(len(all), func(i int) bool {
		if err == nil {
			err = f.try(ctx, all[i:i+1], like)
		}
		return err != nil || f.hasPlan(all[i])
	})
	return err
}

// isShort reports whether a memory is too small for a choice that was planned for.
func (f *finder) isShort(c *candidate) bool {
	if c.list == nil {
		return c.planned
	}
	e, err := f.Evaluator.Plan(c.priced, c.list)
	return err == nil && e.Decision.Placed != nil && e.Decision.Placed.Graphs[0].Reloads()
}

// smaller is the part of a round with choices that keep fewer bytes, like the one on all devices and like the best one without a strategy.
func (f *finder) smaller() part {
	return part{run: func(ctx context.Context, _ int) error {
		for _, c := range append([]*candidate{f.whole}, f.byList()...) {
			err := f.trySmaller(ctx, c)
			if err != nil || c != f.whole && c.Strategy == "" || f.Brief && f.over() {
				return err
			}
		}
		return nil
	}}
}
