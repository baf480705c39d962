package best

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/improve"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// dropIdle moves the best plan to the set of the devices that have a task in it. The space may not list this set, since of
// equal devices it lists the first ones: then the certificate covers it as the plan's own choice. A tiling of one name may
// be another one on the smaller set. Then the plan keeps its set.
func (f *finder) dropIdle(ctx context.Context) error {
	c := f.best
	tasks := c.tasksOf(c.Plan)
	if !slices.ContainsFunc(c.units(), func(d *platform.Device) bool { return tasks[d.Name] == 0 }) {
		return nil
	}
	o, err := f.onFewer(ctx, c, func(d *platform.Device) bool { return tasks[d.Name] > 0 })
	if o == nil || err != nil {
		return err
	}
	return f.move(ctx, o, c.planOn(o))
}

// A device with at most lightShare of the tasks may not be needed. Local search then makes lightMoves moves without it.
const (
	lightShare = 0.01
	lightMoves = 1 << 9
)

// dropLight takes the devices that have hardly any tasks, one after the other. It gives the tasks of each to the others, and local search
// looks for better places. It stops at the first needless device, and leaves it out.
func (f *finder) dropLight(ctx context.Context) error {
	c := f.best
	tasks, units := c.tasksOf(c.Plan), c.units()
	all := float64(len(c.priced.Program.Graphs[0].Tasks))
	slices.SortStableFunc(units, func(a, b *platform.Device) int { return cmp.Compare(tasks[a.Name], tasks[b.Name]) })
	for _, light := range units {
		if n := float64(tasks[light.Name]); len(units) < 2 || n > max(1, lightShare*all) {
			return nil
		}
		o, err := f.onFewer(ctx, c, func(d *platform.Device) bool { return d != light })
		if err != nil || o == nil {
			return err
		}
		plan, err := f.planOnFewer(ctx, c, o)
		if err != nil || plan == nil {
			continue // a task can run there only
		}
		of := improve.Options{Aim: f.Aim, Moves: lightMoves, Clocks: f.freeClocks(o.priced.Platform), Seed: 1}
		if f.Steady {
			of.Versions = 2
		}
		found, err := improve.Search(ctx, o.priced, plan, of)
		if found == nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		o.moves += found.Moves
		f.left -= found.Moves*o.costOfMove() + fixedCost*o.nodesOfPlan()
		if err := cmp.Or(f.move(ctx, o, found.Plan()), err); err != nil {
			return err
		}
		if f.best == o {
			return f.dropIdle(ctx)
		}
	}
	return nil
}

// tasksOf counts the tasks of a step by device.
func (c *candidate) tasksOf(plan *schedule.Plan) map[string]int {
	count, p := map[string]int{}, c.priced.Platform
	for w, tasks := range plan.Order {
		count[p.Devices[p.Workers[w].Device].Name] += len(tasks)
	}
	return count
}

// usedBy is the set of the devices with tasks.
func (c *candidate) usedBy(plan *schedule.Plan) string {
	tasks := c.tasksOf(plan)
	return slices.DeleteFunc(c.units(), func(d *platform.Device) bool { return tasks[d.Name] == 0 }).String()
}

// onFewer is a choice of fewer devices with the same tiles; nil means its program is another one.
func (f *finder) onFewer(ctx context.Context, c *candidate, keep func(*platform.Device) bool) (*candidate, error) {
	kept := slices.DeleteFunc(c.units(), func(d *platform.Device) bool { return !keep(d) })
	if len(kept) == 0 {
		return nil, nil
	}
	choice := space.Choice{Devices: kept.String(), Tiles: c.Tiles}
	of := func(o *candidate) bool { return o.Choice == choice && o.graph == c.graph }
	if i := slices.IndexFunc(f.candidates, of); i >= 0 {
		return f.candidates[i], nil
	}
	if i := slices.IndexFunc(f.covered, of); i >= 0 {
		return f.covered[i], nil
	}
	added, err := f.add(ctx, []space.Choice{choice}, c)
	if err != nil || len(added) == 0 || added[0].graph != c.graph {
		return nil, err
	}
	return added[0], nil
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
	if on := (&candidate{Attempt: Attempt{Plan: c.list}, priced: c.priced, graph: c.graph}); c.listed < o.listed {
		if list := on.planOn(o); list != nil {
			o.list, o.listed, o.used = list, c.listed, c.used
		}
	}
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

// planOnFewer is the plan of a choice on fewer devices: each task of a missing device goes to the worker with the least work among
// those that can run it, in the order of starts. Nil means none can run some task.
func (f *finder) planOnFewer(ctx context.Context, c, o *candidate) (*schedule.Plan, error) {
	e, err := f.Evaluator.Plan(c.priced, c.Plan)
	if err != nil {
		return nil, err
	}
	ran, err := e.Simulate(ctx, 0, 1, false)
	if err != nil {
		return nil, err
	}
	spans := slices.Clone(ran.Schedule.Spans)
	slices.SortStableFunc(spans, func(a, b schedule.Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	costs, p := o.priced.Costs(0), o.priced.Platform
	load, at := make([]int64, len(p.Workers)), make([]int, len(spans))
	for i, span := range spans {
		if at[i] = o.worker(c.priced.Platform.Workers[span.Worker].Name); at[i] >= 0 {
			load[at[i]] += int64(span.End - span.Start)
		}
	}
	plan := *c.Plan
	plan.Order = make([][]dag.TaskID, len(p.Workers))
	for i, span := range spans {
		if at[i] < 0 {
			for w := range p.Workers {
				if _, ok := costs.Of(span.Task, p.Workers[w].Device); ok && !p.Devices[p.Workers[w].Device].PlacedOnly && (at[i] < 0 || load[w] < load[at[i]]) {
					at[i] = w
				}
			}
			if at[i] < 0 {
				return nil, nil
			}
			if cost, ok := costs.Of(span.Task, p.Workers[at[i]].Device); ok {
				load[at[i]] += int64(cost.Duration)
			}
		}
		plan.Order[at[i]] = append(plan.Order[at[i]], span.Task)
	}
	return &plan, nil
}
