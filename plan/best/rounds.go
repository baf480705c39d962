package best

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dahl/parallel"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// A brief search goes on in rounds, each with twice the effort of the one before. They do not depend on the budget,
// which says where the search stops.
const (
	// firstEffort is the effort of the first round of a brief search, in plans of the choice with which the search begins, and mostEffort bounds the last.
	firstEffort, mostEffort = 48, 1 << 17
	// batch is how many choices are planned for at one time, of the proposals or from one choice.
	batch = 4
	// thorough is how many choices at most, on different devices, get plans of all policies in a round, and with a model one more that promises most: the first
	// policies may be bad for it. A small effort suffices for fewer: each takes as many plans as allPolicies.
	thorough, allPolicies = 2, 12
	// hopeless is how many times the value of the best choice by a model a choice has that comes last: no model is so far off.
	hopeless = 2
)

// begin makes the first plan: of the most promising choice by a model, else on all devices, or on another set if they have no plan. A search
// for a single step of few tasks prices the whole space, and leaves out what branch and bound looks at with all devices.
func (f *finder) begin(ctx context.Context) error {
	first := f.space.Choices()
	slices.Reverse(first) // all devices are the last set
	slices.SortStableFunc(first, func(a, b space.Choice) int {
		return cmp.Compare(slices.Index(f.space.Tiles, a.Tiles), slices.Index(f.space.Tiles, b.Tiles))
	})
	for i := 0; len(f.candidates) == 0 && i < len(first); i++ {
		if _, err := f.add(ctx, first[i:i+1], nil); err != nil {
			return err
		}
	}
	if len(f.candidates) == 0 {
		return f.noPlan()
	}
	f.whole = f.candidates[0]
	f.sure = f.whole.priced.Costs(0).LeastKnown()
	f.sets = map[string]units{}
	f.readSets(f.space.Devices)
	small := f.whole.isSmall(f.Options)
	if small {
		if err := f.price(ctx); err != nil {
			return err
		}
		if err := f.leaveOut(ctx); err != nil {
			return err
		}
	}
	if err := f.listProposals(ctx); err != nil {
		return err
	}
	if f.space.Ranked != nil && !small {
		if err := f.tryFirst(ctx); err != nil {
			return err
		}
	}
	if f.best == nil || f.Brief && f.whole.nodesOfPlan() <= f.left {
		if err := f.planBatch(ctx, []*candidate{f.whole}, (*candidate).first); err != nil {
			return err
		}
	}
	if f.best == nil {
		if err := f.trySmaller(ctx, f.whole); err != nil {
			return err
		}
	}
	for i := 0; f.best == nil && i < len(first); i++ {
		if err := f.try(ctx, first[i:i+1], nil); err != nil {
			return err
		}
	}
	if f.best == nil {
		return f.noPlan()
	}
	return nil
}

// tryFirst plans for the most promising choice by a model, or for the next one if it has no plan.
func (f *finder) tryFirst(ctx context.Context) error {
	for _, c := range f.contenders {
		for f.best == nil && len(c.proposals) > 0 && c.proposals[0] != f.whole.Choice {
			next := c.proposals[:1]
			c.proposals = c.proposals[1:]
			if err := f.try(ctx, next, nil); err != nil {
				return err
			}
			if !c.every {
				break
			}
		}
	}
	return nil
}

// mostSeeded is how many tasks all devices have by default at most, so that all policies plan for them at first. With more
// tasks that would take seconds, and better choices come first.
const mostSeeded = 1000

// seed lets all policies plan on all devices, once, and takes the plan of another search. That takes no nodes: with fewer devices there would be more left.
func (f *finder) seed(ctx context.Context) error {
	if f.whole.byAll {
		return nil
	}
	left := f.left
	defer func() { f.left = left }()
	if err := f.planBatch(ctx, []*candidate{f.whole}, (*candidate).planByAll); err != nil {
		return err
	}
	if err := f.challenge(ctx); err != nil || f.Known == nil {
		return err
	}
	known := f.Known.from.best
	if _, err := f.add(ctx, []space.Choice{known.Choice}, nil); err != nil {
		return err
	}
	at := slices.IndexFunc(f.candidates, func(c *candidate) bool { return c.Choice == known.Choice })
	if at < 0 {
		return nil
	}
	return f.planBatch(ctx, f.candidates[at:at+1], func(c *candidate, ctx context.Context, f *finder) error {
		return c.take(ctx, f, known.planOn(c), known.Policy)
	})
}

