package best

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/plan/improve"
)

// searched is how many choices have their best plans improved.
const searched = 3

// mostMoves bounds the moves from one plan: more have found nothing better.
const mostMoves = 1_000_000

// improve looks for better plans near the best ones. A move counts as one node, and a third of those that are left go
// into moves.
func (f *finder) improve(ctx context.Context) error {
	from := f.bestOf(searched)
	if len(from) == 0 {
		return nil
	}
	moves := min(f.left/3/len(from), mostMoves)
	f.left -= moves * len(from)
	err := inParallel(ctx, len(from), func(i int) error {
		c := from[i]
		found, err := improve.Search(ctx, c.priced, c.Plan, improve.Options{Objective: f.Objective.Of, Steady: f.Steady, Moves: moves,
			Clocks: f.freeClocks(c.priced.Platform), Deadline: f.Deadline})
		if err != nil {
			return err
		}
		c.moves += found.Moves
		c.Policy += " and local search"
		return c.take(ctx, f.Options, found.Plan, longRun)
	})
	for _, c := range from {
		f.offer(c)
	}
	return err
}

// bestOf are the best choices, but for those that cannot be better than the best one.
func (f *finder) bestOf(most int) []*candidate {
	var all []*candidate
	for _, c := range f.candidates {
		if c.Plan != nil && !c.proven && !math.IsInf(c.Value, 1) && c.bound < f.best.Value {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Compare(a.Value, b.Value) })
	return all[:min(len(all), most)]
}
