package best

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"time"

	"dahl/parallel"
	"dahl/plan/certificate"
	"dahl/plan/problem"
	"dahl/plan/relax"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
)

// boundTogether bounds by their work the choices of the space, of a network those with the tiles of the best one, and the best choice.
// It bounds those with one program and about as many units together: one relaxation
// of dozens of sets of devices takes a few times as long as the relaxation of one set. A choice without a bound leaves all
// without one, and then the search says that it has none. Of a search of less than a second they may take a second.
func (f *finder) boundTogether(ctx context.Context) error {
	if f.Time > 0 {
		limit := f.timeLeft()
		if f.Time < time.Second {
			limit = time.Second
		}
		within, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = within
	}
	f.keepTiles()
	if err := f.price(ctx); err != nil {
		return err
	}
	if err := f.admit(); err != nil {
		return err
	}
	var groups []*proving
	type program struct {
		of     space.Choice // without devices
		graph  string
		octave int
	}
	at := map[program]*proving{}
	for _, c := range f.candidates {
		if c.proven || c.dropped {
			continue
		}
		key := program{c.Choice, c.graph, c.octave()}
		key.of.Devices = ""
		if at[key] == nil {
			at[key] = &proving{}
			groups = append(groups, at[key])
		}
		at[key].group = append(at[key].group, c)
	}
	return parallel.Do(ctx, len(groups), func(i int) error { return f.bound(ctx, groups[i]) })
}

// keepTiles leaves the tiles of the best choice alone in the space of a network, whose other lowerings have a bound of their own
// ([Result.All]). All lowerings stay where branch and bound looks at their plans.
func (f *finder) keepTiles() {
	if f.space.Shares == nil || f.best.isSmall(f.Options) {
		return
	}
	own := *f.space
	if own.Tiles = nil; f.best.Strategy == "" { // else the best choice alone is left
		own.Tiles = []tiling.Tiling{f.best.Tiles}
	}
	f.space = &own
	for _, c := range f.candidates {
		c.outside = !own.Has(c.Choice)
	}
}

// How the bound of a choice was found, from weak to strong.
const (
	byWork       = iota
	byOctave     // by one relaxation for all choices with equal programs and about as many units
	byRelaxation // by one relaxation for each choice
	byParts
)

// plansOf is as how many plans the relaxation of a choice counts. Of an octave it ends after less time, as most have bounds far above the best plan.
var plansOf = map[int]int{byOctave: 1, byRelaxation: 4}

// prove raises the least bounds, from step to step, until the choice with the least bound has its best proof or the nodes are spent.
func (f *finder) prove(ctx context.Context) error {
	for {
		tasks := f.lowest()
		if len(tasks) == 0 {
			return nil
		}
		before := make([]float64, len(tasks))
		for i, p := range tasks {
			before[i] = p.group[0].bound
		}
		if err := parallel.Do(ctx, len(tasks), func(i int) error { return f.bound(ctx, tasks[i]) }); err != nil {
			return err
		}
		for i, p := range tasks {
			f.left -= int(p.effort * nodesOfEffort)
			if c := p.group[0]; p.parts > 0 {
				missing := f.best.Value - before[i]
				c.stuck = p.parts >= mostVain && c.bound-before[i] < leastPart*missing
			}
			if err := f.share(ctx, p); err != nil {
				return err
			}
		}
	}
}

const (
	// firstParts is the first number of parts of a choice. The number grows by the factor moreParts while that closes leastPart of
	// the gap to the best plan, and up to mostVain anyway.
	firstParts, moreParts = 25, 4
	mostVain              = 400
	leastPart             = 0.05
	// nodesOfEffort is the price of a unit of effort, in nodes of the budget.
	nodesOfEffort = 150
)

// proving is choices whose bound is to be raised together.
type proving struct {
	group  []*candidate
	by     int     // how to raise it: byWork and so on
	parts  int     // how many parts to prove it in; zero means one
	effort float64 // the effort of the parts

	leaf  *certificate.Leaf  // the proof that was found
	model *certificate.Model // the model of the leaf
}

// lowest lists what to prove next, at one time: nothing where the choice with the least bound has the best
// that is known. Of equal bounds the one with the most devices comes first, since its proof may serve the others, see share.
// What it lists does not depend on the number of goroutines. Relaxations count as plansOf, and parts by their effort.
func (f *finder) lowest() (next []*proving) {
	const batch = 4
	// A search whose nodes do not even pay for a unit of effort begins no relaxation: one of a large graph takes minutes.
	if f.left < nodesOfEffort {
		return nil
	}
	byBound := slices.Clone(f.candidates)
	slices.SortStableFunc(byBound, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(len(b.units()), len(a.units())))
	})
	taken := map[*candidate]bool{}
	for _, c := range byBound {
		if len(next) == batch || f.left <= 0 || c.bound >= f.best.Value {
			break
		}
		if c.dropped {
			continue
		}
		last := f.lastStep(c)
		if c.proven || c.by > last || c.by == last && (last != byParts || c.stuck) {
			if len(next) == 0 {
				break
			}
			continue
		}
		if taken[c] {
			continue
		}
		p := &proving{group: []*candidate{c}}
		for c.by = min(c.by+1, last); c.by < byRelaxation; c.by++ {
			if p.group = f.like(c); len(p.group) > 1 {
				break
			}
		}
		if c.by == byParts {
			c.parts = max(firstParts, moreParts*c.parts)
			p.parts = c.parts
		} else {
			f.left -= plansOf[c.by] * c.nodesOfPlan()
		}
		p.by = c.by
		for _, member := range p.group {
			taken[member] = true
		}
		next = append(next, p)
	}
	return next
}

