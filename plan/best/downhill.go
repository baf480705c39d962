package best

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"dahl/plan/space"
)

// basins is how many unlike choices a search goes on from at one time.
const basins = 4

// neighbour is a choice that differs a little from another one.
type neighbour struct {
	space.Choice
	group int // those of one group differ in one layer, or in the units of one kind
}

// goDownhill goes on from the best choices of unlike devices to their neighbours. It takes as many from the best of all as
// from the others together. A neighbour that is better is the next to go on from.
func (f *finder) goDownhill(ctx context.Context, least int) error {
	for !f.over() && f.left > least {
		from, err := f.basins()
		if err != nil {
			return err
		}
		var now []*candidate
		for i, c := range from {
			most := batch
			if i > 0 {
				most = max(1, batch/(len(from)-1))
			}
			added, err := f.nextOf(ctx, c, most)
			if err != nil {
				return err
			}
			now = append(now, added...)
		}
		if len(from) == 0 {
			return nil
		}
		if err := f.planBatch(ctx, now, (*candidate).first); err != nil {
			return err
		}
	}
	return nil
}

// basins are the best choices of unlike devices that have neighbours nobody has looked at.
func (f *finder) basins() (some []*candidate, err error) {
	known := map[string]bool{}
	for _, c := range f.byList() {
		names := c.units().names()
		if len(some) == basins || known[names] {
			continue
		}
		if !c.asked {
			if err := f.ask(c); err != nil {
				return nil, err
			}
		}
		if len(c.near) > 0 {
			known[names] = true
			some = append(some, c)
		}
	}
	return some, nil
}

// ask lists the neighbours of a choice: by a model the most promising first, and else those of the next group after that in which the
// choice was itself, so that a search goes through all layers.
func (f *finder) ask(c *candidate) error {
	c.asked = true
	groups := f.otherUnits(c)
	for _, through := range f.space.Neighbourhoods {
		more, err := through(c.Choice)
		if err != nil {
			return err
		}
		groups = append(groups, more...)
	}
	for i := range groups {
		at := (c.group + 1 + i) % len(groups)
		for _, choice := range groups[at] {
			if !f.tried[choice] {
				c.near = append(c.near, neighbour{choice, at})
			}
		}
	}
	if f.space.Estimate == nil {
		return nil
	}
	value := map[space.Choice]float64{}
	for _, n := range c.near {
		estimate, ok := f.space.Estimate(n.Choice, f.Aim)
		if !ok {
			estimate = math.Inf(1)
		}
		value[n.Choice] = estimate
	}
	slices.SortStableFunc(c.near, func(a, b neighbour) int { return cmp.Compare(value[a.Choice], value[b.Choice]) })
	return nil
}

// otherUnits are the choices with other units of one kind of devices, the nearest in the list of sets first.
func (f *finder) otherUnits(c *candidate) (groups [][]space.Choice) {
	own, here := slices.Index(f.space.Devices, c.Devices), c.units().byKind()
	of := map[string][]space.Choice{}
	for _, set := range f.space.Devices {
		if kind, ok := differsIn(here, f.sets[set].byKind()); ok && len(f.sets[set]) > 0 {
			of[kind] = append(of[kind], space.Choice{Devices: set, Tiles: c.Tiles})
		}
	}
	far := func(of space.Choice) int {
		at := slices.Index(f.space.Devices, of.Devices)
		return max(at-own, own-at)
	}
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		slices.SortStableFunc(of[kind], func(a, b space.Choice) int { return cmp.Compare(far(a), far(b)) })
		groups = append(groups, of[kind])
	}
	return groups
}

// differsIn is the one kind of devices of which two sets have different units; false means there are several, or none.
func differsIn(a, b map[string]string) (kind string, ok bool) {
	for _, of := range []map[string]string{a, b} {
		for k := range of {
			if a[k] != b[k] && kind != k {
				if ok {
					return "", false
				}
				kind, ok = k, true
			}
		}
	}
	return kind, ok
}

// nextOf prices some neighbours of a choice that nobody has looked at.
func (f *finder) nextOf(ctx context.Context, c *candidate, most int) (some []*candidate, err error) {
	for len(some) < most && len(c.near) > 0 {
		now := c.near[:min(most-len(some), len(c.near))]
		c.near = c.near[len(now):]
		choices := make([]space.Choice, len(now))
		for i, n := range now {
			choices[i] = n.Choice
		}
		added, err := f.add(ctx, choices, c)
		if err != nil {
			return nil, err
		}
		for _, a := range added {
			a.group = now[slices.IndexFunc(now, func(n neighbour) bool { return n.Choice == a.Choice })].group
			if !a.dropped {
				some = append(some, a)
			}
		}
	}
	return some, nil
}
