package plan_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/must"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/simulate"
)

// stateCase is a chain of tasks on a platform whose states are described here, with what must
// come out.
type stateCase struct {
	words    string
	platform string // [[device]]s and what follows; memory "ram" is there
	tasks    string // "a:gpu:10ms b:cpu:5ms": a chain, each on a device, at its own clock's time
	clocks   map[string]string
	sleeps   map[string]string
	makespan time.Duration
	joules   float64
	fails    string
}

const millis = time.Millisecond

func parsePlatform(t testing.TB, text string) *platform.Platform {
	t.Helper()
	return must.Get(platform.Parse([]byte(text), "test.toml"))(t)
}

// chainOf builds the tasks of a case: in order, each after the one before it, with its time on its
// device. Tasks in brackets follow nothing.
func chainOf(t testing.TB, p *platform.Platform, text string) (*dag.Graph, *schedule.Plan) {
	t.Helper()
	b := dag.NewBuilder("chain")
	plan := &schedule.Plan{Order: make([][]dag.TaskID, len(p.Workers))}
	for i, word := range strings.Fields(text) {
		free := strings.HasPrefix(word, "[")
		part := strings.Split(strings.Trim(word, "[]"), ":")
		takes := must.Get(time.ParseDuration(part[2]))(t)
		task := dag.Task{Name: part[0], Op: "op", Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: int64(takes)}}}
		if i > 0 && !free {
			task.After = []dag.TaskID{dag.TaskID(i - 1)}
		}
		b.Task(task)
		w, ok := p.WorkerByName(part[1])
		if !ok {
			t.Fatalf("no worker %q", part[1])
		}
		plan.Order[w] = append(plan.Order[w], dag.TaskID(i))
	}
	g := must.Get(b.Build())(t)
	return g, plan
}

// decideStates decides a case for some steps.
func decideStates(t testing.TB, c *stateCase) *schedule.Decision {
	t.Helper()
	p := parsePlatform(t, "name = \"test\"\n"+c.platform)
	g, plan := chainOf(t, p, c.tasks)
	for w, list := range plan.Order {
		device := &p.Devices[p.Workers[w].Device]
		for _, task := range list {
			if name, ok := c.clocks[g.Tasks[task].Name]; ok {
				clock, _ := device.ClockByName(name)
				plan.SetClock(g, task, clock)
			}
			if name, ok := c.sleeps[g.Tasks[task].Name]; ok {
				plan.SetSleep(g, task, 1+int32(slices.IndexFunc(device.Sleeps, func(s platform.SleepState) bool { return s.Name == name })))
			}
		}
	}
	priced := must.Get(schedule.Price(&dag.Program{Name: "chain", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	return must.Get(priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}}))(t)
}

const ram = "[[memory]]\nname = \"ram\"\n"

const twoClocks = ram + `[[device]]
name = "gpu"
kind = "cuda"
memory = "ram"
power = { idle = "2 W", busy = "10 W" }
clock_switch = { time = "3 ms", joules = "6 mJ" }
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "1 W", busy = "4 W" }
`

const sleeper = `
[[device]]
name = "gpu"
kind = "cuda"
memory = "ram"
power = { idle = "2 W", busy = "10 W" }
[[device.sleep]]
name = "deep"
power = "0.5 W"
after = "4 ms"
enter = { time = "1 ms", joules = "3 mJ" }
leave = { time = "2 ms", joules = "5 mJ" }
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
power = { idle = "0 W", busy = "0 W" }
`

// Two cores that share a clock; and the same with a clock each.
const twoCores = ram + `[[device]]
name = "cpu"
kind = "cpu"
count = 2
memory = "ram"
power = { idle = "1 W", busy = "5 W" }
clock_switch = { time = "2 ms" }
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "0.5 W", busy = "2 W" }
`

