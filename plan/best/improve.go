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
	var from []*candidate
	for _, c := range f.candidates {
		if c.Plan != nil && !c.proven && !math.IsInf(c.Value, 1) && c.bound < f.best.Value {
			from = append(from, c)
		}
	}
	slices.SortStableFunc(from, func(a, b *candidate) int { return cmp.Compare(a.Value, b.Value) })
	from = from[:min(len(from), searched)]
	if len(from) == 0 {
		return nil
	}
	moves := min(f.left/3/len(from), mostMoves)
	f.left -= moves * len(from)
	err := inParallel(ctx, len(from), func(i int) error {
		c := from[i]
		found, err := improve.Search(ctx, c.priced, c.Plan, improve.Options{Objective: f.Objective.Of, Steady: f.Steady, Moves: moves,
			Clocks: freeClocks(c.priced.Platform), Deadline: f.Deadline})
		if err != nil {
			return err
		}
		c.moves += found.Moves
		c.Policy += " and local search"
		return c.take(ctx, f.Options, found.Plan, longRun)
	})
	for _, c := range from {
		if c.Value < f.best.Value {
			f.best = c
		}
	}
	return err
}
