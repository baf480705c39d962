package best

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"dahl/parallel"
	"dahl/schedule"
)

// Front lists the plans that no other plan beats in both seconds and joules, the shortest first. Of plans that
// are equal in both it has the first.
func Front(tried []Attempt) (front []Attempt) {
	sorted := slices.Clone(tried)
	slices.SortStableFunc(sorted, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(a.Makespan, b.Makespan), cmp.Compare(a.Joules, b.Joules))
	})
	for _, t := range sorted {
		if n := len(front); n == 0 || t.Joules < front[n-1].Joules {
			front = append(front, t)
		}
	}
	return front
}

// simulated notes a plan of the choice. One that was simulated before, for fewer steps, is replaced.
func (c *candidate) simulated(t Attempt) {
	if i := slices.IndexFunc(c.attempts, func(before Attempt) bool { return before.Plan == t.Plan }); i >= 0 {
		c.attempts[i] = t
		return
	}
	c.attempts = append(c.attempts, t)
}

// widest bounds the additional choices of each class.
const widest = 6

// widen plans for choices that the objective alone does not ask for, so that the front reaches from few seconds to few
// joules: of processors alone, of other devices alone and of both. Of each class it takes sets as unlike in their numbers
// of units as can be, with the first tiles of the space. Choices for branch and bound wait for that pass. It ends when a
// twentieth of the nodes is spent.
func (f *finder) widen(ctx context.Context) error {
	classes := map[[2]bool][]*candidate{}
	for _, c := range f.candidates {
		if c.Tiles == f.space.Tiles[0] && (!c.planned && !c.isSmall(f.Options) || c.nodes > 0) {
			classes[c.class()] = append(classes[c.class()], c)
		}
	}
	for class, list := range classes {
		slices.SortStableFunc(list, func(a, b *candidate) int {
			return cmp.Compare(len(a.priced.Platform.Workers), len(b.priced.Platform.Workers))
		})
		classes[class] = spread(list, widest)
	}
	least := f.left - f.Nodes/20
	for i := 0; i < widest && f.left > least; i++ {
		var now []*candidate
		for _, class := range [][2]bool{{true, false}, {false, true}, {true, true}} {
			if list := classes[class]; i < len(list) {
				now = append(now, list[i])
			}
		}
		if err := f.planBatch(ctx, now, (*candidate).planByAll); err != nil {
			return err
		}
	}
	return nil
}

// class says whether a choice has processors, and whether it has other devices.
func (c *candidate) class() (class [2]bool) {
	for i := range c.priced.Platform.Devices {
		d := &c.priced.Platform.Devices[i]
		class[0] = class[0] || d.IsProcessor() && !d.PlacedOnly
		class[1] = class[1] || !d.IsProcessor()
	}
	return class
}

// spread takes at most n of a list, at equal distances: the first, the last, and then those between.
func spread(list []*candidate, n int) (some []*candidate) {
	if n = min(n, len(list)); n < 2 {
		return list[:n]
	}
	some = append(some, list[0], list[len(list)-1])
	for i := 1; i < n-1; i++ {
		some = append(some, list[i*(len(list)-1)/(n-1)])
	}
	return some
}

// simulateFront simulates the plans of the front for as many steps as results are told in.
func (f *finder) simulateFront(ctx context.Context) error {
	if !f.Steady {
		return nil
	}
	for {
		of := map[*schedule.Plan]*candidate{}
		for _, c := range f.candidates {
			for _, t := range c.attempts {
				of[t.Plan] = c
			}
		}
		front := slices.DeleteFunc(Front(f.tried()), func(t Attempt) bool { return t.long })
		if len(front) == 0 {
			return nil
		}
		err := parallel.Do(ctx, len(front), func(i int) error {
			t := &front[i]
			e, err := f.Evaluator.Plan(of[t.Plan].priced, t.Plan)
			if err != nil {
				return err
			}
			step, err := e.Step(ctx, true, longRun)
			t.Makespan, t.Joules, t.Value, t.long = step.Time, step.Joules, f.value(step.Time, step.Joules), true
			return err
		})
		if err != nil {
			return err
		}
		for _, t := range front {
			of[t.Plan].simulated(t)
		}
	}
}

// different lists the plans that were simulated by time. Plans with equal times, joules, choices and policies count as one: the best
// one where it is among them.
func (f *finder) different() []Attempt {
	order := func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(a.Makespan, b.Makespan), cmp.Compare(a.Joules, b.Joules), strings.Compare(a.Devices, b.Devices),
			strings.Compare(a.Tiles.String(), b.Tiles.String()), strings.Compare(a.Policy, b.Policy))
	}
	others := func(t Attempt) int {
		if t.Plan == f.best.Plan {
			return 0
		}
		return 1
	}
	all := f.tried()
	slices.SortStableFunc(all, func(a, b Attempt) int { return cmp.Or(order(a, b), others(a)-others(b)) })
	return slices.CompactFunc(all, func(a, b Attempt) bool { return order(a, b) == 0 })
}

// tried lists all plans that were simulated.
func (f *finder) tried() (all []Attempt) {
	for _, c := range f.candidates {
		all = append(all, c.attempts...)
	}
	return all
}