// take offers the choice a plan, which may be nil and may not run there.
func (c *candidate) take(ctx context.Context, f *finder, plan *schedule.Plan, policy string) error {
	if plan == nil {
		return nil
	}
	if e, err := f.Evaluator.Plan(c.priced, plan); err == nil {
		_ = c.enlist(ctx, f.Options, e, policy)
	}
	return ctx.Err()
}

// listProposals lists choices, the most promising first: one contender for each set of devices, or one for all sets in a brief search. Of a model these are its
// rank, and after three of it one choice of the space. Without a model all come from the space.
func (f *finder) listProposals(ctx context.Context) error {
	list := f.farApart()
	f.rankStrategies()
	if f.space.Ranked != nil {
		within, cancel := until(ctx, time.Now(), f.timeLeft(), forRank)
		defer cancel()
		ranked, err := f.space.Ranked(within, f.space.Devices, f.Aim, f.rankEffort())
		if err != nil {
			return err
		}
		if !f.Brief {
			if ranked, err = f.rankedWithNear(within, ranked); err != nil {
				return err
			}
		}
		different := f.differentFirst(ranked)
		if !f.Brief {
			list = append(different, list...)
			different = nil
		}
		const turn = 3
		for i, choice := range different {
			list = slices.Insert(list, min(i+i/turn, len(list)), choice)
		}
	}
	if f.Brief {
		of := &contender{every: true, level: none, proposals: list, promised: math.Inf(1)}
		for _, value := range f.promises {
			of.promised = min(of.promised, value)
		}
		f.contenders = []*contender{of}
		return nil
	}
	for _, choice := range list {
		c := f.contender(choice.Devices)
		if len(c.proposals) == 0 {
			c.promise = f.promises[choice]
		}
		c.proposals = append(c.proposals, choice)
	}
	f.contenders = append(f.contenders, &contender{strategic: true, level: none, promised: math.Inf(1)})
	return nil
}

// briefRank is the part of the effort of a rank that a brief search has time for: all of it for briefLayers.
const briefRank, briefLayers = 0.25, 8

// atOnce is how many proposals are planned for at one time: in a brief search no more than there are nodes for plans like the best one.
func (f *finder) atOnce() int {
	if f.Brief {
		return min(batch, max(1, f.left/f.best.nodesOfPlan()))
	}
	return batch
}

// rankEffort is the effort of a rank.
func (f *finder) rankEffort() float64 {
	if f.Brief && len(f.space.Layers) > briefLayers {
		return briefRank
	}
	return 1
}

// rankNear ranks sets with more or fewer units than the best ones have: the space lists few numbers of units. Cuts of layers fit
// the number of units, so that a search does not come from one number to another step by step. It does so once for each set of devices in a brief search, and plans for the most
// promising. In others it does so each time nearer to the set, and they contend next.
func (f *finder) rankNear(ctx context.Context, _ int) error {
	if f.space.Ranked == nil || f.over() {
		return nil
	}
	var near []string
	least := math.Inf(1)
	for _, c := range oneOfEach(f.byList(), thorough, func(c *candidate) string { return c.used }) {
		if value, known := f.space.Estimate(c.Choice, f.Aim); known {
			least = min(least, value)
		}
		first := f.refined[c.Devices] == 0
		if !first && f.Brief {
			continue
		}
		near = append(near, f.nearUnits(c.Devices)...)
		f.refined[c.Devices]++
		if first && !slices.Contains(f.space.Devices, c.Devices) {
			near = append(near, c.Devices)
		}
	}
	slices.Sort(near)
	f.readSets(near)
	if near = slices.Compact(near); len(near) == 0 {
		return nil
	}
	within, cancel := until(ctx, time.Now(), f.timeLeft(), forRank)
	defer cancel()
	ranked, err := f.space.Ranked(within, near, f.Aim, f.rankEffort())
	if err == nil && !f.Brief {
		ranked, _, err = f.rankAlone(within, ranked, mostNear)
		slices.SortStableFunc(ranked, func(a, b space.Ranked) int { return cmp.Compare(a.Value, b.Value) })
		least *= nearlyAsGood
	}
	if err != nil {
		return err
	}
	ranked = slices.DeleteFunc(ranked, func(r space.Ranked) bool { return r.Value >= least })
	next := f.differentFirst(ranked[:min(batch, len(ranked))])
	if f.Brief {
		for _, choice := range next {
			f.contenders[0].promised = min(f.contenders[0].promised, f.promises[choice])
		}
		return f.try(ctx, next, nil)
	}
	for i, choice := range next {
		f.contendNext(choice, i)
	}
	return nil
}

