package best

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// rankStrategies lists the choices with strategies, the most promising by the model first. Strategies by name are on all devices, and take
// the place of equal ones with fewer processors. A brief search has no time for them.
func (f *finder) rankStrategies() {
	if f.space.Estimate == nil {
		return
	}
	if !f.Brief {
		for _, group := range f.namedOn("") {
			f.named = append(f.named, f.rankedBy(group)...)
		}
	}
	f.strategies = f.rankedBy(slices.DeleteFunc(slices.Clone(f.space.Strategies), func(c space.Choice) bool {
		return slices.ContainsFunc(f.named, func(n space.Ranked) bool { return n.Strategy == c.Strategy })
	}))
}

// namedOn lists the strategies by name on a set.
func (f *finder) namedOn(set string) [][]space.Choice {
	if f.space.Named == nil {
		return nil
	}
	return f.space.Named(set)
}

// rankedBy ranks choices by the model. What it does not know comes last.
func (f *finder) rankedBy(choices []space.Choice) (all []space.Ranked) {
	for _, c := range choices {
		value, known := f.space.Estimate(c, f.Aim)
		if !known {
			value = math.Inf(1)
		}
		all = append(all, space.Ranked{Choice: c, Value: value})
	}
	slices.SortStableFunc(all, func(a, b space.Ranked) int { return cmp.Compare(a.Value, b.Value) })
	return all
}

// orderOf is the order of the micro-batches of a strategy; nil means that it has none.
func orderOf(strategy string) schedule.Policy {
	for _, order := range policy.Pipelines() {
		if strings.Contains("+"+strategy, "+"+order.Doc().Name+":") {
			return order
		}
	}
	return nil
}

// tryNamed plans for the next strategies by name on all devices.
func (f *finder) tryNamed(ctx context.Context, least int) (err error) {
	f.named, err = f.tryList(ctx, f.named, least)
	return err
}

// tryList plans for the next strategies of a list, and returns the others. It leaves out what a bound excludes.
func (f *finder) tryList(ctx context.Context, list []space.Ranked, least int) ([]space.Ranked, error) {
	for len(list) > 0 && !f.over() && f.left > least {
		next := list[:min(batch, len(list))]
		list = list[len(next):]
		added, err := f.add(ctx, choicesOf(next), nil)
		if err != nil {
			return list, err
		}
		added = slices.DeleteFunc(added, func(c *candidate) bool {
			c.dropped = c.dropped || f.excludes(c.priced)
			return c.dropped
		})
		if err := f.planBatch(ctx, added, (*candidate).first); err != nil {
			return list, err
		}
	}
	return list, nil
}

// manySteps is after how many steps a bound of the time grows by the same for each.
const manySteps = 1 << 6

// excludes reports whether no plan of some program is better than the best one, by the work that its devices have to do.
func (f *finder) excludes(priced *schedule.Priced) bool {
	if f.Objective != problem.Time || f.best == nil || !f.best.long {
		return false
	}
	bound := priced.LowerBound(0, 1)
	if f.Steady {
		bound = (priced.LowerBound(0, 2*manySteps) - priced.LowerBound(0, manySteps)) / manySteps
	}
	return bound.Seconds() >= f.best.Value
}

// lowered is how many graphs with their bounds take as long as a plan.
const lowered = 4

// excludeNamed leaves out the strategies by name that a bound excludes, of those without a plan.
func (f *finder) excludeNamed(ctx context.Context) error {
	var kept []space.Ranked
	for i, r := range f.named {
		if f.left <= 0 || ctx.Err() != nil {
			kept = append(kept, f.named[i:]...)
			break
		}
		priced, err := f.space.Price(r.Choice)
		if err != nil {
			f.refused = append(f.refused, refusal{r.Choice, err})
			continue
		}
		f.left -= priced.Program.Graphs[0].NumTasks() / lowered
		if !f.excludes(priced) {
			kept = append(kept, r)
		}
	}
	f.named = kept
	return ctx.Err()
}

// untried lists the strategies by name that the search has not come to.
func (f *finder) untried() (names []string) {
	for _, r := range f.named {
		names = append(names, r.Strategy)
	}
	named := f.namedOn("")
	for _, c := range f.candidates {
		isNamed := slices.ContainsFunc(named, func(group []space.Choice) bool { return slices.Contains(group, c.Choice) })
		if isNamed && !f.Brief && c.Plan == nil && c.err == nil && !c.dropped {
			names = append(names, c.Strategy)
		}
	}
	return names
}

// tryStrategies plans for the next strategies.
func (f *finder) tryStrategies(ctx context.Context, least int) error {
	for len(f.strategies) > 0 && !f.over() && f.left > least {
		next := f.strategies[:min(batch, len(f.strategies))]
		f.strategies = f.strategies[len(next):]
		if err := f.try(ctx, choicesOf(next), nil); err != nil {
			return err
		}
	}
	return nil
}

func choicesOf(ranked []space.Ranked) (list []space.Choice) {
	for _, r := range ranked {
		list = append(list, r.Choice)
	}
	return list
}

// overestimate is by how much the model takes a step of a strategy for longer than it is, at most: its steps overlap a little.
const overestimate = 1.2

// tryPromising plans for the best pipeline by the model, and for the best other strategy, where these may be better than the best plan. Their nodes are beyond the
// budget: less effort for all other choices would cost more than strategies gain.
func (f *finder) tryPromising(ctx context.Context) error {
	for _, pipelines := range []bool{true, false} {
		at := slices.IndexFunc(f.strategies, func(r space.Ranked) bool { return (orderOf(r.Strategy) != nil) == pipelines })
		if at < 0 || f.strategies[at].Value >= overestimate*f.best.Value {
			continue
		}
		if err := f.try(ctx, choicesOf(f.strategies[at:at+1]), nil); err != nil {
			return err
		}
	}
	return nil
}
