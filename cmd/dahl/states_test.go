package main

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/energy"
	"dahl/must"
	"dahl/plan"
)

// statedNode has a GPU with two clocks that sleeps, a device that nothing uses, and two caps.
const statedNode = `host_power = "3 W"
power_cap = "20 W"
[[memory]]
name = "ram"
[[device]]
name = "gpu"
kind = "cuda"
memory = "ram"
power = { idle = "2 W", busy = "10 W" }
power_cap = "16 W"
clock_switch = { time = "3 ms", joules = "6 mJ" }
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "1 W", busy = "4 W" }
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
[[device]]
name = "spare"
kind = "cuda"
memory = "ram"
power = { idle = "1 W", busy = "9 W", off = "0.1 W" }
`

// A chain: a on the GPU, w for 100 ms on the core, b on the GPU at half its clock.
const (
	statedGraph = `{"format": "dahl-graph 1", "tasks": [{"name": "a", "op": "f", "ns": {"gpu": 10000000}},
 {"name": "w", "op": "f", "after": ["a"], "ns": {"cpu": 100000000}}, {"name": "b", "op": "f", "after": ["w"], "ns": {"gpu": 10000000}}]}`
	statedPlan = `{"format": "dahl-plan 1", "devices": {"gpu": ["a", "b"], "cpu": ["w"]}, "clocks": {"b": "slow"}, "sleeps": {"a": "deep"}}`
)

// a: 0 to 10 ms at 10 W, 100 mJ. By the plan the GPU falls asleep at once: until 11 ms at 2 W, 2 mJ
// idle and 3 mJ; asleep until w ends at 110: 99 ms at 0.5 W, 49.5 mJ; waking until 112: 4 and 5 mJ;
// the change of the clock until 115 at the 2 W of the clock before: 6 and 6 mJ; b: 20 ms at 4 W,
// 80 mJ, to 135. So the GPU has 180 mJ busy, 12 idle, 49.5 asleep, 14 of changes. The spare device is
// off, 13.5 mJ at 0.1 W, and the host has 405 mJ at 3 W: 674 in all. The most that the GPU draws is
// 10 W, and the machine 3 and 0.1 W more. The GPU waits 100 ms for w and then 5 for its changes; the
// critical path has 130 ms of tasks and these 5.
func TestSimulatedStates(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", statedNode)
	writeTestFile(t, "graph.json", statedGraph)
	writeTestFile(t, "plan.json", statedPlan)
	const work = " --platform node.toml --graph graph.json --plan plan.json --out "
	s := decoded[record.Summary](t, mustRun(t, strings.Fields("simulate"+work+"s --json")...))
	if s.MakespanS != 0.135 || !about(s.EnergyJ.Total, 0.674) || s.States == nil {
		t.Fatalf("%g s, %g J, states %+v; want 0.135 s and 0.674 J", s.MakespanS, s.EnergyJ.Total, s.States)
	}
	j := s.States.Joules
	for i, got := range []float64{j.Idle, j.Busy, j.Transfer, j.Host, j.Sleep, j.Switching} {
		if want := []float64{0.012, 0.18, 0, 0.405, 0.063, 0.014}[i]; !about(got, want) {
			t.Errorf("joules %+v: part %d is %g, want %g", j, i, got, want)
		}
	}
	w := s.Waits
	if !about(w.PerStepS["change of state"], 0.005) || !about(w.AsleepS, 0.099) || !about(w.Path.ChangeS, 0.005) || !about(w.Path.TasksS, 0.13) {
		t.Errorf("waits %+v; want 5 ms for changes, 99 asleep, a path of 130 ms in tasks and 5 in changes", w)
	}
	for command, lines := range map[string][]string{
		"simulate": {
			"clocks    gpu per step: tasks 1 at nominal (33.3 % of the busy time), 1 at slow (66.7 %); changes 1 (3 ms)\n",
			"asleep    per step: gpu 99 ms in deep (1×)\n",
			"causes    per step: idle 12 mJ, busy 180 mJ, transfers 0 uJ, host 405 mJ, asleep or off 63 mJ, changes 14 mJ\n",
			"cap       the machine: 20 W, at most 13.1 W reached\n", "cap       gpu: 16 W, at most 10 W reached\n", "off       spare\n",
		},
		"plan": {"2 f; 1 at clock slow, 1 then asleep in deep\n", "1 f\n", "asleep    per step: gpu 99 ms in deep (1×)\n"},
	} {
		out := mustRun(t, strings.Fields(command+work+command)...)
		for _, line := range lines {
			if !strings.Contains(out, line) {
				t.Errorf("%s: %q is not in\n%s", command, line, out)
			}
		}
		wantVerified(t, command)
		wantRepeated(t, command)
	}
	if out := mustRun(t, strings.Fields("simulate"+work+"s --verbose")...); !strings.Contains(out, " 5 ms for a change of state, ") ||
		!strings.Contains(out, "; 99 ms of it asleep\n") || !strings.Contains(out, " in copies, 5 ms in changes of state, ") {
		t.Errorf("simulate --verbose:\n%s", out)
	}
	testStatesInFiles(t)
	for file, change := range map[string][2]string{
		"schedule.json": {`"kind":"wake"`, `"kind":"sleep"`}, "energy.json": {`"greatest_watts": 10`, `"greatest_watts": 9`},
	} {
		data, err := os.ReadFile("s/" + file)
		if err != nil || strings.Count(string(data), change[0]) != 1 {
			t.Fatalf("%s has not one %s: %v", file, change[0], err)
		}
		writeTestFile(t, "s/"+file, strings.Replace(string(data), change[0], change[1], 1))
		if r := wantEnd(t, cli.ExitFailed, "verify s"); !regexp.MustCompile("(?m)^" + file + " +[^o]").MatchString(r.stdout) {
			t.Errorf("%s with %s:\n%s", file, change[1], r.stdout)
		}
		writeTestFile(t, "s/"+file, string(data))
	}
}