// differentFirst notes the values of choices. It puts choices behind the others whose value an earlier one of their sort has: they have the same work on equal devices, or leave devices
// without work.
func (f *finder) differentFirst(ranked []space.Ranked) (list []space.Choice) {
	var alike []space.Choice
	known := map[likeness]bool{}
	for _, r := range ranked {
		f.promises[r.Choice] = r.Value
		if known[f.likeness(r)] {
			alike = append(alike, r.Choice)
			continue
		}
		known[f.likeness(r)] = true
		list = append(list, r.Choice)
	}
	return append(list, alike...)
}

// farApart lists the choices of the space: devices of one kind with all their units first, and then those that are as far apart in the space
// as can be.
func (f *finder) farApart() (list []space.Choice) {
	all := f.space.Choices()
	for _, c := range all {
		if c.Tiles == f.space.Tiles[0] && isPlain(f.sets[c.Devices]) {
			list = append(list, c)
		}
	}
	step := 1
	for step < len(all) {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		for i := 0; i < len(all); i += step {
			list = append(list, all[i])
		}
	}
	return list
}

// isPlain reports whether a set has devices of one kind only, with all of their units.
func isPlain(set units) bool {
	return len(set) > 0 && !slices.ContainsFunc(set, func(d *platform.Device) bool { return d.Kind != set[0].Kind || d.Count < d.Whole })
}

// readSets selects the devices of sets, where all of the machine can be priced.
func (f *finder) readSets(sets []string) {
	at := slices.IndexFunc(f.candidates, func(c *candidate) bool { return c.Devices == "" })
	if at < 0 {
		return
	}
	whole := f.candidates[at].priced.Platform
	for d, group := range whole.Alike() {
		f.alike[whole.Devices[d].Name] = group
	}
	for _, set := range sets {
		if set == "" {
			f.sets[set] = whole.Usable()
		} else if p, err := whole.Select(set); err == nil {
			f.sets[set] = p.Usable()
		}
	}
}

// part is a part of a round.
type part struct {
	run    func(ctx context.Context, least int) error // it ends when least nodes are left
	effort float64                                    // its share of the effort of the round
}

// parts lists the parts of a round of a brief search.
func (f *finder) parts(all *contender) []part {
	look, near := part{f.lookAtAll, 1.0 / 2}, part{f.rankNear, 0}
	propose, downhill := part{all.propose(f), 1.0 / 6}, part{all.goDownhill(f), 1.0 / 3}
	return []part{look, propose, f.smaller(), downhill, near} // a rank takes as long as many plans
}

// rounds searches until the nodes are spent, nothing is left to do, or the effort is so large that little is to be expected.
func (f *finder) rounds(ctx context.Context) error {
	if f.whole.nodesOfPlan() <= mostSeeded && !f.Brief {
		if err := f.seed(ctx); err != nil {
			return err
		}
	}
	if !f.Brief {
		return f.contend(ctx)
	}
	plan := f.best.nodesOfPlan()
	for effort := firstEffort * plan; !f.over() && effort < mostEffort*plan; effort *= 2 {
		before := f.left
		err := f.runParts(ctx, f.parts(f.contenders[0]), effort)
		if err == nil && !f.over() {
			err = f.seed(ctx)
		}
		if err != nil {
			return err
		}
		if f.left == before {
			break
		}
	}
	return f.smaller().run(ctx, 0) // also where plans with evictions have taken all nodes
}

// runParts runs parts with their shares of an effort.
func (f *finder) runParts(ctx context.Context, parts []part, effort int) error {
	for _, part := range parts {
		if err := part.run(ctx, f.left-int(part.effort*float64(effort))); err != nil {
			return err
		}
		if err := f.challenge(ctx); err != nil {
			return err
		}
	}
	return nil
}

// over reports whether the nodes for the search are spent.
func (f *finder) over() bool { return f.left <= f.reserved }

// firstLook is how many nodes branch and bound has for a choice at first.
const firstLook = 256

