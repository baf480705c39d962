package exact

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/schedule"
)

// TestDominance: with bounds that say little, so that dominance has to do the work, the search finds
// what one finds that only knows equal parts of plans again, and bounds. Both begin without a plan.
func TestDominance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	compared := 0
	for n := range 150 {
		p := machine(t, r, false)
		g := network(t, r, p, 4+n%4, false)
		if n%3 == 0 {
			addTwin(t, r, p, g)
		}
		priced, err := schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
		if err != nil {
			continue // a task is placed where it cannot run
		}
		for _, objective := range []problem.Objective{problem.Time, problem.Energy, problem.EDP} {
			find := func(weak bool, memory func(*model) seen) (float64, bool) {
				m := must.Get(newModel(priced, Options{Objective: objective}))(t)
				if weak {
					m.weaken()
				}
				s := &search{model: m, ctx: t.Context(), priced: priced, left: 20_000, best: math.Inf(1), inModel: true}
				return s.part(memory(m)), s.left > 0 && s.result.Plan != nil
			}
			want, ok := find(false, func(m *model) seen { return newPrefixes(m) })
			got, okToo := find(true, func(m *model) seen { return newDominance(m) })
			if !ok || !okToo {
				continue // too many nodes
			}
			compared++
			if math.Abs(got-want) > want*1e-9 {
				t.Errorf("graph %d of %d tasks, %s: %.12g with dominance, %.12g without", n, len(g.Tasks), objective, got, want)
			}
		}
	}
	if compared < 300 {
		t.Errorf("%d of 450 searches were compared: the test tests little", compared)
	}
}

// weaken leaves of the bounds what the part of a plan says itself.
func (m *model) weaken() {
	for t := range m.tails {
		clear(m.tails[t])
	}
	m.timeAreas = nil
	m.energyArea = []area{{weights: make([]float64, len(m.devices)), least: make([]float64, len(m.tasks))}}
}
