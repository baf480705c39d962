package best

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/plan/space"
)

// contender is the search on one set of devices. It has levels, each with twice the effort of the one before. A level depends on other sets by one proposal alone, the tiles of the best plan.
type contender struct {
	devices   string         // the set, as [space.Choice] has it
	every     bool           // the contender searches all sets, and devices does not count
	strategic bool           // the contender searches choices with strategies on any set, and devices does not count
	level     int            // the last level; none means that no level has begun
	proposals []space.Choice // choices that the search has not come to
	postponed []space.Choice // proposals for later, since the model thinks little of them
	promised  float64        // the least value of proposals by the model
	promise   float64        // the value of the first proposal by the model; zero means that nobody knows
}

const (
	none = -1
	// mostLevel is the last level.
	mostLevel = 13
)

// effortOf is the effort of a level in plans. Level 0 plans for the most promising choice, level 1 is local search, and the others are all kinds of search.
func effortOf(level int) int {
	if level == 0 {
		return 2
	}
	return 8 << level
}

// contender is the contender of a set, perhaps a new one.
func (f *finder) contender(devices string) *contender {
	if at := slices.IndexFunc(f.contenders, func(c *contender) bool { return !c.strategic && c.devices == devices }); at >= 0 {
		return f.contenders[at]
	}
	c := &contender{devices: devices, level: none, promised: math.Inf(1)}
	f.contenders = append(f.contenders, c)
	return c
}

// contendNext lets the set of a choice contend before others that have not begun, but for some.
func (f *finder) contendNext(choice space.Choice, behind int) {
	c := f.contender(choice.Devices)
	c.proposals, c.promise = slices.Insert(c.proposals, 0, choice), f.promises[choice]
	f.contenders = slices.DeleteFunc(f.contenders, func(other *contender) bool { return other == c })
	f.contenders = slices.Insert(f.contenders, min(behind, len(f.contenders)), c)
}

// has reports whether a choice is one of the contender.
func (of *contender) has(c *candidate) bool {
	return of.every || of.strategic == (c.Strategy != "") && (of.strategic || of.devices == c.Devices)
}

// best is the choice of the contender with the best plan; nil means there is no plan.
func (of *contender) best(f *finder) (best *candidate) {
	if of.every {
		return f.best
	}
	for _, c := range f.candidates {
		if of.has(c) && c.Plan != nil && !c.dropped && (best == nil || better(&c.Attempt, &best.Attempt)) {
			best = c
		}
	}
	return best
}

// byList lists the choices of the contender like [finder.byList].
func (of *contender) byList(f *finder) []*candidate {
	return slices.DeleteFunc(f.byList(), func(c *candidate) bool { return !of.has(c) })
}

// contend searches on all sets in rounds. In each one the best set comes to the level of the round, the next two to the level below, the next four to the
// level under it, and so on, the last ones first. Sets that have not begun are behind the others. Strategies have steps of their own. A step of a round costs the same nodes on
// every machine, whether there are as many sets or not, and is not begun where they are not left. So a machine has nearly the plans of its parts, and the search with fewer nodes is
// the beginning of that with more.
func (f *finder) contend(ctx context.Context) error {
	defer func() {
		f.least, f.searched = 0, true
		f.progress()
	}()
	f.left, f.unit = f.Nodes, f.usualSize() // the first plan takes no nodes: with fewer devices it is smaller, and there would be more left
	for round := 1; round <= mostLevel; round++ {
		before := f.spent
		for _, s := range f.stepsOf(round) {
			if f.left-s.nodes < f.reserved {
				return nil
			}
			if err := f.runStep(ctx, s); err != nil {
				return err
			}
		}
		if err := f.seed(ctx); err != nil || f.spent == before {
			return err
		}
	}
	return nil
}

// step is a part of a round.
type step struct {
	part
	effort int // the nodes that the part may take
	nodes  int // the nodes that the budget is charged with
}

// stepsOf lists the steps of a round. Cores share a memory, so that tiles need no transfers and leave few gaps: over cores alone strategies rarely promise more, and come last.
// Elsewhere the first ones take no nodes, as policies do, and then strategies take as many as over cores.
func (f *finder) stepsOf(round int) (all []step) {
	effort := f.unit << round
	named, strategies := part{f.tryNamed, 1}, part{f.tryStrategies, 1}
	hasStrategies := len(f.space.Layers) > 0
	_, others := f.whole.classes()
	if hasStrategies && others > 0 {
		all = append(all, step{named, 2 * effort, 0})
	}
	if f.whole.isSmall(f.Options) {
		all = append(all, step{part{f.lookAtAll, 1}, 8 * effort, 8 * effort})
	}
	for class := round; class >= 0; class-- {
		level := round - class
		nodes := effortOf(level) * f.unit
		all = append(all, slices.Repeat([]step{{f.bring(class == 0, level), nodes, nodes}}, 1<<class)...)
	}
	all = append(all, step{f.smaller(), 0, 0}, step{part{f.rankNear, 0}, 0, 0})
	if hasStrategies && others > 0 {
		return append(all, step{named, effort / 2, effort / 2}, step{strategies, effort / 2, effort / 2})
	} else if hasStrategies {
		return append(all, step{named, effort, effort})
	}
	return all
}

