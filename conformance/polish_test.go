package conformance

import (
	"testing"

	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/train"
)

// TestPolish: the default plan of a network, which local search improves, is the plan of policies or at least 1 % shorter, and where it is the plan of policies
// no task has moved. Of these machines and networks some are shorter. A search of a graph without layers has no local search.
func TestPolish(t *testing.T) {
	shorter := 0
	for _, of := range []struct{ machine, model string }{{"server", "dahl-cnn"}, {"nvlink", "digits-cnn"}, {"emulated", "digits-cnn"}, {"laptop", "mlp"}} {
		p := must.Get(platform.Load("../platforms/" + of.machine + ".toml"))(t)
		w := &train.Workload{Model: must.Get(models.ByName(of.model))(t), Platform: p, Options: train.Options{Batch: 32, OtherMachine: true}}
		must.Do(t, w.Lower())
		s := must.Get(w.Space(p, "", tiling.Of(tiling.Base{Kind: tiling.Default})))(t).Space
		o := best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: 4000, Brief: true}
		polished := must.Get(best.Find(t.Context(), &s, o))(t)
		s.Shares = nil
		plain := must.Get(best.Find(t.Context(), &s, o))(t)
		switch part := polished.Value / plain.Value; {
		case part == 1 && polished.Moves > 0 && plain.Moves == 0:
		case part <= 0.99:
			shorter++
		default:
			t.Errorf("%s on %s: %g of the plan of policies, after %d moves and %d", of.model, of.machine, part, polished.Moves, plain.Moves)
		}
	}
	if shorter == 0 {
		t.Error("no plan is shorter")
	}
}
