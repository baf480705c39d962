package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/execute"
	"dahl/plan"
	"dahl/platform"
)

// TestPredictTimedSteps: a chain of 3 calls on a GPU, each measured with 9 µs, of which being
// timed is 2: 27 µs in a recorded step and 21 in another. Of 2 epochs of 5 steps the first
// 2 are recorded: the run is 2·(2·27 + 3·21) = 234 µs. Where all are recorded it is
// 10·27 = 270, and simulated, without a record, 210.
func TestPredictTimedSteps(t *testing.T) {
	const us = time.Microsecond
	p, err := platform.Parse([]byte(emulatedNode), "node.toml")
	if err != nil {
		t.Fatal(err)
	}
	p.Devices[1].Timing = 2 * us
	p.Models = []platform.Model{{Op: "relu", Variant: "ref", Type: "float32", Device: "g0", Shape: "7", MedianNs: 9000, P95Ns: 9000, Count: 5, Active: 1}}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	b := dag.NewBuilder("chain")
	for i, name := range []string{"a", "b", "c"} {
		task := dag.Task{Name: name, Op: "relu", Type: dag.Float32, Shape: "7", Placement: &dag.Placement{Device: "g0"}}
		if i > 0 {
			task.After = []dag.TaskID{dag.TaskID(i - 1)}
		}
		b.Task(task)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words          string
		executed       bool
		record         int
		run, main, one time.Duration // of all, of a step of the schedule, of one as a user gets it
		unrecorded     int
	}{
		{"a part", true, 2, 234 * us, 27 * us, 21 * us, 6},
		{"all", true, 5, 270 * us, 27 * us, 27 * us, 0},
		{"simulated", false, 0, 210 * us, 21 * us, 21 * us, 0},
	} {
		w := &workload{opts: &options{Policy: "heft", Epochs: 2, Record: c.record}, executed: c.executed, platform: p,
			program: &dag.Program{Name: "chain", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 5}, {Steps: 5}}}}
		if err := w.decide(); err != nil {
			t.Fatal(err)
		}
		o, err := w.predict(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.Run != c.run || plan.StepTime(o.Main) != c.main || o.StepTime() != c.one || o.Unrecorded.Steps != c.unrecorded {
			t.Errorf("%s recorded: run %v, step of the schedule %v, step %v, %d unrecorded; want %v, %v, %v, %d", c.words,
				o.Run, plan.StepTime(o.Main), o.StepTime(), o.Unrecorded.Steps, c.run, c.main, c.one, c.unrecorded)
		}
	}
}

// TestTimedStepsAreCompared executes and simulates where each call on the GPU was measured with
// 70 µs, of which being timed is 2. Whichever prediction is laid beside the run, its recorded
// steps are with recorded ones and the others with others: the GPU alone runs n tasks in a
// step, so that these are 2·n µs apart.
func TestTimedStepsAreCompared(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	network := strings.Fields("--model digits-cnn --data synthetic:1x8x8:77:10 --batch 7 --devices g0")
	onDevice := writeTimedNode(t, "timed.toml")
	mustRun(t, slices.Concat([]string{"execute", "--platform", "timed.toml", "--record", "4", "--out", "run"}, network)...)
	mustRun(t, slices.Concat([]string{"simulate", "--platform", "timed.toml", "--steps", "4", "--out", "alone"}, network)...)
	run, err := loadRun("run")
	if err != nil {
		t.Fatal(err)
	}
	if r := run.summary.Recorded; r == nil || r.PredictedS <= 0 || r.Steps != 4 || r.Of != 11 {
		t.Fatalf("recorded %+v, want 4 of 11 steps with a prediction for the others", r)
	}
	for _, dir := range []string{"run", "alone"} {
		var c plan.Comparison
		decodeObject(t, mustRun(t, "compare", dir, "run", "--json"), &c)
		apart := 2e-6 * float64(onDevice)
		if got := c.Step.Predicted - c.PredictedUnrecordedStepS; c.UnrecordedStepS != run.summary.PeriodS || math.Abs(got/apart-1) > 1e-6 {
			t.Errorf("%s: predicted %g s recorded, %g not, measured %g not; want %g between the first two, and %g", dir,
				c.Step.Predicted, c.PredictedUnrecordedStepS, c.UnrecordedStepS, apart, run.summary.PeriodS)
		}
	}
	if out := mustRun(t, "rerun", "run"); strings.Contains(out, "DIFFERENT") {
		t.Errorf("rerun:\n%s", out)
	}
	if out := mustRun(t, "verify", "alone"); strings.Count(out, "\n") != strings.Count(out, " ok\n") {
		t.Errorf("verify:\n%s", out)
	}
}

// writeTimedNode writes emulatedNode with a model for every call of the GPU in the training
// step, and returns how many there are in a step.
func writeTimedNode(t *testing.T, path string) (onDevice int) {
	t.Helper()
	o := options{Platform: "node.toml", Model: "digits-cnn", Data: "synthetic:1x8x8:77:10", Batch: 7, Epochs: 1, Policy: "heft", DType: "float32", Devices: "g0"}
	w, _, _, err := trainingWorkload(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := platform.Parse([]byte(emulatedNode), "node.toml")
	if err != nil {
		t.Fatal(err)
	}
	p.Devices[1].Timing = 2 * time.Microsecond
	g := w.program.Graphs[0]
	id, _ := w.platform.WorkerByName("g0")
	for _, task := range w.decision.Graphs[0].Plan.Order[id] {
		call := &g.Tasks[task]
		p.Models = execute.PutModel(p.Models, platform.Model{Op: call.Op, Variant: "ref", Type: call.Type.String(), Device: "g0", Shape: call.Shape,
			MedianNs: 70_000, P95Ns: 70_000, Count: 5, Active: 1})
	}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := p.WriteTOML(&text); err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, path, text.String())
	return len(w.decision.Graphs[0].Plan.Order[id])
}
