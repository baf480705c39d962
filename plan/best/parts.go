package best

import (
	"context"
	"slices"

	"dahl/dag"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/schedule/policy"
)

// planParts plans for the choices with layers in parts. How many parts are best depends on how many GPUs there are, and
// fewer GPUs than parts cannot run them. So a descent in one respect at a time ends before it comes by the best of these
// choices. Their programs have few tasks, and one policy is made for them: it plans for all of them in about a second. On
// the best ones all policies plan. Where a tenth of the nodes does not suffice for parts of the batch, or half of that for those along
// other dimensions, choices at equal distances stand for all. From the best devices of each way to cut all layers the search
// goes on to mixtures: layers in parts along different dimensions.
func (f *finder) planParts(ctx context.Context) error {
	var all []*candidate
	for _, of := range []struct {
		batch bool
		nodes int
	}{{true, f.Nodes / 10}, {false, f.Nodes / 20}} {
		some := slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool {
			return c.Tiles.Kind != tiling.Parts || (c.Tiles.Along == dag.AlongSamples) != of.batch || c.isSmall(f.Options)
		})
		nodes := 1
		for _, c := range some {
			nodes = max(nodes, c.nodesOfPlan())
		}
		some = spread(some, of.nodes/nodes)
		err := f.planBatch(ctx, some, func(c *candidate, ctx context.Context, f *finder) error {
			return c.planByOne(ctx, f, policy.DataParallel)
		})
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	all = slices.DeleteFunc(all, func(c *candidate) bool { return c.Plan == nil })
	slices.SortStableFunc(all, byValue)
	if err := f.planBatch(ctx, all[:min(len(all), searched)], (*candidate).planByAll); err != nil {
		return err
	}
	return f.mix(ctx, all)
}

// mix goes downhill from the best of some choices, of which those with equal tiles count as one, with a twentieth of the nodes.
func (f *finder) mix(ctx context.Context, from []*candidate) error {
	if f.space.Mixed == nil {
		return nil
	}
	slices.SortStableFunc(from, byValue)
	known := map[tiling.Tiling]bool{}
	from = slices.DeleteFunc(from, func(c *candidate) bool {
		was := known[c.Tiles]
		known[c.Tiles] = true
		return was
	})
	least := f.left - f.Nodes/20
	for _, c := range from[:min(len(from), searched)] {
		if err := f.cutFrom(ctx, c, []space.Neighbourhood{f.space.Mixed}, least); err != nil {
			return err
		}
	}
	return nil
}
