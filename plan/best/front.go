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

// simulateFront simulates the plans of the front for as many steps as results are told in. One of them may then be the best.
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
		front := slices.DeleteFunc(Front(f.simulations()), func(t Attempt) bool { return t.long })
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
			c := of[t.Plan]
			c.simulated(t)
			if better(&t, &c.Attempt) {
				c.Attempt = t
			}
			f.offer(c)
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
	all := f.simulations()
	slices.SortStableFunc(all, func(a, b Attempt) int { return cmp.Or(order(a, b), others(a)-others(b)) })
	return slices.CompactFunc(all, func(a, b Attempt) bool { return order(a, b) == 0 })
}

// simulations lists all plans that were simulated.
func (f *finder) simulations() (all []Attempt) {
	for _, c := range f.candidates {
		all = append(all, c.attempts...)
	}
	return all
}
