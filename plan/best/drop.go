package best

import (
	"context"
	"math"
	"slices"

	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// dropIdle moves the best plan to the set of the devices that have a task in it. The space may not list this set, since of
// equal devices it lists the first ones: then the certificate covers it as the plan's own choice. A tiling of one name may
// be another one on the smaller set. Then the plan keeps its set.
func (f *finder) dropIdle(ctx context.Context) error {
	o, err := f.used(ctx, f.best, f.best.Plan)
	if err != nil || o == nil {
		return err
	}
	return f.move(ctx, o, f.best.planOn(o))
}

// used is the choice of the devices with a task in a plan. It is nil where all have one, and where that choice has another graph.
func (f *finder) used(ctx context.Context, c *candidate, plan *schedule.Plan) (*candidate, error) {
	choice := space.Choice{Devices: c.usedBy(plan), Tiles: c.Tiles, Strategy: c.Strategy}
	if choice.Devices == c.units().String() {
		return nil, nil
	}
	if _, err := f.add(ctx, []space.Choice{choice}, c); err != nil {
		return nil, err
	}
	all := slices.Concat(f.candidates, f.covered)
	i := slices.IndexFunc(all, func(o *candidate) bool { return o.Choice == choice && o.graph == c.graph })
	if i < 0 {
		return nil, nil
	}
	return all[i], nil
}

// narrow gives the plan of policies for a choice to the choice of the devices with a task in it, from which the search goes on instead: idle devices take joules, and what
// differs in them only is one choice.
func (f *finder) narrow(ctx context.Context, c *candidate) error {
	if c.list == nil || c.used == c.units().String() {
		return nil
	}
	o, err := f.used(ctx, c, c.list)
	if o == nil || err != nil {
		return err
	}
	if o.listed > c.listed {
		from := &candidate{Attempt: Attempt{Plan: c.list}, priced: c.priced, graph: c.graph}
		err = f.planBatch(ctx, []*candidate{o}, func(o *candidate, ctx context.Context, f *finder) error {
			return o.take(ctx, f, from.planOn(o), c.Policy)
		})
	}
	c.narrowed = o.listed <= c.listed*(1+rounding)
	return err
}

// usedBy is the set of the devices with tasks in a plan.
func (c *candidate) usedBy(plan *schedule.Plan) string { return c.busy(plan).String() }

// busy are the devices with tasks in a plan.
func (c *candidate) busy(plan *schedule.Plan) units {
	used, p := map[string]bool{}, c.priced.Platform
	for w, tasks := range plan.Order {
		used[p.Devices[p.Workers[w].Device].Name] = used[p.Devices[p.Workers[w].Device].Name] || len(tasks) > 0
	}
	return slices.DeleteFunc(c.units(), func(d *platform.Device) bool { return !used[d.Name] })
}

// move makes a choice the best one with a plan, unless the plan is worse than the best.
func (f *finder) move(ctx context.Context, o *candidate, plan *schedule.Plan) error {
	c, before := f.best, o.Attempt
	if plan == nil {
		return nil
	}
	steps := shortRun
	if c.long {
		steps = longRun
	}
	o.Policy = c.Policy
	if err := o.adoptPlan(ctx, f.Options, plan, steps); err != nil {
		o.Attempt = before
		return ctx.Err()
	}
	if before.Plan != nil && !better(&o.Attempt, &before) {
		o.Attempt = before
	}
	if o.sameStep(c) { // the sums of joules have other terms
		o.Makespan, o.Joules, o.Value, o.short = c.Makespan, c.Joules, c.Value, c.short
		o.simulated(o.Attempt)
	}
	if o.Value > c.Value {
		return nil
	}
	o.dropped, o.moves = false, max(o.moves, c.moves)
	f.best = o
	return nil
}

// sameStep reports whether the plans of two choices take the same, but for the rounding of sums.
func (c *candidate) sameStep(other *candidate) bool {
	return c.Makespan == other.Makespan && math.Abs(c.Joules-other.Joules) <= rounding*math.Abs(other.Joules)
}

// admit makes the best choice one of those that the certificate bounds, and none of the others outside the space. A bound of a choice with more devices may
// hold for it, too.
func (f *finder) admit() error {
	o := f.best
	if i := slices.Index(f.covered, o); i >= 0 {
		f.covered = slices.Delete(f.covered, i, i+1)
		f.candidates = append(f.candidates, o)
	}
	part, err := f.models.Of(o.priced, o.graph, f.Objective)
	if err != nil {
		return err
	}
	for _, c := range f.candidates {
		c.dropped = c.outside && c != o
		if c.graph != o.graph || c.bound <= o.bound {
			continue
		}
		whole, err := f.models.Of(c.priced, c.graph, f.Objective)
		if err != nil {
			return err
		}
		if whole.Relaxes(part) {
			o.bound, o.proven = c.bound, c.proven
		}
	}
	return nil
}