// runStep runs a step for its effort, and charges it with its nodes, however many it really takes.
func (f *finder) runStep(ctx context.Context, s step) error {
	left, reserved := f.left, f.reserved
	f.reserved, f.least = math.MinInt/2, left-s.nodes
	err := f.runParts(ctx, []part{s.part}, s.effort)
	f.spent += left - f.left
	f.left, f.reserved = left-s.nodes, reserved
	return err
}

// tilesOfLayer is how many tasks a layer has in a plan of the usual size.
const tilesOfLayer = 8

// usualSize is the size of a plan in nodes. It does not depend on the devices: even whole layers have other tasks where some kinds of devices are.
func (f *finder) usualSize() int {
	if layers := len(f.space.Layers); layers > 0 {
		return max(16, tilesOfLayer*layers)
	}
	return f.whole.nodesOfPlan()
}

// bring is a part that brings a contender to a level: the best one, or else the next one below it. At level 0 a set begins that has no plan yet.
func (f *finder) bring(best bool, level int) part {
	return part{run: func(ctx context.Context, _ int) error {
		order := f.order()
		if best {
			order = order[:min(1, len(order))]
		} else if level == 1 {
			order = f.unseenFirst(order)
		}
		at := slices.IndexFunc(order, func(c *contender) bool { return c.level < level && (level > 0 || c.best(f) == nil) })
		for at >= 0 && order[at].level < level {
			if err := f.start(ctx, order[at]); err != nil {
				return err
			}
		}
		return nil
	}}
}

// order lists the contenders: first those with a plan, the best first, and then the sets that have not begun.
func (f *finder) order() []*contender {
	for _, c := range f.byList() {
		if c.Strategy == "" {
			f.contender(c.Devices)
		}
	}
	f.compareWithModel()
	worth := map[*contender]float64{}
	var begun, later []*contender
	for _, c := range f.contenders {
		if worth[c] = c.worth(f); !math.IsInf(worth[c], 1) {
			begun = append(begun, c)
		} else if c.level == none && !c.strategic {
			later = append(later, c)
		}
	}
	slices.SortStableFunc(begun, func(a, b *contender) int { return cmp.Compare(worth[a], worth[b]) })
	return append(begun, later...)
}

// compareWithModel notes how far plans that local search has found are below the value by the model, by sort of set: the least part of it that they have.
func (f *finder) compareWithModel() {
	f.gained = map[string]float64{}
	for _, c := range f.contenders {
		if best := c.best(f); best != nil && c.level >= 1 && best.short < c.promise {
			sort, part := f.sort(c.devices), best.short/c.promise
			f.gained[sort] = min(cmp.Or(f.gained[sort], 1), part)
		}
	}
}

// worth is the value of the best plan. Before local search the value by the model counts where it is less, since the model knows that steps overlap: the
// least part of it that local search has found on sets of the sort. A device without a task counts as a further device does in a rank: the set without it has the same plan. It is infinite without a plan.
func (of *contender) worth(f *finder) float64 {
	best := of.best(f)
	if best == nil {
		return math.Inf(1)
	}
	value := best.short
	if of.level < 1 && of.promise > 0 {
		value = min(value, of.promise*cmp.Or(f.gained[f.sort(of.devices)], 1))
	}
	return value * (1 + furtherDevice*float64(len(best.units())-len(best.busy(best.Plan))))
}

// unseenFirst puts the first contender of each sort of set that local search has not seen before the others, if it is not hopeless: what local search gains depends on the sort.
func (f *finder) unseenFirst(order []*contender) []*contender {
	seen := map[string]bool{}
	for _, c := range order {
		sort := f.sort(c.devices)
		seen[sort] = seen[sort] || c.level >= 1
	}
	var first, others []*contender
	for _, c := range order {
		if sort := f.sort(c.devices); c.strategic || seen[sort] || c.worth(f) >= hopeless*order[0].worth(f) {
			others = append(others, c)
		} else {
			seen[sort], first = true, append(first, c)
		}
	}
	return append(first, others...)
}

// start begins the next level of a contender.
func (f *finder) start(ctx context.Context, c *contender) error {
	c.level++
	if c.level == 0 {
		return f.tryFew(ctx, c)
	}
	best := c.best(f)
	if best == nil {
		return nil
	}
	effort := effortOf(c.level) * f.unit
	if c.level == 1 {
		return f.improveFirst(ctx, c, effort)
	}
	if c.level == 2 && f.space.Ranked != nil && !c.strategic {
		ranked, err := f.space.Ranked(ctx, []string{c.devices}, f.Aim, 1)
		if err != nil {
			return err
		}
		c.proposals = append(f.differentFirst(ranked), c.proposals...)
	}
	if c.level == 2 {
		if err := f.seedStrategies(ctx, c, effort/8); err != nil {
			return err
		}
	}
	if f.best.Strategy == "" && !c.strategic {
		c.proposals = slices.Insert(c.proposals, 0, space.Choice{Devices: c.devices, Tiles: f.best.Tiles})
	}
	parts := []part{{c.propose(f), 1.0 / 8}, {c.goDownhill(f), 1.0 / 4}, {c.improve(f), 5.0 / 8}}
	return f.runParts(ctx, parts, effort)
}

