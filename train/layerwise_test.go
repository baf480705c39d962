package train

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/must"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule/policy"
)

// modelledSpace is the space of a network on a machine that ships.
func modelledSpace(t *testing.T, model, machine string, batch int) *Space {
	t.Helper()
	w := &Workload{Options: Options{Batch: batch, OtherMachine: true}, Model: must.Get(models.ByName(model))(t),
		Platform: must.Get(platform.Load("../platforms/" + machine + ".toml"))(t), Samples: Samples{Train: batch}}
	must.Do(t, w.Lower())
	return must.Get(w.Space(w.Platform, "", must.Get(w.Tiles())(t)...))(t)
}

// TestRanked: each set of devices is ranked once. A ranked choice has a lowering, and Estimate gives the best choice its value again.
func TestRanked(t *testing.T) {
	for _, machine := range []string{"emulated", "laptop"} {
		s := modelledSpace(t, "lenet5", machine, 7)
		aim := problem.Aim{Objective: problem.Energy, Steady: true}
		all := must.Get(s.Ranked(context.Background(), s.Devices, aim, 1))(t)
		if len(all) != len(s.Devices) {
			t.Errorf("%s: %d choices for %d sets", machine, len(all), len(s.Devices))
		}
		for _, r := range all {
			must.Get(s.Price(r.Choice))(t)
			if !slices.Contains(s.Devices, r.Devices) {
				t.Errorf("%s: %q is no set of the space", machine, r.Devices)
			}
		}
		if again, ok := s.Estimate(all[0].Choice, aim); !ok || again != all[0].Value {
			t.Errorf("%s: %v is worth %g, ranked with %g", machine, all[0].Choice, again, all[0].Value)
		}
	}
}

// TestEstimatesAgree: steps that HEFT plans take about the time and the joules that the model expects. On one memory few of the random
// tilings are more than a tenth off, as where many tasks of one rank may come in any order, and none is a third off.
func TestEstimatesAgree(t *testing.T) {
	tries := 20
	if testing.Short() {
		tries = 8
	}
	r := rand.New(rand.NewPCG(7, 11))
	for _, machine := range []string{"laptop", "manycore"} {
		s := modelledSpace(t, "lenet5", machine, 31)
		far := 0
		for range tries {
			c := space.Choice{Devices: s.Devices[r.IntN(len(s.Devices))], Tiles: s.Tiles[r.IntN(len(s.Tiles))]}
			for range r.IntN(5) {
				if group := must.Get(s.Neighbourhoods[0](c, s.Layers[r.IntN(len(s.Layers)-1)]))(t); len(group) > 0 {
					c = group[r.IntN(len(group))]
				}
			}
			e := must.Get((&plan.Evaluator{}).Policy(context.Background(), must.Get(s.Price(c))(t), policy.HEFT, true))(t)
			step := must.Get(e.Step(context.Background(), true, 6))(t)
			for objective, want := range map[problem.Objective]float64{problem.Time: step.Time.Seconds(), problem.Energy: step.Joules} {
				got, ok := s.Estimate(c, problem.Aim{Objective: objective, Steady: true})
				if off := math.Abs(math.Log(got / want)); !ok || off > 0.3 {
					t.Errorf("%s, %v: %g, want about %g by %s", machine, c, got, want, objective)
				} else if off > 0.1 {
					far++
				}
			}
		}
		if 5*far > 2*tries {
			t.Errorf("%s: %d of %d estimates are a tenth off", machine, far, 2*tries)
		}
	}
}
