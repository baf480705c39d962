package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/runs"
	"dahl/dag"
	"dahl/must"
	"dahl/plan"
	"dahl/platform"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/train"
)

// TestErrorCauses lays measured calls beside a prediction that is off.
func TestErrorCauses(t *testing.T) {
	problem := func(source schedule.CostSource) *schedule.Problem {
		return &schedule.Problem{
			Graph:    &dag.Graph{Tasks: []dag.Task{{Op: "f"}}},
			Platform: &platform.Platform{Devices: []platform.Device{{Name: "cpu", Kind: "cpu"}}, Workers: []platform.Worker{{}}},
			Costs:    &schedule.Costs{Class: []int32{0}, ByClass: [][]schedule.Cost{{{Duration: 7, Source: source}}}},
		}
	}
	calls := func(durations ...time.Duration) *schedule.Schedule {
		s := &schedule.Schedule{Steps: len(durations)}
		for i, d := range durations {
			s.Spans = append(s.Spans, schedule.Span{Step: int32(i), End: d})
		}
		return s
	}
	steady, unsteady := calls(7, 7, 8, 7, 7), calls(7, 7, 43, 7, 7) // 36 of 35, and 71 of 35: 2.0 times
	busy := &record.LoadSummary{OtherCores: 1.3, Cores: 2, Disturbed: true}
	for _, c := range []struct {
		percent  float64
		source   schedule.CostSource
		measured *schedule.Schedule
		of       *record.Summary
		want     string
	}{
		{-9, schedule.FromRoofline, unsteady, &record.Summary{Load: busy}, ""},
		{-11, schedule.FromMeasured, steady, &record.Summary{Load: busy}, "; cause: others kept 1.3 of 2 cores busy"},
		{-11, schedule.FromRoofline, unsteady, &record.Summary{Load: &record.LoadSummary{SharedCores: true}}, "; cause: workers share cores, the platform is not calibrated, unsteady calls: 2.0 times their medians"},
		{+11, schedule.FromRoofline, unsteady, &record.Summary{Load: busy}, "; cause: the platform is not calibrated"}, // what held the run up does not make it fast
		{+11, schedule.FromMeasured, unsteady, &record.Summary{Load: busy}, "; cause: none that was looked for (load, calibration, unsteady calls); dahl compare shows which kernels are off"},
		{-50, schedule.FromMeasured, unsteady, &record.Summary{}, "; cause: unsteady calls: 2.0 times their medians"},
		// A run of one step has no other than the one that warms up, which is slow and never fast.
		{-90, schedule.FromMeasured, steady, &record.Summary{Steps: 1, Counted: record.CountedSummary{Steps: 1}}, "; cause: first steps count, which warm up"},
		{+90, schedule.FromRoofline, steady, &record.Summary{Steps: 1, Counted: record.CountedSummary{Steps: 1}}, "; cause: the platform is not calibrated"},
		// Steps without a device are faster or slower than those that were predicted with it.
		{+40, schedule.FromMeasured, steady, &record.Summary{Steps: 20, Counted: record.CountedSummary{Steps: 19}, Losses: []train.DeviceLoss{{Device: "gpu", AfterStep: 8}}}, "; cause: gpu was lost after step 8 of 20"},
	} {
		if got := runs.CausesText(runs.ErrorCauses(c.percent, problem(c.source), c.measured, c.of)); got != c.want {
			t.Errorf("%+v %% by %s: %q, want %q", c.percent, c.source, got, c.want)
		}
	}
}

// TestCausesAreOnTheLine: a machine that is detected is not calibrated, so that a step which
// is predicted far off is said to be for that.
func TestCausesAreOnTheLine(t *testing.T) {
	t.Chdir(t.TempDir())
	text := must.Get(platforms.Open("laptop"))(t)
	writeTestFile(t, "slow.toml", strings.ReplaceAll(string(text), "GF/s", "MF/s")) // a thousand times slower
	out := mustRun(t, strings.Fields("execute --platform slow.toml --workers 1 --model digits-cnn --limit 64 --out e")...)
	compared := mustRun(t, "compare", "e")
	for _, text := range []string{out, compared} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, "step ") && strings.Contains(line, "cause: the platform is not calibrated")
		}
		if !found {
			t.Errorf("no line of the step with its cause in\n%s", text)
		}
	}
	c := decoded[plan.Comparison](t, mustRun(t, "compare", "e", "--json"))
	if want := []string{"the platform is not calibrated"}; !reflect.DeepEqual(c.Causes, want) {
		t.Errorf("causes %q, want %q", c.Causes, want)
	}
}
