package best

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/schedule"
)

// TestInherit: a plan for d1 alone is one for the whole machine, where the same workers run the same tasks. It is
// taken where it is better than the one that is there, and only there. A plan for a worker that d1 lacks is none for it, nor is one of another graph.
func TestInherit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	for taken := [2]int{}; taken[0] < 3 || taken[1] < 3; {
		priced := randomGraph(t, r, 6)
		f := newFinder(space.Of(priced, []string{"d1", ""}), Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}})
		must.Do(t, f.price(t.Context()))
		part, all := f.candidates[0], f.candidates[1]
		for _, c := range f.candidates {
			must.Do(t, c.planByAll(t.Context(), f))
			f.best = c
		}
		if part.Plan == nil || all.Plan == nil {
			continue
		}
		own := *part.Plan
		before := all.Value
		if plan := f.inherited(t.Context(), all); plan != all.Plan {
			must.Do(t, all.take(t.Context(), f, plan, part.Policy))
		}
		k := 0
		if part.Value < before {
			k = 1
			for w, tasks := range all.Plan.Order {
				at := part.worker(all.priced.Platform.Workers[w].Name)
				if all.Policy == part.Policy && (at < 0 && len(tasks) > 0 || at >= 0 && !slices.Equal(tasks, own.Order[at])) {
					t.Errorf("worker %d has %v, and on d1 alone %v", w, tasks, own.Order)
				}
			}
		}
		if all.Value > min(before, part.Value) {
			t.Errorf("value %g, with %g on d1 and %g before", all.Value, part.Value, before)
		}
		taken[k]++
		used := *all
		used.Plan = &schedule.Plan{Order: [][]dag.TaskID{{0}}}
		first := all.priced.Platform.Workers[0].Name
		if there := part.worker(first) >= 0; (used.planOn(part) != nil) != there {
			t.Errorf("a plan for %s on d1 alone, which has such a worker: %v", first, there)
		}
		if used.graph = "another"; used.planOn(all) != nil {
			t.Error("a plan for another graph was taken")
		}
	}
}
