package best

import (
	"math/rand/v2"
	"testing"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// TestBrief: a brief search of a step that runs alone is no slower than HEFT on all devices and on each alone, and no
// faster than the least of all plans.
func TestBrief(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 3))
	heft := must.Get(policy.ByName("heft"))(t)
	for compared := 0; compared < 60; compared++ {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		sets := space.Sets(in.priced.Platform, in.priced.Program.Graphs[0])
		o := Options{Aim: problem.Aim{Objective: problem.Time}, Nodes: 5000, Brief: true}
		found := must.Get(Find(t.Context(), space.Of(in.priced, sets), o))(t)
		if float64(found.Makespan) < in.least[problem.Time]*(1-tolerance) {
			t.Errorf("graph %d: %v, and no plan takes less than %v", compared, found.Makespan, in.least[problem.Time])
		}
		for _, set := range []string{"", "d0", "d1"} {
			priced := in.priced
			if set != "" {
				priced = must.Get(in.priced.On(set))(t)
			}
			d, err := priced.Decide(schedule.Choice{Policy: heft})
			if err != nil {
				continue // what a task needs is in another memory
			}
			ran := must.Get(simulate.Run(t.Context(), d, 0, 1, simulate.Options{}))(t)
			if found.Makespan > ran.Makespan {
				t.Errorf("graph %d: %v on %q, and HEFT takes %v on %q", compared, found.Makespan, found.Devices, ran.Makespan, set)
			}
		}
	}
}
