package best

import (
	"context"
	"math"
	"slices"
	"strings"

	"dahl/plan/improve"
)

// searched is how many choices have single layers cut otherwise, and how many have their best plans improved.
const searched = 3

// firstMoves bounds the moves from one plan in the first round of local search, and mostMoves in the last. Each round has
// twice those of the one before, and begins at what is best then.
const (
	firstMoves = 1 << 14
	mostMoves  = 1 << 20
)

// improve looks for better plans near the best ones. A move counts as one node, and a third of those that are left go
// into moves.
func (f *finder) improve(ctx context.Context) error {
	left := f.left / 3
	for moves := firstMoves; moves <= mostMoves; moves *= 2 {
		from := f.bestOf(searched)
		copies := make([]int32, len(from))
		if f.Steady && len(from) > 0 {
			for i := range copies {
				copies[i] = 2 // steady steps overlap with two copies of what a step writes anew
			}
			if len(from[0].Plan.Copies) == 0 { // which is changed without them as well
				from, copies = append(from, from[0]), append(copies, 1)
			}
		}
		each := min(moves, left/max(1, len(from)))
		if len(from) == 0 || each == 0 {
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

// improveEach makes so many moves from the plan of each of some choices, with so many copies of buffers.
func (f *finder) improveEach(ctx context.Context, from []*candidate, copies []int32, moves int) error {
	found := make([]*improve.Result, len(from))
	err := inParallel(ctx, len(from), func(i int) (err error) {
		c := from[i]
		found[i], err = improve.Search(ctx, c.priced, c.Plan, improve.Options{Objective: f.Objective.Of, Steady: f.Steady, Moves: moves,
			Clocks: f.freeClocks(c.priced.Platform), Deadline: f.Deadline, Copies: copies[i], Seed: uint64(moves)})
		return err
	})
	for i, c := range from {
		if found[i] == nil {
			continue
		}
		before := c.Try
		c.moves += found[i].Moves
		if err := c.take(context.WithoutCancel(ctx), f.Options, found[i].Plan, longRun); err != nil {
			return err
		}
		if c.Policy = strings.TrimSuffix(before.Policy, byMoves) + byMoves; !better(&c.Try, &before) {
			c.Try = before
		}
		f.offer(c)
	}
	return err
}

// byMoves ends the name of a policy whose plan local search has changed.
const byMoves = " and local search"

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
