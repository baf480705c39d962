package best

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"dahl/plan/improve"
)

// searched is how many choices are near the best one.
const searched = 3

// improved is how many choices have their best plans improved at first, and mostMoves bounds the moves from one plan at a
// time: more have found nothing better.
const (
	improved  = 8
	mostMoves = 1_000_000
)

// bySearch ends the name of the policy of a plan that was improved.
const bySearch = " and local search"

// improve looks for better plans near the best ones. A move counts as one node, and a third of those that are left go
// into moves, as many in each round. In each the better half of the choices of the round before goes on, since the plans
// of policies say little of how steps overlap (successive halving). Steady steps do with two copies of what a step writes
// anew; the best plan is at first changed without them as well.
func (f *finder) improve(ctx context.Context) error {
	rounds := 0
	for n := improved; n > 0; n /= 2 {
		rounds++
	}
	all := f.left / 3
	for n := improved; n > 0; n /= 2 {
		from := f.bestOf(n)
		if len(from) == 0 {
			return nil
		}
		moves := min(all/rounds/len(from), mostMoves)
		f.left -= moves * len(from)
		if err := f.improveEach(ctx, from, moves, n == improved); err != nil {
			return err
		}
	}
	return nil
}

// improveEach changes the plans of some choices so many times.
func (f *finder) improveEach(ctx context.Context, from []*candidate, moves int, alsoAlone bool) error {
	copies := make([]int32, len(from))
	if f.Steady {
		for i := range copies {
			copies[i] = 2
		}
		if alsoAlone {
			from, copies = append(from, from[0]), append(copies, 1)
		}
	}
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
		if c.Policy = strings.TrimSuffix(before.Policy, bySearch) + bySearch; !better(&c.Try, &before) {
			c.Try = before
		}
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
