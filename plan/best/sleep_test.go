package best

import (
	"slices"
	"testing"

	"dahl/must"
	"dahl/plan/problem"
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
