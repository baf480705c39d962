package improve

import (
	"math"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// asleep is a state of 1 W that takes some nanoseconds and nanojoules.
func asleep(name string, after, enter, enterJ, leave, leaveJ int) platform.SleepState {
	transition := func(ns, nJ int) platform.Transition {
		return platform.Transition{Takes: time.Duration(ns), Joules: float64(nJ) * 1e-9}
	}
	return platform.SleepState{Name: name, Watts: 1, After: time.Duration(after), Enter: transition(enter, enterJ), Leave: transition(leave, leaveJ)}
}

// turns is a step in which a GPU of some units, 10 W idle and 30 W busy each, runs task a for 100 ns and the core, 2 W idle
// and 4 W busy, then b for 200 ns, and the next step begins after b. With two units the second runs c for 100 ns
// beside b.
func turns(t *testing.T, hostWatts float64, units int, states ...platform.SleepState) (*schedule.Priced, *schedule.Plan) {
	t.Helper()
	p := testmachine.Shared(t, testmachine.CPU(1, 2, 4), testmachine.GPU("gpu", 10, 30))
	p.HostPower, p.Devices[1].Count, p.Devices[1].Sleeps = testmachine.Watts(hostWatts), units, states
	b := dag.NewBuilder("turns")
	buffer := func(name string, role dag.Role) dag.BufferID {
		return b.Buffer(dag.Buffer{Name: name, Shape: []int{1}, Type: dag.Float32, Role: role, ViewOf: dag.None})
	}
	task := func(name, device string, ns int64, reads, writes dag.BufferID) dag.TaskID {
		return b.Task(dag.Task{Name: name, Op: "op", Costs: []dag.Cost{{Key: device, Ns: ns}}, Accesses: []dag.Access{
			{Region: dag.Region{Buffer: reads}, Mode: dag.Read}, {Region: dag.Region{Buffer: writes}, Mode: dag.Write}}})
	}
	kept, passed := buffer("kept", dag.State), buffer("passed", dag.Activation)
	plan := &schedule.Plan{Order: make([][]dag.TaskID, 1+units)}
	plan.Order[1] = []dag.TaskID{task("a", "gpu", 100, kept, passed)}
	plan.Order[0] = []dag.TaskID{task("b", "cpu", 200, passed, kept)}
	if units == 2 {
		plan.Order[2] = []dag.TaskID{task("c", "gpu", 100, passed, buffer("out", dag.Activation))}
	}
	return price(t, b, p), plan
}

// Without sleep a step takes 300 ns, in which host, core and one GPU draw 5 + 2 + 10 W idle, and the tasks 20·100 and 2·200 nJ
// above that: 17·300 + 2400 = 7500 nJ. The GPU waits for 200 ns in each. Asleep for all of them but the way in it
// draws 9 W less, and the next step is as late as it takes to wake.
func TestSleep(t *testing.T) {
	deep := asleep("deep", 0, 10, 20, 5, 30)
	light := platform.SleepState{Name: "light", Watts: 5, Leave: platform.Transition{Takes: 1}}
	for name, c := range map[string]struct {
		states   []platform.SleepState
		alone    bool
		deadline time.Duration
		inTime   bool
		want     string // of a
		step     time.Duration
		joules   float64 // in nJ
	}{
		"it pays":                                   {states: []platform.SleepState{deep}, want: "deep", step: 305, joules: 7500 - (9*190 - 50) + 17*5},
		"a step alone needs no way":                 {states: []platform.SleepState{deep}, alone: true, deadline: 300, want: "deep", step: 300, joules: 7500 - (9*190 - 20)},
		"the gap is too short":                      {states: []platform.SleepState{asleep("deep", 0, 250, 0, 5, 30)}, step: 300, joules: 7500},
		"changes take more than it saves (1710 nJ)": {states: []platform.SleepState{asleep("deep", 0, 10, 1000, 5, 711)}, step: 300, joules: 7500},
		"the delay takes more (17·150 of 1660 nJ)":  {states: []platform.SleepState{asleep("deep", 0, 10, 20, 150, 30)}, step: 300, joules: 7500},
		"the delay breaks the deadline":             {states: []platform.SleepState{deep}, deadline: 304, step: 300, joules: 7500},
		"a lighter state keeps it":                  {states: []platform.SleepState{light, deep}, deadline: 304, want: "light", step: 301, joules: 7500 - 5*200 + 17},
		"only time counts":                          {states: []platform.SleepState{deep}, inTime: true, step: 300, joules: 7500},
		"it would sleep by itself after 100 ns":     {states: []platform.SleepState{asleep("deep", 100, 10, 20, 5, 30)}, want: "deep", step: 305, joules: 7500 - (9*190 - 50) + 17*5},
	} {
		priced, from := turns(t, 5, 1, c.states...)
		o := Options{Aim: problem.Aim{Objective: problem.Energy, Steady: !c.alone, Deadline: c.deadline}, Moves: 20}
		if c.inTime {
			o.Objective = problem.Time
		}
		r, err := Search(t.Context(), priced, from, o)
		if err != nil {
			t.Fatal(name, err)
		}
		var state string
		if r.Plan().Sleeps != nil {
			state = c.states[r.Plan().Sleeps[0]-1].Name
		}
		if state != c.want || r.Time != c.step || math.Abs(r.Joules*1e9-c.joules) > 1e-6 {
			t.Errorf("%s: a sleeps %q, %d ns, %.6f nJ; want %q, %d ns, %g nJ", name, state, r.Time, r.Joules*1e9, c.want, c.step, c.joules)
		}
	}
}

// Two units draw 20 + 2 + 2·10 = 42 W with host and core idle, and a step 42·300 + 2400 + 2000 = 17000 nJ. To wake takes 80 ns.
//
// After a, sleep saves 9·190 − 50 = 1660 nJ, and costs 42·80 since the next step waits for it. After c it holds up nobody:
// c begins 80 ns after the end of a and ends 20 ns before that of b, so that its unit waits for 120 ns until the next a
// ends, of which it sleeps 110: 9·110 − 50 = 940 nJ. Both together take 42·380 + 4400 − 2·1660 = 17040 nJ.
func TestSleepOfOneOfTwo(t *testing.T) {
	priced, from := turns(t, 20, 2, asleep("deep", 0, 10, 20, 80, 30))
	r := must.Get(Search(t.Context(), priced, from, Options{Aim: problem.Aim{Objective: problem.Energy, Steady: true}, Moves: 20}))(t)
	if want := []int32{0, 0, 1}; !slices.Equal(r.Plan().Sleeps, want) || r.Time != 300 || math.Abs(r.Joules*1e9-16060) > 1e-6 {
		t.Errorf("sleeps %v, %d ns, %.6f nJ; want %v, 300 ns, 16060 nJ", r.Plan().Sleeps, r.Time, r.Joules*1e9, want)
	}
}
