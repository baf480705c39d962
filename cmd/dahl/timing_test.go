package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/execute/calibrate"
	"dahl/must"
	"dahl/plan"
	"dahl/platform"
)

// TestTimedStepsAreCompared executes and simulates where each call on the GPU was measured with
// 70 µs, of which being timed is 2. Whichever prediction is laid beside the run, its recorded
// steps are with recorded ones: the GPU alone runs n tasks in a
// step, so that a recorded one is 2·n µs longer than another. The step of the run is the mean of both kinds.
func TestTimedStepsAreCompared(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	network := strings.Fields("--model digits-cnn --data synthetic:1x8x8:77:10 --batch 7 --devices g0 --lowering default")
	onDevice := writeTimedNode(t, "timed.toml")
	mustRun(t, slices.Concat([]string{"execute", "--platform", "timed.toml", "--record", "4", "--out", "run"}, network)...)
	mustRun(t, slices.Concat([]string{"simulate", "--platform", "timed.toml", "--steps", "4", "--out", "alone"}, network)...)
	run := must.Get(record.LoadRun("run"))(t)
	if r := run.Summary.Recorded; r == nil || r.Steps != 4 || r.Of != 11 {
		t.Fatalf("recorded %+v, want 4 of 11 steps", r)
	}
	// Of the 10 steps after the first 3 are recorded, and none of a simulated run.
	apart := map[int]float64{1: 2e-6 * float64(onDevice) * 7 / 10, 2: 2e-6 * float64(onDevice)}
	for _, dirs := range [][]string{{"run"}, {"alone", "run"}} {
		c := decoded[plan.Comparison](t, mustRun(t, slices.Concat([]string{"compare", "--json"}, dirs)...))
		recorded := plan.StepTime(predictedOf(t, "run")).Seconds()
		if c.Makespan.Predicted != predictedOf(t, "run").Makespan.Seconds() {
			t.Errorf("%s: predicted %g s for the recorded steps, and %v in the run", dirs, c.Makespan.Predicted, predictedOf(t, "run").Makespan)
		}
		// The others begin after a barrier, which costs them some us once.
		if got := recorded - c.RunStep.Predicted; c.RunStep.Measured != run.Summary.StepS || math.Abs(got/apart[len(dirs)]-1) > 0.03 {
			t.Errorf("%s: predicted %g s recorded, %g in the run, measured %g; want %g between the first two, and %g", dirs,
				recorded, c.RunStep.Predicted, c.RunStep.Measured, apart[len(dirs)], run.Summary.StepS)
		}
	}
	wantRepeated(t, "run")
	wantVerified(t, "alone")
}

// writeTimedNode writes emulatedNode with a model for every call of the GPU in the training
// step, and returns how many there are in a step.
func writeTimedNode(t *testing.T, path string) (onDevice int) {
	t.Helper()
	o := flags.Options{Platform: "node.toml", Model: "digits-cnn", Data: "synthetic:1x8x8:77:10", Batch: 7, Epochs: 1, Policy: "heft", DType: "float32", Devices: "g0"}
	w := must.Get(trainingWorkload(t.Context(), &o))(t)
	p := must.Get(platform.Parse([]byte(emulatedNode), "node.toml"))(t)
	p.Devices[1].Timing = 2 * time.Microsecond
	g := w.Program.Graphs[0]
	id, _ := w.Platform.WorkerByName("g0")
	for _, task := range w.Decision.Graphs[0].Plan.Order[id] {
		call := &g.Tasks[task]
		p.Models = calibrate.PutModel(p.Models, platform.Model{Op: call.Op, Variant: "ref", Type: call.Type.String(), Device: "g0", Shape: call.Shape,
			MedianNs: 70_000, P95Ns: 70_000, Count: 5, Active: 1})
	}
	must.Do(t, p.Complete())
	var text strings.Builder
	must.Do(t, p.WriteTOML(&text))
	writeTestFile(t, path, text.String())
	return len(w.Decision.Graphs[0].Plan.Order[id])
}
