package train

import (
	"slices"
	"testing"

	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/problem"
	"dahl/platform"
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
		all := must.Get(s.Ranked(aim))(t)
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
