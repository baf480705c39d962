package best

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// TestVariantsAfterBranchAndBound: on a core of 2 W idle and a host of 4 W a call takes 1 s and 10 J, or 2 s and 2 J.
//
// By the first, which is that of the price, the step has (4 + 2)·1 + 10 = 16 J, and by the other (4 + 2)·2 + 2 = 14 J. A bound takes
// the least of each, (4 + 2)·1 + 2 = 8 J.
func TestVariantsAfterBranchAndBound(t *testing.T) {
	const core = `[[device]]
name = "core"
kind = "cpu"
memory = "ram"
power = { idle = "2 W", busy = "10 W" }
`
	o := Options{Aim: problem.Aim{Objective: problem.Energy}, Nodes: 1000}
	r := searchGraph(t, core, `{"name": "a", "op": "op", "ns": {"core/fast": 1000000000, "core/frugal": 2000000000}, "joules": {"core/fast": 10, "core/frugal": 2}}`, o)
	if !near9(r.Value, 14) || r.Bound > 8*(1+rounding) || r.Proven {
		t.Errorf("variants %v: %g J, bound %g, proven %v; want 14 J, and a bound of 8 J", r.Plan.Variants, r.Value, r.Bound, r.Proven)
	}
	e := must.Get(r.Explain(t.Context(), 1))(t)
	if is, want := e.Chosen.Use[0].Variants, (Variant{"op uint8 ", "op", "frugal", "fast", 1}); !slices.Equal(is, []Variant{want}) {
		t.Errorf("variants %+v, want %+v", is, want)
	}
}

// randomVariants gives tasks of two calls two variants on each of two devices, at one clock or both.
func randomVariants(r *rand.Rand) func(i int) dag.Task {
	return func(i int) dag.Task {
		task := dag.Task{Op: "op", Shape: fmt.Sprint(i % 2)}
		for _, key := range []string{"d0/x", "d0/y", "d0/y@slow", "d1/x", "d1/x@slow", "d1/y"} {
			c := dag.Cost{Key: key, Ns: int64(1 + r.IntN(40))}
			if key[3] == 'y' { // mostly slower, and with fewer joules
				c.Ns, c.Joules = c.Ns+10, float64(1+r.IntN(100))*1e-9
			} else if r.IntN(2) == 0 {
				c.Joules = float64(100+r.IntN(200)) * 1e-9
			}
			task.Costs = append(task.Costs, c)
		}
		return task
	}
}

// fixed are random variants for both calls on both devices.
func fixed(r *rand.Rand) schedule.Variants {
	all := schedule.Variants{}
	for _, device := range []string{"d0", "d1"} {
		all[device] = map[string]string{}
		for shape := range 2 {
			all[device][schedule.CallName(&dag.Task{Op: "op", Shape: fmt.Sprint(shape)})] = []string{"x", "y"}[r.IntN(2)]
		}
	}
	return all
}

// TestBoundsHoldForVariantsAndSleep: on random graphs, in half of which devices may sleep, no plan that is found, and no random plan
// with random variants, has less than the bound, whether the step runs alone or is a steady one, nor has a plan that is found with
// other variants. Some of these name variants, and few are better by others. Some let units sleep, but not for time.
func TestBoundsHoldForVariantsAndSleep(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 6))
	varied, asleep, better, graphs := 0, 0, 0, 16
	if testing.Short() {
		graphs = 4
	}
	for n := range graphs {
		priced := randomGraphOf(t, r, 3+r.IntN(5), randomVariants(r))
		if p := priced.Platform; n%2 == 1 {
			for d := range p.Devices {
				p.Devices[d].Sleeps = []platform.SleepState{{Name: "nap", Watts: 0.5, After: time.Duration(r.IntN(2)) * 20, Leave: platform.Transition{Takes: time.Duration(r.IntN(3))}}, {Name: "deep", Enter: platform.Transition{Takes: 3, Joules: 2e-9}}}
			}
			priced = must.Get(schedule.Price(priced.Program, p, schedule.Unbound))(t)
		}
		for _, objective := range []problem.Objective{problem.Energy, problem.EDP, problem.Time} {
			for _, steady := range []bool{false, true} {
				s := space.Of(priced, space.Sets(priced.Platform, priced.Program.Graphs[0]))
				found := must.Get(Find(t.Context(), s, Options{Aim: problem.Aim{Objective: objective, Steady: steady}, Nodes: 3000}))(t)
				if found.Bound > found.Value*(1+rounding) {
					t.Errorf("%s, steady %v: bound %g above %g", objective, steady, found.Bound, found.Value)
				}
				if found.Certificate != nil {
					if err := found.Certificate.Check(s); err != nil {
						t.Error(err)
					}
				}
				if len(found.Plan.Variants) > 0 {
					varied++
				}
				if len(found.Plan.Sleeps) > 0 {
					asleep++
				}
				if objective == problem.Time && len(found.Plan.Sleeps) > 0 {
					t.Errorf("for time units sleep: %v", found.Plan.Sleeps)
				}
				on := must.Get(s.Price(found.Choice))(t)
				for range 10 {
					plan, _, _ := randomPlan(r, priced)
					own := *found.Plan
					plan.Variants, own.Variants = fixed(r), fixed(r)
					for _, value := range []float64{valueOf(t, priced, plan, objective, steady), valueOf(t, on, &own, objective, steady)} {
						if value < found.Bound*(1-rounding) {
							t.Errorf("%s, steady %v: a plan with other variants has %g, below the bound %g", objective, steady, value, found.Bound)
						}
						if value < found.Value*(1-rounding) {
							better++
						}
					}
				}
			}
		}
	}
	if varied < graphs || asleep < graphs/2 || better > 20 {
		t.Errorf("%d plans name variants, %d let units sleep, and %d random ones are better", varied, asleep, better)
	}
	t.Logf("%d plans name variants, %d let units sleep, and %d random ones are better", varied, asleep, better)
}

func valueOf(t *testing.T, priced *schedule.Priced, made *schedule.Plan, o problem.Objective, steady bool) float64 {
	t.Helper()
	e := must.Get(plan.Evaluate(priced, schedule.Choice{Plans: []*schedule.Plan{made}}))(t)
	step := must.Get(e.Step(t.Context(), steady, longRun))(t)
	return o.Of(step.Time, step.Joules)
}
