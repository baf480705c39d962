package best

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// dozy is a device whose unit falls asleep by a plan only, in no time, and one that does so by itself after 600 ms.
const dozy = `[[device]]
name = "core"
kind = "cpu"
memory = "ram"
power = { idle = "2 W", busy = "10 W" }
[[device.sleep]]
name = "nap"
power = "1 W"
[[device]]
name = "gpu"
kind = "emulated"
memory = "ram"
power = { idle = "20 W", busy = "50 W" }
[[device.sleep]]
name = "deep"
power = "3 W"
after = "600 ms"
enter = { time = "100 ms", joules = "1 J" }
`

// TestSleepsOfFewTasks: a task takes 1 s on the core or 500 ms on the GPU, and the host draws 4 W.
//
// On the core alone, with the GPU left out and asleep: (4 + 10 + 3)·1 = 17 J. That is a set of its own: on both devices, the
// GPU waits for 600 ms and has 300 ms left after the way in: 14 + 20·0.7 + 1 + 3·0.3 = 29.9 J. On the GPU,
// with the core idle: (4 + 50 + 2)·0.5 = 28 J.
func TestSleepsOfFewTasks(t *testing.T) {
	o := Options{Aim: problem.Aim{Objective: problem.Energy}, Nodes: 1000}
	found := search(t, dozy, 1, `{"core": 1000000000, "gpu": 500000000}`, o)
	if found.Devices != "core" || !near9(found.Value, 17) || found.Bound > 17 {
		t.Errorf("%s: %g J, bound %g; want core, 17 J", found.Devices, found.Value, found.Bound)
	}
}

// TestSleepsAfterBranchAndBound: one task takes 1 s on the core and nothing else can run it, and another 400 ms on the GPU.
//
// Side by side they take (4 + 10 + 20)·1 + 30·0.4 = 46 J, of which the GPU, idle for its last 600 ms, saves 17·0.5 − 1 = 7.5 J
// when it falls asleep at once: 38.5 J. No plan has less than with the GPU at 3 W all the time that it does nothing.
func TestSleepsAfterBranchAndBound(t *testing.T) {
	o := Options{Aim: problem.Aim{Objective: problem.Energy}, Nodes: 1000}
	r := searchGraph(t, dozy, `{"name": "long", "ns": {"core": 1000000000}}, {"name": "short", "ns": {"gpu": 400000000}}`, o)
	if !slices.Equal(r.Plan.Sleeps, []int32{0, 1}) || !near9(r.Value, 38.5) || r.Bound > 38.5 || r.Proven {
		t.Errorf("sleeps %v: %g J, bound %g, proven %v; want 38.5 J", r.Plan.Sleeps, r.Value, r.Bound, r.Proven)
	}
	e := must.Get(r.Explain(t.Context(), 1))(t)
	if c := &e.Chosen; !slices.Equal(c.Use[1].Sleeps, []Sleep{{"deep", 0.5, 1}}) {
		t.Errorf("sleeps %+v; want deep for half of the time, after one task", c.Use[1].Sleeps)
	}
}

// TestBoundsHoldForSleep: on random graphs whose devices may sleep no plan that is found has less than its bound, whether the step
// runs alone or is a steady one, and some plans let units sleep.
func TestBoundsHoldForSleep(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	asleep, graphs := 0, 12
	if testing.Short() {
		graphs = 3
	}
	for range graphs {
		random := randomGraph(t, r, 3+r.IntN(5))
		p := random.Platform
		for d := range p.Devices {
			p.Devices[d].Sleeps = []platform.SleepState{{Name: "nap", Watts: 0.5, After: time.Duration(r.IntN(2)) * 20, Leave: platform.Transition{Takes: time.Duration(r.IntN(3))}}, {Name: "deep", Enter: platform.Transition{Takes: 3, Joules: 2e-9}}}
		}
		priced := must.Get(schedule.Price(random.Program, p, schedule.Unbound))(t)
		for _, objective := range []problem.Objective{problem.Energy, problem.EDP, problem.Time} {
			for _, steady := range []bool{false, true} {
				found := must.Get(Find(t.Context(), space.Of(priced, space.Sets(p, priced.Program.Graphs[0])), Options{Aim: problem.Aim{Objective: objective, Steady: steady}, Nodes: 3000}))(t)
				if found.Bound > found.Value*(1+rounding) {
					t.Errorf("%s, steady %v: bound %g above %g", objective, steady, found.Bound, found.Value)
				}
				if len(found.Plan.Sleeps) > 0 {
					asleep++
				}
				if objective == problem.Time && len(found.Plan.Sleeps) > 0 {
					t.Errorf("for time units sleep: %v", found.Plan.Sleeps)
				}
			}
		}
	}
	if asleep < graphs {
		t.Errorf("units sleep in %d plans", asleep)
	}
	t.Logf("units sleep in %d plans", asleep)
}
