package best

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/plan/space"
)

// rankStrategies lists the choices with strategies, the most promising by the model first.
func (f *finder) rankStrategies() {
	if f.Policy != nil || f.space.Estimate == nil {
		return
	}
	for _, c := range f.space.Strategies {
		value, known := f.space.Estimate(c, f.Aim)
		if !known {
			value = math.Inf(1)
		}
		f.strategies = append(f.strategies, space.Ranked{Choice: c, Value: value})
	}
	slices.SortStableFunc(f.strategies, func(a, b space.Ranked) int { return cmp.Compare(a.Value, b.Value) })
}

// tryStrategies plans for the next strategies.
func (f *finder) tryStrategies(ctx context.Context, least int) error {
	for len(f.strategies) > 0 && !f.over() && f.left > least {
		if err := f.tryNext(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// overestimate is by how much the model takes a step of a strategy for longer than it is, at most: its steps overlap a little.
const overestimate = 1.2

// tryPromising plans for the best strategy by the model if that may be better than the best plan. Its nodes are beyond the budget: less effort for all other choices would
// cost more than strategies gain.
func (f *finder) tryPromising(ctx context.Context) error {
	if len(f.strategies) == 0 || f.strategies[0].Value >= overestimate*f.best.Value {
		return nil
	}
	return f.tryNext(ctx, 1)
}

// tryNext plans for the next strategies, some at one time.
func (f *finder) tryNext(ctx context.Context, most int) error {
	var next []space.Choice
	for _, r := range f.strategies[:min(most, len(f.strategies))] {
		next = append(next, r.Choice)
	}
	f.strategies = f.strategies[len(next):]
	err := f.try(ctx, next, nil)
	return err
}