// testStatesInFiles looks for the states of the run s in its pictures and traces.
func testStatesInFiles(t *testing.T) {
	mustRun(t, "trace", "s")
	mustRun(t, "trace", "s", "--format", "paje")
	mustRun(t, "report", "s")
	for file, texts := range map[string][]string{
		"gantt.svg":  {">b @slow<", ">changes its clock<", ">falls asleep<", ">wakes up<", ">asleep<", ">at another clock than the first<"},
		"power.svg":  {">of all 20 W<", ">of gpu 16 W<"},
		"trace.json": {`"name":"asleep: deep"`, `"name":"changes its clock: slow"`, `"clock":"slow"`, `"name":"clock gpu"`},
		"trace.paje": {`"falls asleep"`, `"deep" 0 ""`, `"b" 0 "slow"`, `"Relative speed"`},
	} {
		data := must.Get(os.ReadFile("s/" + file))(t)
		for _, text := range texts {
			if !strings.Contains(string(data), text) {
				t.Errorf("%q is not in %s", text, file)
			}
		}
	}
}

func about(x, y float64) bool { return math.Abs(x-y) < 1e-12 }

// An emulated GPU obeys a plan with clocks and sleep: what was executed is sound and repeats, its
// weights are those of the plan without them, and both worlds say at which clocks.
func TestExecuteStates(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	writeTestFile(t, "node.toml", strings.Replace(strings.ReplaceAll(clockedNode, "10 GF/s", "40 MF/s"), "[[device.clock]]", `power_cap = "16 W"
clock_switch = { time = "200 us", joules = "1 mJ" }
[[device.sleep]]
name = "nap"
power = "0.5 W"
leave = { time = "100 us" }
[[device.clock]]`, 1))
	const work = " --platform node.toml --devices g0 --model tiny.toml --data digits --limit 64 --batch 16"
	mustRun(t, strings.Fields("plan"+work+" --out p")...)
	var decided map[string]any
	data, err := os.ReadFile("p/plan.json")
	if err == nil {
		err = json.Unmarshal(data, &decided)
	}
	if err != nil {
		t.Fatal(err)
	}
	tasks := decided["devices"].(map[string]any)["g0"].([]any)
	decided["clocks"] = map[string]any{tasks[0].(string): "slow"}
	decided["sleeps"] = map[string]any{tasks[1].(string): "nap"}
	data = must.Get(json.Marshal(decided))(t)
	writeTestFile(t, "stated.json", string(data))
	var plain, stated record.Summary
	decodeObject(t, mustRun(t, strings.Fields("execute"+work+" --plan p/plan.json --out plain --json")...), &plain)
	decodeObject(t, mustRun(t, strings.Fields("execute"+work+" --plan stated.json --out e --json")...), &stated)
	if plain.Trained.WeightsSHA256 != stated.Trained.WeightsSHA256 {
		t.Error("the weights depend on clocks and sleep")
	}
	if s := stated.States; s == nil || len(s.Clocks) != 2 || s.Clocks[1].Tasks != 1 || len(s.Sleeps) != 1 || s.Joules.Sleep <= 0 || s.Joules.Switching <= 0 {
		t.Errorf("states %+v, want one task at slow, naps, and joules of both", s)
	}
	wantVerified(t, "e")
	wantRepeated(t, "e")
	c := decoded[plan.Comparison](t, mustRun(t, "compare", "e", "--json"))
	for _, s := range []*plan.States{c.PredictedStates, c.MeasuredStates} {
		if s == nil || len(s.Clocks) != 2 || len(s.Switches) != 1 || len(s.Caps) != 1 || s.Caps[0] != (energy.Cap{Of: "g0", CapWatts: 16, GreatestWatts: s.Caps[0].GreatestWatts}) {
			t.Errorf("compare --json: %+v", s)
		}
	}
	if out := mustRun(t, "compare", "e"); strings.Count(out, "\nclocks    g0 per step: tasks ") != 2 || strings.Count(out, "\ncap       g0: 16 W, ") != 2 {
		t.Errorf("compare:\n%s", out)
	}
}
