package main

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/must"
	"dahl/plan"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// TestSimulateEndsInThreeLines: two tasks of 3 and 4 ms in a chain take 7 ms, 2/7 ms = 286
// tasks a second; the laptop's powers are guesses. The second reads what the first writes, into a buffer
// that exists once, so that in the laptop's one memory no step begins before the last one has ended:
// three steps take 21 ms at least. Details come with --verbose alone.
func TestSimulateEndsInThreeLines(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	for _, command := range []string{"simulate", "plan"} {
		out := mustRun(t, command, "--platform", "laptop", "--graph", "two.json", "--steps", "3")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		last := lines[len(lines)-3:]
		if last[0] != "step      7 ms, 286 tasks/s" || !strings.HasPrefix(last[1], "energy    ") || !strings.HasSuffix(last[1], " per step (modelled, watts guessed)") ||
			last[2] != "bound     3 steps take 21 ms, which no schedule of this graph (2 tasks) on these devices can beat" {
			t.Errorf("%s ends in\n%s", command, strings.Join(last, "\n"))
		}
		more := mustRun(t, command, "--platform", "laptop", "--graph", "two.json", "--steps", "3", "--verbose")
		if !strings.HasSuffix(more, strings.Join(last, "\n")+"\n") || !strings.Contains(more, "\nwaits ") || strings.Contains(out, "\nwaits ") {
			t.Errorf("%s --verbose:\n%s\nwithout:\n%s", command, more, out)
		}
	}
}

