package main

import (
	"math"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
)

// clockedNode is the node whose emulated GPU has a clock of half its speed and less power.
var clockedNode = strings.Replace(emulatedNode, "power = { idle = \"3 W\", busy = \"7 W\" }\n", `power = { idle = "3 W", busy = "7 W" }
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "1 W", busy = "3 W" }
`, 1)

// Three tasks of 10 ms follow each other on g0 at 7 W, while the core idles at 2 W: 30 ms and
// 0.03·(7+2) = 0.27 J. At half the speed they take 60 ms, and 0.06·(3+2) = 0.3 J. Half of the
// work of the last one is bytes, 5e7 flops at 10 GF/s beside 2.5e8 B at 50 GB/s, so that it takes
// 15 ms: 55 ms and 0.275 J.
func TestSimulateAtAClock(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", clockedNode)
	const tasks = `{"format": "dahl-graph 1", "tasks": [{"name": "a", "ns": {"g0": 10000000}}, {"name": "b", "after": ["a"], "ns": {"g0": 10000000}},
 {"name": "c", "after": ["b"], "type": "float32", WORK "ns": {"g0": 10000000}}]}`
	writeTestFile(t, "compute.json", strings.Replace(tasks, "WORK", "", 1))
	writeTestFile(t, "memory.json", strings.Replace(tasks, "WORK", `"flops": 50000000, "bytes": 250000000,`, 1))
	for _, c := range []struct {
		graph, clock    string
		seconds, joules float64
		says            string
	}{
		{"compute.json", "", 0.03, 0.27, "with 2 workers; policy"},
		{"compute.json", "--clock g0=nominal", 0.03, 0.27, "with 2 workers; policy"},
		{"compute.json", "--clock g0=slow", 0.06, 0.3, "with 2 workers, clock g0=slow; policy"},
		{"memory.json", "--clock g0=slow", 0.055, 0.275, "with 2 workers, clock g0=slow; policy"},
	} {
		line := strings.Fields("simulate --platform node.toml --out s --graph " + c.graph + " " + c.clock)
		s := decoded[record.Summary](t, mustRun(t, append(line, "--json")...))
		if s.MakespanS != c.seconds || math.Abs(s.EnergyJ.Total-c.joules) > 1e-12 || (s.Clocks != nil) != strings.Contains(c.clock, "slow") {
			t.Errorf("%s %s: %g s, %g J, clocks %v; want %g s and %g J", c.graph, c.clock, s.MakespanS, s.EnergyJ.Total, s.Clocks, c.seconds, c.joules)
		}
		if out := mustRun(t, line...); !strings.Contains(out, c.says) {
			t.Errorf("%s %s: %q is not in\n%s", c.graph, c.clock, c.says, out)
		}
		wantVerified(t, "s")
		wantRepeated(t, "s", "--out", "again")
		wantVerified(t, "again")
		wantRepeated(t, "again")
	}
	mustRun(t, strings.Fields("plan --platform node.toml --graph compute.json --clock g0=slow --out p")...)
	s := decoded[record.Summary](t, mustRun(t, strings.Fields("simulate --platform node.toml --graph compute.json --clock g0=slow --plan p/plan.json --out s --json")...))
	if s.MakespanS != 0.06 {
		t.Errorf("a plan made at the slow clock takes %g s at it, want 0.06", s.MakespanS)
	}
}

// A clock of a device that --devices leaves out counts in what that draws idle.
func TestRerunWithoutTheClockedDevice(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", clockedNode)
	writeTestFile(t, "one.json", `{"format": "dahl-graph 1", "tasks": [{"name": "a", "ns": {"cpu": 1000000000}}]}`)
	s := decoded[record.Summary](t, mustRun(t, strings.Fields("simulate --platform node.toml --graph one.json --devices cpu --clock g0=slow --out s --json")...))
	if s.EnergyJ.Total != 5+1 {
		t.Errorf("%g J in a second of a busy core, 5 W, and an idle device at its slow clock, 1 W", s.EnergyJ.Total)
	}
	wantRepeated(t, "s")
}

// The same training at two clocks of an emulated device: the weights are equal to the last bit,
// and the run repeats. A step at the slow clock takes at least nearly twice what one at the own
// clock is predicted to take, which is nearly all arithmetic, however busy the computer is.
func TestExecuteAtAClock(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	// At 4 and 2 MF/s a step takes so long that the computer itself does not matter.
	writeTestFile(t, "node.toml", strings.ReplaceAll(clockedNode, "10 GF/s", "4 MF/s"))
	const work = " --platform node.toml --devices g0 --model tiny.toml --data digits --limit 64 --batch 16 --json --out "
	line := strings.Fields("execute" + work)
	predicted := decoded[record.Summary](t, mustRun(t, strings.Fields("simulate"+work+"s")...))
	at := map[string]*record.Summary{}
	for _, clock := range []string{"nominal", "slow"} {
		at[clock] = new(record.Summary)
		decodeObject(t, mustRun(t, append(line, clock, "--clock", "g0="+clock)...), at[clock])
		wantVerified(t, clock)
	}
	own, slow := at["nominal"], at["slow"]
	if own.Trained.WeightsSHA256 != slow.Trained.WeightsSHA256 {
		t.Error("the weights depend on the clock")
	}
	if slow.StepS < 1.8*predicted.StepS {
		t.Errorf("a step takes %g s at half the speed, and is predicted to take %g s at the own clock", slow.StepS, predicted.StepS)
	}
	wantRepeated(t, "slow")
	must.Contain(t, mustRun(t, "compare", "slow"), "clocks: predicted at g0=slow, measured at g0=slow\n")
}

// What is wrong with a clock is said in a line, with the names that there are.
func TestClocksRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", clockedNode)
	writeTestFile(t, "fixed.toml", strings.Replace(clockedNode, "kind = \"emulated\"\n", "kind = \"cuda\"\nclock_in_force = \"slow\"\n", 1))
	writeTestFile(t, "slowed.toml", strings.Replace(clockedNode, "kind = \"emulated\"\n", "kind = \"emulated\"\nclock_in_force = \"slow\"\n", 1))
	const simulate = "simulate --platform node.toml --model mlp "
	for _, c := range [][2]string{
		{simulate + "--clock g0", "write the names of a device and of one of its clocks, such as gpu0=slow"},
		{simulate + "--clock g0=slow --clock g0=nominal", `device "g0" is given two clocks`},
		{simulate + "--clock g1=slow", `--clock g1=slow: platform "" has no device "g1"; it has cpu (cpu), g0 (emulated)`},
		{simulate + "--clock g0=warp", `--clock g0=warp: device "g0" of platform "" has no clock "warp"; it has nominal, slow`},
		{simulate + "--clock cpu=slow", `device "cpu" of platform "" has no clocks to choose from; describe them with [[device.clock]]`},
		{"execute --platform fixed.toml --model mlp --devices cpu,g0", "g0=slow: the clock of a processor or a GPU is set only with --set-clocks, which needs root or the right to set it; --ignore-clocks runs at whatever clock it has"},
		{"calibrate --platform slowed.toml --out c.toml --model mlp", "slowed.toml: calibrate measures devices at their first clocks; take clock_in_force (g0=slow) out"},
	} {
		wantRefused(t, c[0], c[1])
	}
}
