package best

import (
	"cmp"
	"context"
	"slices"

	"dahl/platform"
)

// nodesOfPlan is what a plan that is simulated counts of the budget.
func (c *candidate) nodesOfPlan() int { return max(16, len(c.priced.Program.Graphs[0].Tasks)) }

// alone plans for devices of one kind with all their units, so that a descent begins near the best also where
// another kind only costs time.
func (f *finder) alone(ctx context.Context) error {
	return f.planFor(ctx, slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool {
		p := c.priced.Platform
		return len(unitsByKind(c)) != 1 || slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return !d.PlacedOnly && d.Count < d.Whole })
	}))
}

// refine plans in all ways for the choices that are best so far.
func (f *finder) refine(ctx context.Context) error {
	some := f.bestOf(searched)
	err := inParallel(ctx, len(some), func(i int) error { return some[i].planAll(ctx, f.Options) })
	for _, c := range some {
		f.offer(c)
	}
	return err
}

// offer takes a choice that is better than the best one: of equal ones that with fewer units, since the others have
// nothing to do.
func (f *finder) offer(c *candidate) {
	units := func(of *candidate) int { return len(of.priced.Platform.Workers) }
	if c.Plan != nil && (c.Value < f.best.Value || c.Value == f.best.Value && units(c) < units(f.best)) {
		f.best = c
	}
}

// descend goes from the choice that is known to the best of those that differ from it in one respect, and on
// from there: in the numbers of units of one kind of device, or in the lowering. It ends where none of
// them is better.
func (f *finder) descend(ctx context.Context) error {
	for from := (*candidate)(nil); from != f.best; {
		from = f.best
		if err := f.planFor(ctx, slices.Collect(f.neighbours(from))); err != nil {
			return err
		}
	}
	return nil
}

// neighbours are the choices that differ from one in one respect.
func (f *finder) neighbours(of *candidate) func(yield func(*candidate) bool) {
	return func(yield func(*candidate) bool) {
		units := unitsByKind(of)
		for _, c := range f.candidates {
			differ := 0
			if c.Tiles != of.Tiles {
				differ++
			}
			theirs := unitsByKind(c)
			for kind, list := range units {
				if theirs[kind] != list {
					differ++
				}
			}
			for kind := range theirs {
				if _, ok := units[kind]; !ok {
					differ++
				}
			}
			if differ == 1 && !yield(c) {
				return
			}
		}
	}
}

// unitsByKind lists the units of a choice by kinds of devices.
func unitsByKind(c *candidate) map[string]string {
	units := map[string]string{}
	p := c.priced.Platform
	for i := range p.Devices {
		if d := &p.Devices[i]; !d.PlacedOnly {
			units[d.Kind] += d.Item(c.Devices) + " "
		}
	}
	return units
}

// sweep plans for the other choices by ascending bound, until no other can have a better plan or half of the nodes
// are spent.
func (f *finder) sweep(ctx context.Context) error {
	return f.planFor(ctx, f.candidates)
}

// planFor plans for those of some choices whose bounds leave room for a better plan, by ascending bound. What is
// planned does not depend on how many goroutines run at a time.
func (f *finder) planFor(ctx context.Context, some []*candidate) error {
	const together = 8
	rest := slices.Clone(some)
	slices.SortStableFunc(rest, func(a, b *candidate) int { return cmp.Compare(a.bound, b.bound) })
	rest = slices.DeleteFunc(rest, func(c *candidate) bool { return c.plans > 0 || c.err != nil })
	for len(rest) > 0 && f.left > f.Nodes/2 {
		now := rest[:min(together, len(rest))]
		rest = rest[len(now):]
		if f.best.Value <= now[0].bound {
			return nil
		}
		if err := inParallel(ctx, len(now), func(i int) error { return now[i].first(ctx, f.Options) }); err != nil {
			return err
		}
		for _, c := range now {
			f.left -= c.nodes + c.plans*c.nodesOfPlan()
			f.offer(c)
		}
	}
	return nil
}
