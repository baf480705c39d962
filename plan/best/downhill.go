package best

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"dahl/parallel"
	"dahl/plan/space"
	"dahl/platform"
)

const (
	// basins is how many choices on different sets of devices a search goes on from at one time.
	basins = 4
	// drawn is how many similar choices a model compares for each that is planned for, and estimates is how many of its estimates
	// count as much as a plan.
	drawn, estimates = 16, 32
	// mostChanges is in how many respects a similar choice differs at most.
	mostChanges = 3
	// unitsShare is how many changes there are for each change of units of devices.
	unitsShare = 4
	// mostVainDraws is after how many choices that are known a search goes on from elsewhere.
	mostVainDraws = 64
)

// goDownhill goes on from the best choices of a contender to similar ones, drawn at random. A choice that is no worse is the next to go
// on from. By a model only the most promising of those that are drawn are planned for.
func (of *contender) goDownhill(f *finder) func(context.Context, int) error {
	return func(ctx context.Context, least int) error {
		for !f.over() && f.left > least {
			from := of.basins(f)
			if len(from) == 0 {
				return nil
			}
			similar := make([][]space.Choice, len(from))
			err := parallel.Do(ctx, len(from), func(i int) error {
				most := batch
				if i > 0 { // as many from the first as from the others together
					most = max(1, batch/(len(from)-1))
				}
				similar[i] = f.similar(ctx, from[i], most, of.every)
				return nil
			})
			if err != nil {
				return err
			}
			var now []*candidate
			for i, c := range from {
				if f.space.Estimate != nil {
					f.left -= len(similar[i]) * drawn * c.nodesOfPlan() / estimates
				}
				added, err := f.add(ctx, similar[i], c)
				if err != nil {
					return err
				}
				now = append(now, slices.DeleteFunc(added, func(c *candidate) bool { return c.dropped })...)
			}
			if err := f.planBatch(ctx, now, (*candidate).first); err != nil {
				return err
			}
		}
		return nil
	}
}

// basins are the choices from which a contender goes on: the best plans of policies, on different devices, and the best plan.
func (of *contender) basins(f *finder) (from []*candidate) {
	for _, c := range oneOfEach(of.byList(f), math.MaxInt, func(c *candidate) string { return fmt.Sprint(c.used, c.Strategy != "") }) {
		if len(from) < basins && !c.dry {
			from = append(from, c)
		}
	}
	if best := of.best(f); !of.every && best != nil && !best.dry && !slices.Contains(from, best) {
		from = append(from, best)
	}
	return from
}

// similar draws choices, of other units too or not, that are similar to one and not known yet, none when ctx ends. Of many it takes the best by a model.
func (f *finder) similar(ctx context.Context, c *candidate, most int, units bool) (some []space.Choice) {
	c.draws++
	random := rand.New(rand.NewPCG(uint64(c.draws), uint64(len(c.Tiles.String()))))
	of, vain := most, 0
	if f.space.Estimate != nil {
		of *= drawn
	}
	for len(some) < of && vain < mostVainDraws && ctx.Err() == nil {
		choice := c.Choice
		for changes := 1 + random.IntN(mostChanges); changes > 0; changes-- {
			choice = f.changed(c, choice, random, units)
		}
		if vain++; !f.tried[choice] && !slices.Contains(some, choice) {
			some, vain = append(some, choice), 0
		}
	}
	c.dry = len(some) == 0
	if f.space.Estimate == nil {
		return some
	}
	value := map[space.Choice]float64{}
	for _, choice := range some {
		if ctx.Err() != nil {
			return nil
		}
		estimate, ok := f.space.Estimate(choice, f.Aim)
		if !ok {
			estimate = math.Inf(1)
		}
		value[choice] = estimate
	}
	slices.SortStableFunc(some, func(a, b space.Choice) int { return cmp.Compare(value[a], value[b]) })
	return some[:min(most, len(some))]
}

// changed is a choice, drawn from a candidate, with another number of a layer, or other units of one kind of devices; one with a strategy has another near it. It is the choice itself where that has no
// such neighbours, or no such tiles.
func (f *finder) changed(from *candidate, c space.Choice, random *rand.Rand, units bool) space.Choice {
	var all []space.Choice
	switch {
	case c.Strategy == "" && units && (len(f.space.Neighbourhoods) == 0 || random.IntN(unitsShare) == 0):
		sets := f.otherUnits(c.Devices)
		if near := f.nearUnits(c.Devices); f.space.Estimate != nil && len(near) > 0 && random.IntN(2) == 0 {
			sets = near
		}
		for _, set := range sets {
			all = append(all, space.Choice{Devices: set, Tiles: c.Tiles})
		}
	case len(f.space.Neighbourhoods) > 0:
		through := random.IntN(len(f.space.Neighbourhoods))
		all = f.near(from, c, nearby{through, f.space.Layers[random.IntN(len(f.space.Layers))]})
	}
	if len(all) == 0 {
		return c
	}
	return all[random.IntN(len(all))]
}

// nearby names a neighbourhood of the space, and a layer.
type nearby struct {
	through int
	layer   string
}

// near are the neighbours of a choice, none where it cannot have some. The neighbours of the candidate from which a search draws are looked for once.
func (f *finder) near(from *candidate, c space.Choice, of nearby) []space.Choice {
	if all, known := from.near[of]; known && c == from.Choice {
		return all
	}
	all, _ := f.space.Neighbourhoods[of.through](c, of.layer)
	if c == from.Choice {
		if from.near == nil {
			from.near = map[nearby][]space.Choice{}
		}
		from.near[of] = all
	}
	return all
}

// otherUnits are the sets of the space that differ from one in the units of one kind of devices. They are looked for once.
func (f *finder) otherUnits(devices string) []string {
	sets, _ := f.others.LoadOrStore(devices, sync.OnceValue(func() (sets []string) {
		here := f.sets[devices].byKind()
		for _, set := range f.space.Devices {
			if len(here) > 0 && len(f.sets[set]) > 0 && differInOne(here, f.sets[set].byKind()) {
				sets = append(sets, set)
			}
		}
		return sets
	}))
	return sets.(func() []string)()
}

// steps is how many numbers of units near one a search tries, on either side.
const steps = 4

// nearUnits are sets with up to a half more or fewer units of the devices of a kind, and with half as many each time after the neighbours of the set were ranked. The space need not list
// them.
func (f *finder) nearUnits(devices string) (sets []string) {
	for i, of := range f.sets[devices] {
		first := slices.IndexFunc(f.sets[devices], func(d *platform.Device) bool { return d.Kind == of.Kind })
		reach := max(2, of.Count) >> (1 + f.refined[devices])
		if first < i || f.sets[""].count(of.Name) < 2 || reach == 0 {
			continue
		}
		for by := -reach; by <= reach; by += (reach + steps - 1) / steps {
			var items []string
			for _, d := range f.sets[devices] {
				n := d.Count
				if d.Kind == of.Kind {
					n = min(max(n+by, 1), f.sets[""].count(d.Name))
				}
				items = append(items, d.Item(n))
			}
			if set := strings.Join(items, ","); set != f.sets[devices].String() && set != f.sets[""].String() && !slices.Contains(sets, set) {
				sets = append(sets, set)
			}
		}
	}
	return sets
}

// differInOne reports whether two sets have different units of one kind of devices, and of one only.
func differInOne(a, b map[string]string) bool {
	differ := 0
	for kind := range a {
		if a[kind] != b[kind] {
			differ++
		}
	}
	for kind := range b {
		if a[kind] == "" {
			differ++
		}
	}
	return differ == 1
}