// TestHeadline prints figures of a network: 64 samples in 5 ms are 12,800 a second, and 0.32 J
// of them 5 mJ each; a run of 41 ms is 1.64 times a bound of 25. A bound of 41 ms it reaches, and
// one of 43 it is below: what the machine does in less than the least time was modelled too slow.
func TestHeadline(t *testing.T) {
	h := headline{figures: plan.StepFigures{StepS: 5e-3, SamplesPerS: 64 / 5e-3, JoulesPerStep: 0.32, JoulesPerSample: 0.32 / 64, Basis: energy.Modelled},
		tasks: 91, what: "this lowering (91 tasks) on these devices", grounds: "modelled, watts measured", known: ", ±3.0 % (the kernels' times)", of: "the run takes", run: 41 * time.Millisecond, bound: 25 * time.Millisecond}
	var b strings.Builder
	h.print(&b, " (predicted 6 ms, +20.0 %)")
	want := `step      5 ms, 12,800 samples/s, ±3.0 % (the kernels' times) (predicted 6 ms, +20.0 %)
energy    5 mJ per sample (modelled, watts measured)
bound     the run takes 41 ms, 1.64 times the 25 ms that no schedule of this lowering (91 tasks) on these devices can beat
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	h.world = schedule.Measured
	b.Reset()
	if h.print(&b, ""); !strings.HasSuffix(b.String(), "1.64 times the 25 ms that by the platform's models no schedule of this lowering (91 tasks) on these devices can beat\n") {
		t.Errorf("got\n%s", b.String())
	}
	h.world = schedule.Simulated
	for bound, want := range map[time.Duration]string{
		41 * time.Millisecond: "bound     the run takes 41 ms, which no schedule of this lowering (91 tasks) on these devices can beat\n",
		43 * time.Millisecond: "bound     the run takes 41 ms, less than the 43 ms that the platform's models give every schedule of this lowering (91 tasks) on these devices: the models are slower than the machine, and dahl calibrate measures them\n",
		0:                     "bound     the run takes 41 ms, for which no bound is known\n",
	} {
		b.Reset()
		h.bound = bound
		if h.print(&b, ""); !strings.HasSuffix(b.String(), want) {
			t.Errorf("got\n%swant at the end\n%s", b.String(), want)
		}
	}
}

// TestBoundOfAMeasuredRun: that no schedule can beat a bound is the word of the platform's models, against which a machine
// may run any single step. A training that went on took its time since then. One sample is one sample, and the only step
// of a run is no mean of all but the first.
func TestBoundOfAMeasuredRun(t *testing.T) {
	t.Chdir(t.TempDir())
	out := mustRun(t, "execute", "--workers", "1", "--policy", "heft", "--model", "mlp", "--limit", "1", "--out", "r")
	if !strings.Contains(out, ": 1 training sample 1x28x28") || !strings.Contains(out, "the platform's models ") || strings.Contains(out, "after step") {
		t.Errorf("got\n%s", out)
	}
	if out = mustRun(t, "compare", "r"); !strings.Contains(out, "; the mean of 1 step, those that warm up too") || !strings.HasPrefix(out, "compared: step 1 of 1,") {
		t.Errorf("got\n%s", out)
	}
	// Two steps more, of which the training has three now: the step before them is none of the time since then.
	out = mustRun(t, "execute", "--resume", "r", "--epochs", "3")
	if !strings.Contains(out, " after step 1 (predicted ") || !strings.Contains(out, "\nbound     after step 1 the run takes ") {
		t.Errorf("got\n%s", out)
	}
}

// TestShareOfAStep: the time that a worker is busy in a step and its share are of one step. The first step of the run is longer, since
// the samples and weights come to the second memory in it.
func TestShareOfAStep(t *testing.T) {
	t.Chdir(t.TempDir())
	out := mustRun(t, strings.Fields("plan --platform server --devices cpu0:4,cpu1:4 --model lenet5 --policy data-parallel")...)
	step := regexp.MustCompile(`(?m)^step +([0-9.]+) us`).FindStringSubmatch(out)
	rows := regexp.MustCompile(`(?m)^cpu\d\.\d +\d+ +([0-9.]+) us +([0-9.]+)%`).FindAllStringSubmatch(out, -1)
	if step == nil || len(rows) != 8 {
		t.Fatalf("got\n%s", out)
	}
	number := func(text string) float64 {
		return must.Get(strconv.ParseFloat(text, 64))(t)
	}
	for _, r := range rows { // times have three digits
		if want := 100 * number(r[1]) / number(step[1]); math.Abs(number(r[2])-want) > 0.01*want {
			t.Errorf("%s: %.1f %% of %s us\n%s", r[0], want, step[1], out)
		}
	}
}

// TestKnown: of a step of which 96 % is estimated without an error bar, an error of 1 % of the whole is 25 % of the other 4 %.
func TestKnown(t *testing.T) {
	for want, m := range map[string]explain.ModelError{
		", ±3.0 % (the kernels' times)": {Measured: 6, RelError: 0.03},
		", ±25.0 % (the kernels' times but those estimated); 96 % of its time is estimated by peak rates, not measured": {Fitted: 6, Roofline: 48, RelError: 0.01, Unknown: 0.96},
		"; 100 % of its time is estimated by peak rates, not measured":                                                  {Roofline: 48, Unknown: 1},
		"": {Given: 3},
	} {
		if got := words.ErrorBar(&m); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}

// TestOneIsOne: of one there is no plural, whatever a command counts, and a large number is written in the same way
// wherever it stands.
func TestOneIsOne(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "one.json", `{"format": "dahl-graph 1", "name": "one", "buffers": [{"name": "x", "shape": [5], "type": "float32"}],
 "tasks": [{"name": "a", "op": "f", "writes": ["x"], "ns": {"*": 3000000}}]}`)
	plural := regexp.MustCompile(`(?m)(?:^|[ (])1 [a-z]+s\b`)
	for _, command := range []string{
		"graph --graph one.json",
		"graph --model lenet5", // one buffer in the layout hwoi
		"simulate --platform laptop --devices cpu:1 --graph one.json --verbose",
		"plan --platform laptop --devices cpu:1 --graph one.json --objective time",
		"execute --model mlp --limit 1 --workers 1 --policy heft --out r",
		"kernels r",
		"compare r",
	} {
		for _, found := range plural.FindAllString(mustRun(t, strings.Fields(command)...), -1) {
			if !slices.Contains([]string{"1 ns", "1 us", "1 ms"}, strings.TrimLeft(found, " (")) {
				t.Errorf("dahl %s says %q", command, found)
			}
		}
	}
	// mlp has 28·28·512 + 512 + 512·512 + 512 + 512·10 + 10 weights.
	must.Contain(t, mustRun(t, strings.Fields("execute --model mlp --limit 1 --workers 1 --policy heft --out r")...), ", 669,706 weights, ",
		"data      synthetic 1×28×28: 1 training sample 1x28x28; random patterns, ", "so that an accuracy of 10 % is chance and no fault: write --data DIR ")
}

func TestShortJoules(t *testing.T) {
	for j, want := range map[float64]string{1234: "1234 J", 1: "1 J", 0.9996: "1 J", 0.05: "50 mJ", 0.000166: "166 uJ", 1e-9: "0.001 uJ", 0: "0 uJ"} {
		if got := cli.ShortJoules(j); got != want {
			t.Errorf("%v J: %q, want %q", j, got, want)
		}
	}
}
