package main

import (
	"math"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/plan"
	"dahl/schedule"
)

// TestResultsAddUp trains 2 epochs of 3 whole batches of 64 and one of 8 samples: the joules
// of host, devices and links are the total, kernels' times in a step are the busy time of the
// workers, and the schedule is of steps 1 to 3 or 5 to 7 of 8.
func TestResultsAddUp(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	for _, args := range []string{"--out e", "--out n --platform node.toml --devices cpu,gpu --record 4", "--out d --policy dmda"} {
		s := decoded[record.Summary](t, mustRun(t, append(strings.Fields("execute --model digits-cnn --limit 200 --batch 64 --epochs 2 --json"), strings.Fields(args)...)...))
		sum := 0.0
		for _, parts := range []map[string]float64{s.EnergyJ.ByDevice, s.EnergyJ.ByLink} {
			for _, joules := range parts {
				sum += joules
			}
		}
		if host, ok := s.EnergyJ.ByDevice["host"]; !ok || host == 0 && !strings.Contains(s.EnergyJ.Grounds, "without the host") || math.Abs(sum-s.EnergyJ.Total) > 1e-9*s.EnergyJ.Total {
			t.Errorf("%s: the joules %v and %v add up to %v of %v", args, s.EnergyJ.ByDevice, s.EnergyJ.ByLink, sum, s.EnergyJ.Total)
		}
		if got := *s.Shown; got.Steps != 3 || got.Of != 8 || got.Epochs != 2 || got.First != 1+4*(got.Epoch-1) {
			t.Errorf("%s: shown are %+v", args, got)
		}
		for memory, live := range s.LivePeakBytes {
			if live == 0 || s.ReservedBytes[memory] < live {
				t.Errorf("%s: memory %s has %d live and %d reserved bytes", args, memory, live, s.ReservedBytes[memory])
			}
		}
		dir := strings.Fields(args)[1]
		c := decoded[plan.Comparison](t, mustRun(t, "compare", dir, "--json"))
		var kernels, workers plan.Pair
		for _, k := range c.Kernels {
			kernels.Predicted, kernels.Measured = kernels.Predicted+k.Sum.Predicted, kernels.Measured+k.Sum.Measured
		}
		for _, w := range c.Workers {
			workers.Predicted, workers.Measured = workers.Predicted+w.Busy.Predicted, workers.Measured+w.Busy.Measured
		}
		if math.Abs(kernels.Predicted/workers.Predicted-1) > 1e-9 || math.Abs(kernels.Measured/workers.Measured-1) > 1e-9 {
			t.Errorf("%s: kernels %+v, workers %+v", args, kernels, workers)
		}
		if c.Steps != 3 || c.Step.Measured != c.Makespan.Measured/3 {
			t.Errorf("%s: %d steps, makespan %v", args, c.Steps, c.Makespan)
		}
	}
	// The two numbers of a memory have these names for whoever reads the objects.
	for object, names := range map[string][]string{
		mustRun(t, strings.Fields("simulate --model digits-cnn --platform laptop --json --out p")...): {`"peak_bytes": {`, `"reserved_bytes": {`},
		mustRun(t, "compare", "e", "--json"): {`"peak_bytes": {`},
	} {
		for _, name := range names {
			must.Contain(t, object, name)
		}
	}
	// A prediction of other steps than measured is made anew for these.
	mustRun(t, strings.Fields("simulate --model digits-cnn --limit 200 --batch 64 --steps 7 --platform e/platform.toml --out p")...)
	c := decoded[plan.Comparison](t, mustRun(t, "compare", "p", "e", "--json"))
	if want := predictedOf(t, "e").Makespan.Seconds(); c.Steps != 3 || c.Makespan.Predicted != want {
		t.Errorf("%d steps, makespan %v; want 3 steps in the %v s that the run predicts of the same plan", c.Steps, c.Makespan, want)
	}
}

// predictedOf is the prediction in an executed run.
func predictedOf(t *testing.T, dir string) *schedule.Schedule {
	t.Helper()
	run := must.Get(record.LoadRun(dir))(t)
	s, err := run.Predicted()
	if err != nil || s == nil {
		t.Fatalf("%s has no prediction (%v)", dir, err)
	}
	return s
}

func TestShownSteps(t *testing.T) {
	for want, s := range map[string]record.ShownSteps{
		"steps 48 to 93 of 235, in epoch 2 of 5": {Steps: 46, Of: 235, Epoch: 2, Epochs: 5, First: 48},
		"step 1 of 1, in epoch 1 of 1":           {Steps: 1, Of: 1, Epoch: 1, Epochs: 1, First: 1},
		"the first 7 of 11 steps":                {Steps: 7, Of: 11},
		"":                                       {Steps: 7, Of: 7},
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