// improveFirst improves the first plan of a set. All policies plan with the tiles of all devices then, and the best of their plans is improved where it is better.
func (f *finder) improveFirst(ctx context.Context, c *contender, effort int) error {
	improve := []part{{c.improve(f), 1}}
	if err := f.runParts(ctx, improve, effort); err != nil {
		return err
	}
	if err := f.seedSet(ctx, c); err != nil || c.best(f).moves > 0 {
		return err
	}
	return f.runParts(ctx, improve, effort)
}

// seedSet lets all policies plan on a set with the tiles of all devices, as the search of a machine with no other devices does. That takes no nodes there.
func (f *finder) seedSet(ctx context.Context, c *contender) error {
	if c.strategic || f.whole.nodesOfPlan() > mostSeeded {
		return nil
	}
	choice := space.Choice{Devices: c.devices, Tiles: f.whole.Tiles}
	if _, err := f.add(ctx, []space.Choice{choice}, nil); err != nil {
		return err
	}
	left := f.left
	defer func() { f.left = left }()
	return f.planBatch(ctx, slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool { return c.Choice != choice || c.byAll }), (*candidate).planByAll)
}

// seedStrategies plans for the first strategies by name on a set, for some nodes.
func (f *finder) seedStrategies(ctx context.Context, c *contender, nodes int) error {
	named := f.namedOn(c.devices)
	if c.strategic || c.devices == f.whole.Devices || len(named) == 0 {
		return nil
	}
	_, err := f.tryList(ctx, f.rankedBy(named[0]), f.left-nodes)
	return err
}

// tryFew plans for the first proposals of a contender until one has a plan, also where the set has a plan by the way: for a few in any case where no model has put them in an order.
func (f *finder) tryFew(ctx context.Context, c *contender) error {
	for tries := 0; tries < batch && len(c.proposals) > 0; {
		next := c.proposals[:1]
		c.proposals = c.proposals[1:]
		if !f.tried[next[0]] {
			tries++
			if err := f.try(ctx, next, nil); err != nil {
				return err
			}
		}
		if f.space.Ranked != nil && f.hasPlan(next[0]) {
			break
		}
	}
	return f.challenge(ctx)
}

// hasPlan reports whether policies have planned for a choice.
func (f *finder) hasPlan(choice space.Choice) bool {
	return slices.ContainsFunc(f.candidates, func(c *candidate) bool { return c.Choice == choice && c.list != nil })
}

// propose plans for the next proposals of a contender, and in all ways for its best choices.
func (of *contender) propose(f *finder) func(context.Context, int) error {
	return func(ctx context.Context, least int) error {
		effort := (f.left - least) / f.best.nodesOfPlan()
		atOnce := min(max(effort/allPolicies, 1), thorough)
		for !f.over() && f.left > least {
			now := of.nextProposals(f)
			if len(now) == 0 {
				break
			}
			if err := f.try(ctx, now, nil); err != nil {
				return err
			}
		}
		if f.over() || !of.every && 2*effort < allPolicies {
			return nil
		}
		best := slices.DeleteFunc(of.byList(f), func(c *candidate) bool { return c.byAll || c.isSmall(f.Options) })
		now := oneOfEach(best, atOnce, func(c *candidate) string { return c.used })
		most := slices.DeleteFunc(best, func(c *candidate) bool { return f.promises[c.Choice] == 0 || slices.Contains(now, c) })
		slices.SortStableFunc(most, func(a, b *candidate) int { return cmp.Compare(f.promises[a.Choice], f.promises[b.Choice]) })
		return f.planBatch(ctx, append(now, most[:min(atOnce-1, 1, len(most))]...), (*candidate).planByAll)
	}
}

// nextProposals takes the next proposals from the list: first those that are not hopeless by the model.
func (of *contender) nextProposals(f *finder) (now []space.Choice) {
	for len(of.proposals) > 0 && len(now) < f.atOnce() {
		next := of.proposals[0]
		of.proposals = of.proposals[1:]
		if f.tried[next] && !of.every {
			continue
		}
		promise := f.promise(next)
		if promise > 0 && !of.every {
			of.promised = min(of.promised, promise)
		}
		if promise > hopeless*of.promised {
			of.postponed = append(of.postponed, next)
			continue
		}
		now = append(now, next)
	}
	if len(now) == 0 && len(of.postponed) > 0 {
		of.proposals, of.postponed, of.promised = of.postponed, nil, math.Inf(1)
		return of.nextProposals(f)
	}
	return now
}