// share gives a proved bound to all choices with lower bounds whose plans fit the same model: subsets of its devices.
func (f *finder) share(ctx context.Context, p *proving) error {
	bound := p.leaf.Bound()
	less := slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool {
		return c.bound >= bound || c.graph != p.group[0].graph || !slices.ContainsFunc(p.group, c.isPartOf)
	})
	return parallel.Do(ctx, len(less), func(i int) error {
		c := less[i]
		m, err := f.models.Of(c.priced, c.graph, p.model.Objective)
		if err == nil && p.model.Relaxes(m.Within(f.Deadline)) {
			c.leaf, c.bound = p.leaf, bound
		}
		return err
	})
}

// isPartOf reports whether another choice has all devices of this one, with as many units.
func (c *candidate) isPartOf(other *candidate) bool {
	units := map[string]int{}
	for _, d := range other.priced.Platform.Devices {
		units[d.Name] = d.Count
	}
	return !slices.ContainsFunc(c.priced.Platform.Devices, func(d platform.Device) bool { return units[d.Name] != d.Count })
}

// lastStep is the strongest way to bound a choice: parts of proofs differ by the devices of tasks, and so need several devices,
// or by the length of a step, if the objective is a product.
func (f *finder) lastStep(c *candidate) int {
	if len(c.units()) > 1 || f.Objective == problem.EDP {
		return byParts
	}
	return byRelaxation
}

// like lists the choices whose bounds rise together with the bound of one, itself first: the choices with the same
// program and octave. One relaxation of all numbers of units would have the most units, and
// the time that a task
// takes where few units
// share the bandwidth of a memory. Numbers that differ by a factor below two have bounds almost as high together as each by itself.
func (f *finder) like(of *candidate) []*candidate {
	group := []*candidate{of}
	for _, c := range f.candidates {
		open := c != of && !c.dropped && c.by < of.by && c.bound < f.best.Value
		if open && c.Tiles == of.Tiles && c.Strategy == of.Strategy && c.graph == of.graph && c.octave() == of.octave() {
			c.by = of.by
			group = append(group, c)
		}
	}
	return group
}

// octave is the number of digits that the units of the largest device have as a binary number.
func (c *candidate) octave() (digits int) {
	for _, d := range c.units() {
		digits = max(digits, bits.Len(uint(d.Count)))
	}
	return digits
}

// proofs finds proofs of a bound of a model, whose parts are all plans together, with the value of a plan.
func (p *proving) proofs(ctx context.Context, m *certificate.Model, value float64) (list []*certificate.Proof, err error) {
	var one *certificate.Proof
	switch p.by {
	case byWork:
		one, err = relax.Area(ctx, m, value)
	case byParts:
		found, err := relax.Branch(ctx, m, value, p.parts)
		if err != nil {
			return nil, err
		}
		p.effort += found.Effort
		return found.Proofs, nil
	default:
		one, err = relax.Bound(ctx, m, value)
	}
	return []*certificate.Proof{one}, err
}

// bound proves a bound of choices together, and keeps it for those that have a lower one.
func (f *finder) bound(ctx context.Context, p *proving) error {
	group := p.group
	leaf := &certificate.Leaf{Choice: group[0].Choice, Graph: group[0].graph}
	for _, c := range group[1:] {
		leaf.Joined = append(leaf.Joined, c.Devices)
	}
	for _, part := range certificate.Parts(f.Objective) {
		models := make([]*certificate.Model, len(group))
		var err error
		for i, c := range group {
			if models[i], err = f.models.Of(c.priced, c.graph, part); cmp.Or(err, ctx.Err()) != nil {
				return cmp.Or(err, ctx.Err())
			}
		}
		m, err := certificate.Join(models...)
		if err != nil {
			return err
		}
		if part == problem.EDP {
			m.LeastSpan = leaf.Claims[0].Bound
		}
		m.Context = ctx
		proofs, err := p.proofs(ctx, m.Within(f.Deadline), f.incumbentValue(part))
		if err != nil {
			return err
		}
		m.Context = nil
		if err := leaf.Add(m, proofs...); err != nil {
			return err
		}
		p.leaf, p.model = leaf, m
	}
	bound := leaf.Bound()
	for _, c := range group {
		if c.leaf == nil || bound > c.leaf.Bound() {
			c.leaf = leaf
		}
		c.bound = max(c.bound, bound)
	}
	return nil
}