var stateCases = []stateCase{
	{words: "one clock: a of 10 ms and b of 10 ms at 10 W",
		platform: twoClocks, tasks: "a:gpu:10ms b:gpu:10ms", makespan: 20 * millis, joules: 0.2},
	// a: 10 ms at 10 W = 100 mJ. The change: 3 ms at the idle 2 W of the clock left = 6 mJ, and 6 mJ.
	// b: 20 ms at 4 W = 80 mJ.
	{words: "the second at half the clock: 10 + 3 + 20 ms, 100 + 12 + 80 mJ",
		platform: twoClocks, tasks: "a:gpu:10ms b:gpu:10ms", clocks: map[string]string{"b": "slow"}, makespan: 33 * millis, joules: 0.192},
	// The first at the slow one: change at once, 2·3 + 6 = 12 mJ; a 20 ms at 4 W = 80; change back,
	// 3 ms at 1 W + 6 = 9 mJ; b 100 mJ.
	{words: "the first at half the clock and back: 3 + 20 + 3 + 10 ms, 12 + 80 + 9 + 100 mJ",
		platform: twoClocks, tasks: "a:gpu:10ms b:gpu:10ms", clocks: map[string]string{"a": "slow"}, makespan: 36 * millis, joules: 0.201},
	// b asks for another clock at 0 and waits for a, which ends at 10; then 2 ms, then 20 ms.
	// To 10 ms: core 0 busy at 5 W, core 1 idle at 1 W: 60 mJ. To 12 ms: both idle, 4 mJ. To 32 ms:
	// core 1 busy at 2 W, core 0 idle at 0.5 W: 50 mJ.
	{words: "a shared clock: the second waits for the first to end",
		platform: twoCores, tasks: "a:cpu.0:10ms [b:cpu.1:10ms]", clocks: map[string]string{"b": "slow"}, makespan: 32 * millis, joules: 0.114},
	// Each core by itself: core 1 changes at 0 for 2 ms and runs to 22 ms. Core 0: 10 ms at 5 W and
	// 12 ms at 1 W: 62 mJ. Core 1: 2 ms at 1 W and 20 ms at 2 W: 42 mJ.
	{words: "a clock for each core: both run at once",
		platform: strings.Replace(twoCores, "clock_switch", "clock_domain = \"unit\"\nclock_switch", 1),
		tasks:    "a:cpu.0:10ms [b:cpu.1:10ms]", clocks: map[string]string{"b": "slow"}, makespan: 22 * millis, joules: 0.104},
	// gpu: a 10 ms at 10 W = 100 mJ; idle 4 ms at 2 W = 8; entering 1 ms at 2 W + 3 = 5; asleep from
	// 15 to 110 ms at 0.5 W = 47.5; leaving 2 ms at 2 W + 5 = 9; b 100. Sum 269.5 mJ; awake it would
	// be 100 + 200 + 100 = 400.
	{words: "a sleep that pays: 100 ms to wait",
		platform: ram + sleeper, tasks: "a:gpu:10ms w:cpu:100ms b:gpu:10ms", makespan: 122 * millis, joules: 0.2695},
	// a 100; idle 4 ms 8; entering 5 mJ until 15 ms, when b is ready; leaving 9 mJ until 17; b 100: 222 mJ
	// in 27 ms. Awake: 100 + 5·2 + 100 = 210 mJ in 25 ms.
	{words: "a sleep that does not pay: 5 ms to wait",
		platform: ram + sleeper, tasks: "a:gpu:10ms w:cpu:5ms b:gpu:10ms", makespan: 27 * millis, joules: 0.222},
	// An entry that has begun is completed: b is ready at 14.5 ms, the unit enters until 15 and leaves
	// until 17.
	{words: "what comes on the way into sleep waits for both ways",
		platform: ram + sleeper, tasks: "a:gpu:10ms w:cpu:4.5ms b:gpu:10ms", makespan: 27 * millis, joules: 0.222},
	{words: "4 ms are not more than 4 ms: no sleep, 100 + 8 + 100 mJ",
		platform: ram + sleeper, tasks: "a:gpu:10ms w:cpu:4ms b:gpu:10ms", makespan: 24 * millis, joules: 0.208},
	// By the plan it falls asleep at once: 1 ms 5 mJ, asleep 11 to 110: 49.5, leaving 9: 100+5+49.5+9+100.
	{words: "the plan lets it sleep right after a",
		platform: ram + strings.Replace(sleeper, "after = \"4 ms\"\n", "", 1), tasks: "a:gpu:10ms w:cpu:100ms b:gpu:10ms",
		sleeps: map[string]string{"a": "deep"}, makespan: 122 * millis, joules: 0.2635},
	// Asleep from 5 ms to the end: 8 + 5 + 95·0.5 = 60.5 mJ.
	{words: "idle to the end", platform: ram + sleeper, tasks: "w:cpu:100ms", makespan: 100 * millis, joules: 0.0605},
	{words: "not used, and so off: 0.1 W for 100 ms", platform: ram + strings.Replace(sleeper, `busy = "10 W"`, `busy = "10 W", off = "0.1 W"`, 1),
		tasks: "w:cpu:100ms", makespan: 100 * millis, joules: 0.01},
	// Host 3 W, two cores: one busy and one idle draw 3 + 5 + 1 = 9 W, two busy 13 W. With 12 W the
	// second core waits: 20 ms at 9 W.
	{words: "a cap that lets one of two cores run", platform: "host_power = \"3 W\"\npower_cap = \"12 W\"\n" + twoCores,
		tasks: "a:cpu.0:10ms [b:cpu.1:10ms]", makespan: 20 * millis, joules: 0.18},
	{words: "a cap that lets both run: 13 W for 10 ms", platform: "host_power = \"3 W\"\npower_cap = \"13 W\"\n" + twoCores,
		tasks: "a:cpu.0:10ms [b:cpu.1:10ms]", makespan: 10 * millis, joules: 0.13},
	{words: "a cap of the device alone: 6 W for one core busy, and the host apart", platform: "host_power = \"3 W\"\n" + strings.Replace(twoCores, "clock_switch", "power_cap = \"6 W\"\nclock_switch", 1),
		tasks: "a:cpu.0:10ms [b:cpu.1:10ms]", makespan: 20 * millis, joules: 0.18},
	// a at the slow clock: change until 3 ms, 2·3 + 6 = 12 mJ; 1 ms at 4 W to 4. On its way out of sleep
	// and the change it might have drawn up to 3 W more than idle until 13 ms, as the platform takes up
	// to 10 ms for the former. b and its own change need 13 W, 16 W with those: it waits until 13, 9 mJ
	// at 1 W; the change back 3·1 + 6 = 9 mJ; b 10 ms at 10 W.
	{words: "a cap that lets b run when the change before may be over: 3 + 1 + 9 + 3 + 10 ms", platform: strings.Replace(twoClocks, "clock_switch", "power_cap = \"14 W\"\nclock_switch", 1) +
		"[[device.sleep]]\nname = \"nap\"\npower = \"1 W\"\nleave = { time = \"10 ms\" }\n",
		tasks: "a:gpu:0.5ms b:gpu:10ms", clocks: map[string]string{"a": "slow"}, makespan: 26 * millis, joules: 0.134},
	{words: "a cap below what one task draws", platform: "host_power = \"3 W\"\npower_cap = \"8.5 W\"\n" + twoCores,
		tasks: "a:cpu.0:10ms", fails: `at 0s: task "a" on "cpu.0" draws more than a power_cap leaves even when nothing else runs; raise the cap, or plan another device or clock for it`},
}

