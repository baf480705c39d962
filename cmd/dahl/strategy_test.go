package main

import (
	"math"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
)

// heavyProfile is a network of two layers, of 3 ms each, whose weights take a second between two machines.
const heavyProfile = `a -- Linear -- forward_compute_time=1, backward_compute_time=2, activation_size=1000, parameter_size=1e9
b -- Linear -- forward_compute_time=1, backward_compute_time=2, activation_size=1000, parameter_size=1e9
	a -- b
`

// twoGPUs have a link of 1 GB/s each.
const twoGPUs = `
name = "two"
[[memory]]
name = "ram"
host = true
[[memory]]
name = "m0"
[[memory]]
name = "m1"
[[device]]
name = "g0"
kind = "cuda"
memory = "m0"
speed = { float32 = "1 GF/s" }
[[device]]
name = "g1"
kind = "cuda"
memory = "m1"
speed = { float32 = "1 GF/s" }
[[link]]
name = "l0"
bandwidth = "1 GB/s"
[[route]]
from = "ram"
to = "m0"
links = ["l0"]
[[link]]
name = "l1"
bandwidth = "1 GB/s"
[[route]]
from = "ram"
to = "m1"
links = ["l1"]
`

// TestStrategy: PipeDream gives each layer a GPU. By its formula a mini-batch takes 3 ms. So does a simulated step once the pipeline is full, since copies of 1 us
// overlap with tasks. A plan keeps its lags in its file.
func TestStrategy(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "profile.txt", heavyProfile)
	writeTestFile(t, "two.toml", twoGPUs)
	mustRun(t, strings.Fields("import profile.txt --stash --out graph.json")...)
	simulate := "simulate --platform two.toml --graph graph.json --steps 50 --out run --policy "
	must.Contain(t, mustRun(t, strings.Fields(simulate+"pipedream:2")...), "model_s   0.003 s for a step, by a formula and not simulated: transfers of activations free",
		"stage     a, 1 part on g0: 3 ms by the formula\n", "stage     b, 1 part on g1: 3 ms by the formula\n", "pipeline  fills for", "then 3 ms per step")
	s := decoded[record.Summary](t, mustRun(t, strings.Fields(simulate+"PipeDream:2 --json")...))
	if s.Strategy == nil || s.Strategy.ModelS != 0.003 || s.Pipeline == nil || math.Abs(s.Pipeline.Steady-0.003) > 1e-6 {
		t.Errorf("%+v, %+v", s.Strategy, s.Pipeline)
	}
	must.Contain(t, mustRun(t, "verify", "run"), "schedule.json          ok")
	again := decoded[record.Summary](t, mustRun(t, strings.Fields("simulate --platform two.toml --graph graph.json --steps 50 --plan run/plan.json --out again --json")...))
	if again.Strategy != nil || *again.Pipeline != *s.Pipeline || again.MakespanS != s.MakespanS {
		t.Errorf("from its file the plan takes %v s, before %v", again.MakespanS, s.MakespanS)
	}
	wantRefused(t, simulate+"pipedream:3", "3 workers are asked for, and \"two\" has 2")
	wantRefused(t, simulate+"pipedream:x", "write pipedream or pipedream:WORKERS")
	wantRefused(t, "plan --platform two.toml --graph graph.json --plan run/plan.json --objective time --out p", "take a plan without lags")
}

// TestPlanOverlaps: layers of 4, 3, 2 and 3 ms take 7 ms on two GPUs in contiguous parts, and 6 ms with the first and the third together, which is half of the work.
func TestPlanOverlaps(t *testing.T) {
	t.Chdir(t.TempDir())
	var text strings.Builder
	for i, times := range []string{"1 3", "1 2", "1 1", "1 2"} {
		forward, backward, _ := strings.Cut(times, " ")
		text.WriteString("l" + string(rune('0'+i)) + " -- Linear -- forward_compute_time=" + forward + ", backward_compute_time=" + backward + ", activation_size=1000, parameter_size=0\n")
	}
	text.WriteString("\tl0 -- l1\n\tl1 -- l2\n\tl2 -- l3\n")
	writeTestFile(t, "profile.txt", text.String())
	writeTestFile(t, "two.toml", twoGPUs)
	mustRun(t, strings.Fields("import profile.txt --out graph.json")...)
	out := mustRun(t, strings.Fields("plan --platform two.toml --graph graph.json --objective time --steps 50 --budget 2000 --out run")...)
	must.Contain(t, out, "pipeline  fills for", "optimum   time 6 ms per step, proven", "however many steps overlap")
	must.Contain(t, mustRun(t, "verify", "run"), "plan.json              ok")
}
