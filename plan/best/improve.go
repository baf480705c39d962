package best

import (
	"context"
	"math"
	"slices"

	"dahl/plan/improve"
)

// searched is how many choices have single layers cut otherwise, and how many have their best plans improved.
const searched = 3

// mostMoves bounds the moves from one plan: more have found nothing better.
const mostMoves = 1_000_000

// improve looks for better plans near the best ones. A move counts as one node, and a third of those that are left go
// into moves. Steady steps overlap with two copies of what a step writes anew; the best plan is changed without
// them as well.
func (f *finder) improve(ctx context.Context) error {
	from := f.bestOf(searched)
	if len(from) == 0 {
		return nil
	}
	copies := make([]int32, len(from))
	if f.Steady {
		for i := range copies {
			copies[i] = 2
		}
		from, copies = append(from, from[0]), append(copies, 1)
	}
	moves := min(f.left/3/len(from), mostMoves)
	f.left -= moves * len(from)
	found := make([]*improve.Result, len(from))
	err := inParallel(ctx, len(from), func(i int) (err error) {
		c := from[i]
		found[i], err = improve.Search(ctx, c.priced, c.Plan, improve.Options{Objective: f.Objective.Of, Steady: f.Steady, Moves: moves,
			Clocks: f.freeClocks(c.priced.Platform), Deadline: f.Deadline, Copies: copies[i]})
		return err
	})
	for i, c := range from {
		if found[i] == nil {
			continue
		}
		before := c.Try
		c.moves += found[i].Moves
		if err := c.take(ctx, f.Options, found[i].Plan, longRun); err != nil {
			return err
		}
		if c.Policy = before.Policy + " and local search"; !better(&c.Try, &before) {
			c.Try = before
		}
		f.offer(c)
	}
	return err
}

// bestOf are the best choices, but for those that cannot be better than the best one.
func (f *finder) bestOf(most int) []*candidate {
	open := slices.DeleteFunc(f.byValue(), func(c *candidate) bool { return c.proven || c.bound >= f.best.Value })
	return open[:min(len(open), most)]
}

// byValue are the choices that have a plan that keeps the deadline, the best first.
func (f *finder) byValue() []*candidate {
	planned := slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool { return c.Plan == nil || math.IsInf(c.Value, 1) })
	slices.SortStableFunc(planned, byValue)
	return planned
}