func TestStates(t *testing.T) {
	for i := range stateCases {
		c := &stateCases[i]
		d := decideStates(t, c)
		s, err := simulate.Run(context.Background(), d, 0, 1, simulate.Options{})
		if c.fails != "" {
			if err == nil || !strings.HasSuffix(err.Error(), c.fails) {
				t.Errorf("%s: got %v, want %s", c.words, err, c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.words, err)
			continue
		}
		p := d.Problem(0, 1, false)
		if err := audit.Check(s, p); err != nil {
			t.Errorf("%s: %v", c.words, err)
		}
		report, err := energy.FromSchedule(s, p)
		if err == nil {
			err = report.CheckCaps()
		}
		if err != nil {
			t.Errorf("%s: %v", c.words, err)
			continue
		}
		if s.Makespan != c.makespan || math.Abs(report.TotalJoules-c.joules) > 1e-12 {
			t.Errorf("%s: %v and %.6g mJ, want %v and %.6g mJ", c.words, s.Makespan, 1000*report.TotalJoules, c.makespan, 1000*c.joules)
		}
	}
}

// Three steps of a at the own and b at half the clock: 10 and 20 ms, with a change before each but the
// first a: 10 + 3 + 20 ms, then twice 3 + 10 + 3 + 20. So 5 changes in 3 steps, 5/3 and 5 ms a step,
// and busy joules of 100 + 80 mJ in each.
func TestStatesPerStep(t *testing.T) {
	d := decideStates(t, &stateCase{platform: twoClocks, tasks: "a:gpu:10ms b:gpu:10ms", clocks: map[string]string{"b": "slow"}})
	s := must.Get(simulate.Run(context.Background(), d, 0, 3, simulate.Options{}))(t)
	p := d.Problem(0, 3, false)
	report := must.Get(energy.FromSchedule(s, p))(t)
	got := plan.StatesOf(p, s, report)
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-12 }
	if len(got.Clocks) != 2 || got.Clocks[0].Clock != "nominal" || got.Clocks[1].Clock != "slow" || got.Clocks[1].Tasks != 1 ||
		!near(got.Clocks[1].BusyS, 0.02) || !near(got.Clocks[0].Share, 1./3) {
		t.Errorf("clocks %+v, want a at nominal in a third of the time, and b at slow", got.Clocks)
	}
	if len(got.Switches) != 1 || !near(got.Switches[0].Count, 5./3) || !near(got.Switches[0].S, 0.005) {
		t.Errorf("changes %+v, want 5/3 in 5 ms", got.Switches)
	}
	if s.Makespan != 105*millis || s.Period != 36*millis || !near(got.Joules.Busy, 0.18) {
		t.Errorf("%v with a step of %v, %g J busy a step; want 105 and 36 ms, and 0.18 J", s.Makespan, s.Period, got.Joules.Busy)
	}
	plain := decideStates(t, &stateCase{platform: twoClocks, tasks: "a:gpu:10ms b:gpu:10ms"})
	s = must.Get(simulate.Run(context.Background(), plain, 0, 1, simulate.Options{}))(t)
	if p = plain.Problem(0, 1, false); plan.StatesOf(p, s, report) != nil {
		t.Error("there are states where nothing changes")
	}
}
