package best

import (
	"math/rand/v2"
	"testing"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
)

// TestLagsStay: a plan whose tasks run steps behind others stays as it is, since local search has one period for all tasks. Without lags it is improved.
func TestLagsStay(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	for searched := 0; searched < 3; {
		priced := randomGraph(t, r, 6)
		f := newFinder(space.Of(priced, []string{""}), Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: 1000})
		must.Do(t, f.price(t.Context()))
		c := f.candidates[0]
		if must.Do(t, c.planByAll(t.Context(), f)); c.Plan == nil {
			continue
		}
		must.Do(t, f.planBatch(t.Context(), f.candidates, (*candidate).first))
		own, lagged := c.Plan, *c.Plan
		lagged.Lags = make([]int32, priced.Program.Graphs[0].NumTasks())
		c.Plan = &lagged
		improve := f.contender("").improve(f)
		if must.Do(t, improve(t.Context(), 0)); c.moves != 0 {
			t.Errorf("%d moves of a plan with lags", c.moves)
		}
		c.Plan = own
		if must.Do(t, improve(t.Context(), 0)); c.moves == 0 {
			t.Error("no moves of a plan without lags")
		}
		searched++
	}
}