// lookAtAll looks at all plans of choices with few tasks, each time with twice the nodes.
func (f *finder) lookAtAll(ctx context.Context, least int) error {
	for !f.over() && f.left > least {
		var open []*candidate
		for _, c := range f.candidates {
			if c.isSmall(f.Options) && !c.proven && !c.dropped && c.err == nil && c.bound < f.best.Value {
				open = append(open, c)
			}
		}
		if len(open) == 0 {
			return nil
		}
		slices.SortStableFunc(open, func(a, b *candidate) int { return cmp.Compare(a.lookedAt, b.lookedAt) })
		err := f.planBatch(ctx, open[:min(batch, len(open))], func(c *candidate, ctx context.Context, f *finder) error {
			return c.search(ctx, f.Options, max(firstLook, 2*c.lookedAt))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// promise is the value of a choice by the model; zero means that the model does not know.
func (f *finder) promise(c space.Choice) float64 {
	value, known := f.promises[c]
	if !known && f.space.Estimate != nil {
		f.left -= f.best.nodesOfPlan() / estimates
		value, _ = f.space.Estimate(c, f.Aim)
		f.promises[c] = value
	}
	return value
}

// try plans for choices that are not known yet.
func (f *finder) try(ctx context.Context, choices []space.Choice, origin *candidate) error {
	added, err := f.add(ctx, choices, origin)
	if err != nil {
		return err
	}
	return f.planBatch(ctx, slices.DeleteFunc(added, func(c *candidate) bool { return c.dropped }), (*candidate).first)
}

// byList lists the choices with a plan of policies in time, the best of these plans first. Of equal ones the last comes first, so that a search goes on where
// nothing changes the value.
func (f *finder) byList() []*candidate {
	all := slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool { return c.dropped || c.narrowed || math.IsInf(c.listed, 1) })
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Compare(a.listed, b.listed) })
	return all
}

// challenge looks at the best plan by a few steps in as many steps as results are told in, if it is not the best plan yet.
func (f *finder) challenge(ctx context.Context) error {
	if f.Brief || f.best == nil {
		return nil
	}
	least := f.best
	for _, c := range f.candidates {
		if c.Plan != nil && !c.long && !c.dropped && (c.short < least.short || math.IsInf(least.short, 1) && c.Makespan < least.Makespan) {
			least = c
		}
	}
	if least == f.best {
		return nil
	}
	return f.planBatch(ctx, []*candidate{least}, func(c *candidate, ctx context.Context, f *finder) error {
		return c.adoptPlan(ctx, f.Options, c.Plan, longRun)
	})
}

// planBatch plans for some choices at one time, and counts the nodes. The first plan of all is looked at in as many steps as results are told in.
func (f *finder) planBatch(ctx context.Context, some []*candidate, plan func(*candidate, context.Context, *finder) error) error {
	before := make([]int, len(some))
	for i, c := range some {
		before[i] = c.nodes + c.plans*c.nodesOfPlan()
	}
	first := f.best == nil
	err := parallel.Do(ctx, len(some), func(i int) error {
		c := some[i]
		if err := plan(c, ctx, f); err != nil || c.Plan == nil || c.long || f.Brief || !first {
			return err
		}
		return c.adoptPlan(ctx, f.Options, c.Plan, longRun)
	})
	for i, c := range some {
		f.left -= c.nodes + c.plans*c.nodesOfPlan() - before[i]
		if err := f.crown(ctx, c); err != nil {
			return err
		}
		if f.Brief {
			continue
		}
		if err := f.narrow(ctx, c); err != nil {
			return err
		}
	}
	f.progress()
	return err
}

// crown makes a choice the best one if it is better, and leaves out its devices without tasks.
func (f *finder) crown(ctx context.Context, c *candidate) error {
	if f.offer(c); f.best != c || f.Brief {
		return nil
	}
	return f.dropIdle(context.WithoutCancel(ctx))
}

// nodesOfPlan is the price of a simulation, in nodes of the budget.
func (c *candidate) nodesOfPlan() int { return max(16, len(c.priced.Program.Graphs[0].Tasks)) }

// offer takes a choice that is better than the best one: of equal ones that with fewer units, since the others have
// nothing to do.
func (f *finder) offer(c *candidate) {
	units := func(of *candidate) int { return len(of.priced.Platform.Workers) }
	if c.Plan == nil || c.dropped || !c.long && !f.Brief {
		return
	}
	if f.best == nil || better(&c.Attempt, &f.best.Attempt) || c.Value == f.best.Value && units(c) < units(f.best) {
		f.best = c
	}
}
