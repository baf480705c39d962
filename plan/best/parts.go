package best

import (
	"context"
	"slices"

	"dahl/plan"
)

// planParts plans for the choices with layers in parts. How many parts are best depends on how many GPUs there are, and
// fewer GPUs than parts cannot run them. So a descent in one respect at a time ends before it comes by the best of these
// choices. Their programs have few tasks, and one policy is made for them: it plans for all of them in about a second. On
// the best ones all policies plan. Where a tenth of the nodes does not suffice, choices at equal distances stand for all.
func (f *finder) planParts(ctx context.Context) error {
	parts := slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool { return !isInParts(c) || c.isSmall(f.Options) })
	nodes := 1
	for _, c := range parts {
		nodes = max(nodes, c.nodesOfPlan())
	}
	parts = spread(parts, f.Nodes/10/nodes)
	err := f.planTogether(ctx, parts, func(c *candidate, ctx context.Context, f *finder) error { return c.tryBy(ctx, f, "data-parallel") })
	if err != nil {
		return err
	}
	parts = slices.DeleteFunc(parts, func(c *candidate) bool { return c.Plan == nil })
	slices.SortStableFunc(parts, byValue)
	return f.planTogether(ctx, parts[:min(len(parts), searched)], (*candidate).tryAll)
}

func isInParts(c *candidate) bool {
	_, ok := plan.PartsOf(c.Tiles)
	return ok
}
