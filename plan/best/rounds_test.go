package best

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/must"
	"dahl/plan"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/schedule/policy"
)

// searched is the best choice that a search comes to before it proves anything.
func searched(t *testing.T, s *space.Space, o Options) (*candidate, error) {
	t.Helper()
	f := newFinder(s, o)
	for _, pass := range f.passes()[:3] {
		if err := pass.run(t.Context()); err != nil {
			return nil, err
		}
	}
	return f.best, nil
}

// TestMoreNodesAreNeverWorse: the search with fewer nodes is the beginning of that with more.
func TestMoreNodesAreNeverWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 83))
	better, graphs := 0, 20
	if testing.Short() {
		graphs = 2
	}
	for range graphs {
		priced := randomGraphOf(t, r, 3+r.IntN(20), randomVariants(r))
		s := space.Of(priced, space.Sets(priced.Platform, priced.Program.Graphs[0]))
		for _, o := range []problem.Objective{problem.Time, problem.Energy, problem.EDP} {
			for _, steady := range []bool{false, true} {
				var before *candidate
				for _, nodes := range []int{100, 700, 900, 2800} {
					found := must.Get(searched(t, s, Options{Aim: problem.Aim{Objective: o, Steady: steady}, Nodes: nodes}))(t)
					if before != nil && found.Value > before.Value*(1+tolerance) {
						t.Errorf("%s, steady %v: %g with %d nodes, and %g with fewer", o, steady, found.Value, nodes, before.Value)
					}
					if before != nil && found.Value < before.Value {
						better++
					}
					before = found
				}
			}
		}
	}
	if better < graphs {
		t.Errorf("%d searches were better with more nodes: the test tests little", better)
	}
}

// TestNeverAbovePolicies: no policy has a better plan on all devices than the search.
func TestNeverAbovePolicies(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	graphs := 60
	if testing.Short() {
		graphs = 15
	}
	for range graphs {
		priced := randomGraph(t, r, 3+r.IntN(60))
		s := space.Of(priced, space.Sets(priced.Platform, priced.Program.Graphs[0]))
		for _, o := range []problem.Objective{problem.Time, problem.Energy} {
			for _, steady := range []bool{false, true} {
				found := must.Get(Find(t.Context(), s, Options{Aim: problem.Aim{Objective: o, Steady: steady}, Nodes: 1}))(t)
				for _, policy := range policy.All() {
					e, err := (&plan.Evaluator{}).Policy(t.Context(), priced, policy, steady)
					if e == nil || err != nil {
						continue
					}
					step, err := e.Step(t.Context(), steady, longRun)
					if value := o.Of(step.Time, step.Joules); err == nil && found.Value > value*(1+tolerance) {
						t.Errorf("%s, steady %v: %g with %s by %s, and %g by %s", o, steady, found.Value, found.Choice, found.Plan.Policy, value, policy.Doc().Name)
					}
				}
			}
		}
	}
}

// TestMoreDevicesAreNoWorse: a machine has no plan more than 1 % above that of a part of it, with equal nodes.
func TestMoreDevicesAreNoWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 7))
	graphs := 16
	if testing.Short() {
		graphs = 10
	}
	for range graphs {
		priced := randomGraph(t, r, 3+r.IntN(5))
		sets := space.Sets(priced.Platform, priced.Program.Graphs[0])
		for _, o := range []problem.Objective{problem.Time, problem.Energy, problem.EDP} {
			for _, steady := range []bool{false, true} {
				find := func(sets []string) (*candidate, error) {
					return searched(t, space.Of(priced, sets), Options{Aim: problem.Aim{Objective: o, Steady: steady}, Nodes: 20_000})
				}
				all := must.Get(find(sets))(t)
				for range 3 {
					some := slices.DeleteFunc(slices.Clone(sets), func(string) bool { return r.IntN(2) == 0 })
					if len(some) == 0 {
						continue
					}
					if part, err := find(some); err == nil && all.Value > 1.01*part.Value {
						t.Errorf("%s, steady %v: %g with all sets, %g with %q", o, steady, all.Value, part.Value, some)
					}
				}
			}
		}
	}
}
