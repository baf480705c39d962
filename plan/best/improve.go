package best

import (
	"context"
	"math"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/parallel"
	"dahl/plan/improve"
	"dahl/platform"
	"dahl/schedule"
)

// searched is how many choices have single layers cut otherwise, and how many have their best plans improved to the end.
const searched = 3

// Local search goes on in rounds of half as many choices with twice as many moves each, from firstSearched with
// firstMoves to mostMoves. Each begins at what is best then (successive halving: K. Jamieson, A. Talwalkar, AISTATS 2016).
const (
	firstSearched = 24
	firstMoves    = 1 << 8
	mostMoves     = 1 << 20
)

// improve looks for better plans near the best ones. A move counts as one node, and a third of those that are left go
// into moves.
func (f *finder) improve(ctx context.Context) error {
	if err := f.inherit(ctx); err != nil {
		return err
	}
	left := f.left / 3
	for moves, most := firstMoves, firstSearched; moves <= mostMoves; moves, most = 2*moves, max(searched, most/2) {
		from := f.unlike(most)
		copies := make([]int32, len(from))
		if f.Steady && len(from) > 0 {
			for i := range copies {
				copies[i] = 2 // steady steps overlap with two copies of what a step writes anew
			}
			if len(from[0].Plan.Versions) == 0 { // which is changed without them as well
				from, copies = append(from, from[0]), append(copies, 1)
			}
		}
		each := min(moves, left/max(1, len(from)))
		if len(from) == 0 || each <= 0 {
			return nil
		}
		left -= each * len(from)
		f.left -= each * len(from)
		if err := f.improveEach(ctx, from, copies, each); err != nil {
			return err
		}
	}
	return nil
}

// inherit gives each choice the best plan of another choice that runs on its devices, if it is better than its own:
// policies use all devices that they have.
func (f *finder) inherit(ctx context.Context) error {
	all := f.bestOf(len(f.candidates))
	plans := make([]*schedule.Plan, len(all))
	for i, c := range all {
		for _, other := range all[:i] {
			if plans[i] = other.planOn(c); plans[i] != nil {
				break
			}
		}
	}
	return parallel.Do(ctx, len(all), func(i int) error {
		if plans[i] == nil {
			return nil
		}
		if e, err := f.Evaluator.Plan(all[i].priced, plans[i]); err == nil {
			_ = all[i].offer(ctx, f.Options, e, plans[i].Policy, shortRun) // it may not run there
		}
		return ctx.Err()
	})
}

// planOn is the plan of a choice on the devices of another one; nil means it has no such workers, or another graph.
func (c *candidate) planOn(other *candidate) *schedule.Plan {
	if c.graph != other.graph {
		return nil
	}
	plan := *c.Plan
	plan.Order = make([][]dag.TaskID, len(other.priced.Platform.Workers))
	for w, tasks := range c.Plan.Order {
		if len(tasks) == 0 {
			continue
		}
		at := other.worker(c.priced.Platform.Workers[w].Name)
		if at < 0 {
			return nil
		}
		plan.Order[at] = tasks
	}
	return &plan
}

// worker is the number of a worker by its name; -1 means there is none.
func (c *candidate) worker(name string) int {
	return slices.IndexFunc(c.priced.Platform.Workers, func(w platform.Worker) bool { return w.Name == name })
}

// improveEach makes some moves from the plan of each choice, with some number of versions of buffers.
func (f *finder) improveEach(ctx context.Context, from []*candidate, copies []int32, moves int) error {
	found := make([]*improve.Result, len(from))
	err := parallel.Do(ctx, len(from), func(i int) (err error) {
		c := from[i]
		found[i], err = improve.Search(ctx, c.priced, c.Plan, improve.Options{Aim: f.Aim, Moves: moves,
			Clocks: f.freeClocks(c.priced.Platform), Versions: copies[i], Seed: uint64(moves)})
		return err
	})
	for i, c := range from {
		if found[i] == nil {
			continue
		}
		c.moves += found[i].Moves
		if err := c.offer(context.WithoutCancel(ctx), f.Options, found[i].Evaluated, strings.TrimSuffix(c.Policy, byMoves)+byMoves, longRun); err != nil {
			return err
		}
		f.offer(c)
	}
	return err
}

// unlike are the best choices of those that differ by more than numbers of units.
func (f *finder) unlike(most int) []*candidate {
	known := map[string]bool{}
	all := slices.DeleteFunc(f.bestOf(len(f.candidates)), func(c *candidate) bool {
		key := c.Tiles.String()
		for _, d := range c.units() {
			key += "," + d.Name
		}
		was := known[key]
		known[key] = true
		return was
	})
	return all[:min(len(all), most)]
}

// byMoves ends the name of a policy whose plan local search has changed.
const byMoves = " and local search"

// bestOf are the best choices, but for those that cannot be better than the best one.
func (f *finder) bestOf(most int) []*candidate {
	open := slices.DeleteFunc(f.byValue(), func(c *candidate) bool { return c.proven || c.dropped || c.bound >= f.best.Value })
	return open[:min(len(open), most)]
}

// byValue lists the choices with a plan in time, the best first.
func (f *finder) byValue() []*candidate {
	planned := slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool { return c.Plan == nil || math.IsInf(c.Value, 1) })
	slices.SortStableFunc(planned, byValue)
	return planned
}
