package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

// recordedTraining is 2 epochs of 11 steps of 7 images, one of 2, and an evaluation.
var recordedTraining = strings.Fields("execute --platform node.toml --model digits-cnn --data synthetic:1x8x8:79:10 --batch 7 --epochs 2")

// TestRecordedPart trains with different parts recorded, by a plan and by a policy: the
// weights and losses are the same, what is said of all is of all, and of the recorded part of
// that.
func TestRecordedPart(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	for _, c := range []struct {
		args     []string
		recorded int // training steps in both epochs
	}{
		{[]string{"--record", "3"}, 6},
		{nil, 20},
		{[]string{"--policy", "dmda", "--record", "3"}, 6},
		{[]string{"--devices", "cpu", "--record", "3"}, 6},
	} {
		var all, part summary
		line := slices.Concat(recordedTraining, c.args)
		decodeObject(t, mustRun(t, slices.Concat(line, []string{"--json", "--record", "11", "--out", "all"})...), &all)
		text := mustRun(t, append(line, "--out", "part")...)
		s, err := readJSON[summary]("part/" + summaryFile)
		if err != nil {
			t.Fatal(err)
		}
		part = *s
		if all.Recorded != nil || part.Recorded == nil || part.Recorded.Steps != c.recorded || part.Recorded.Of != 22 {
			t.Fatalf("%v: recorded %+v and %+v, want all and %d of 22 steps", c.args, all.Recorded, part.Recorded, c.recorded)
		}
		if want := fmt.Sprintf("recorded  %d of 22 training steps", c.recorded); !strings.Contains(text, want) || !strings.Contains(text, "J per recorded step") {
			t.Errorf("%v: the text lacks %q or joules per recorded step:\n%s", c.args, want, text)
		}
		if part.Trained.WeightsSHA256 != all.Trained.WeightsSHA256 || part.Tasks != all.Tasks || part.Steps != all.Steps {
			t.Errorf("%v: weights %.12s, %d tasks, %d steps; recorded as a whole %.12s, %d, %d", c.args,
				part.Trained.WeightsSHA256, part.Tasks, part.Steps, all.Trained.WeightsSHA256, all.Tasks, all.Steps)
		}
		sameFiles(t, stepsFile, "all", "part")
		if part.PeriodS <= 0 || *part.ImagesPerS <= 0 || part.MakespanS <= part.Recorded.StepS {
			t.Errorf("%v: step %v s, %v images/s, run %v s", c.args, part.PeriodS, *part.ImagesPerS, part.MakespanS)
		}
		checkRecordedFiles(t, "part", part.Recorded, c.recorded/2)
	}
}

// checkRecordedFiles checks those of a run of 2 epochs, with so many recorded steps in each.
func checkRecordedFiles(t *testing.T, dir string, r *recordSummary, steps int) {
	t.Helper()
	run, err := loadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	predicted, err := run.Predicted()
	if err != nil || predicted == nil {
		t.Fatalf("the run has no prediction (%v)", err)
	}
	if run.Schedule.Steps != steps || predicted.Steps != steps {
		t.Errorf("the schedule has %d steps, its prediction %d; want %d", run.Schedule.Steps, predicted.Steps, steps)
	}
	if report, err := energy.FromSchedule(run.Schedule, run.Problem); err != nil || math.Abs(r.JoulesPerStep/(report.MeanWatts*r.StepS)-1) > 1e-9 || r.StepS != plan.StepTime(run.Schedule).Seconds() {
		t.Errorf("%v J per recorded step, want %v W times %v (%v)", r.JoulesPerStep, report.MeanWatts, plan.StepTime(run.Schedule), err)
	}
	epochs, err := os.ReadFile(dir + "/" + epochsFile)
	if err != nil || bytes.Count(epochs, []byte(",,\n")) != 2 {
		t.Errorf("an epoch has joules, though only a part of it was recorded (%v):\n%s", err, epochs)
	}
	if out := mustRun(t, "verify", dir); strings.Count(out, "\n") != strings.Count(out, " ok\n") {
		t.Errorf("verify:\n%s", out)
	}
	if out := mustRun(t, "compare", dir); !strings.Contains(out, "\n  unrecorded ") {
		t.Errorf("compare does not say what a step takes that is not recorded:\n%s", out)
	}
	if out := mustRun(t, "rerun", dir); strings.Contains(out, "DIFFERENT") {
		t.Errorf("rerun:\n%s", out)
	}
}

// TestLossInTheUnrecordedPart loses the GPU in the third step of an epoch, of which the first
// is recorded. The leg that goes on has recorded steps of its own, so it can be checked, and
// the weights are those of a training without a fault.
func TestLossInTheUnrecordedPart(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", faultyNode())
	training := append(slices.Clone(recordedTraining), "--continue-on-loss=2", "--record", "1", "--json")
	var whole, cut summary
	decodeObject(t, mustRun(t, append(training, "--out", "whole")...), &whole)
	o := options{Platform: "node.toml", Model: "digits-cnn", Data: "synthetic:1x8x8:79:10", Batch: 7, Epochs: 2, Policy: "heft", DType: "float32"}
	w, err := trainingWorkload(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := w.Platform.WorkerByName("g0")
	perStep := len(w.Decision.Graphs[0].Plan.Order[id])
	writeTestFile(t, "node.toml", faultyNode(fmt.Sprintf(`{ after = %d, kind = "lost" }`, 2*perStep+perStep/2)))
	decodeObject(t, mustRun(t, append(training, "--out", "cut")...), &cut)
	if len(cut.Losses) != 1 || cut.Losses[0].Epoch != 1 || cut.Losses[0].AfterStep != 1 || cut.Losses[0].Run == "" {
		t.Fatalf("losses %+v, want one after the first step, with a run of its own", cut.Losses)
	}
	if cut.Trained.WeightsSHA256 != whole.Trained.WeightsSHA256 {
		t.Errorf("weights %.12s, want %.12s", cut.Trained.WeightsSHA256, whole.Trained.WeightsSHA256)
	}
	// One step before the loss; after it, one of either epoch.
	if r := cut.Recorded; r == nil || r.Steps != 3 || r.Of != 22 {
		t.Errorf("recorded %+v, want 3 of 22 steps", r)
	}
	checkRunsInside(t, "cut/"+cut.Losses[0].Run)
}

// TestUnrecordedTotals adds pieces of 3, 5 and 5 steps that took 30, 35 and 55 ms: 120 ms in
// all. Their steady steps are 9, 7 and 11 ms; the median is 9. A piece of another
// graph counts in the time only. With 2 recorded steps of 13 ms before, that were 26 ms at 500 W: 6.5 J per step.
func TestUnrecordedTotals(t *testing.T) {
	b := dag.NewBuilder("g")
	b.Task(dag.Task{Name: "a"})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	o := plan.NewTotals(schedule.Measured, &platform.Platform{})
	o.Add(plan.Accounted{Schedule: &schedule.Schedule{Steps: 2, Makespan: ms(26), Period: ms(13)}, Report: &energy.Report{TotalJoules: 17, MeanWatts: 500, Basis: energy.Modelled}}, g, dag.Segment{Steps: 2})
	if recording(o) != nil || o.StepTime() != ms(13) {
		t.Errorf("all recorded: %+v, step %v", recording(o), o.StepTime())
	}
	for _, p := range [][3]int{{3, 30, 9}, {5, 35, 7}, {5, 55, 11}} {
		o.AddUnrecorded(&schedule.Schedule{Steps: p[0], Makespan: ms(p[1]), Period: ms(p[2])}, g, dag.Segment{Steps: p[0]})
	}
	o.AddUnrecorded(&schedule.Schedule{Steps: 7, Makespan: ms(14), Period: ms(2)}, g, dag.Segment{Graph: 1, Steps: 7})
	if o.Run != ms(26+120+14) || o.Tasks != 2+13+7 || o.StepTime() != ms(9) || o.Joules != 17 {
		t.Errorf("run %v, %d tasks, step %v, %v J", o.Run, o.Tasks, o.StepTime(), o.Joules)
	}
	want := recordSummary{Steps: 2, Of: 15, StepS: 0.013, JoulesPerStep: 6.5}
	if r := recording(o); r == nil || *r != want {
		t.Errorf("recording %+v, want %+v", r, want)
	}
	sum := plan.NewTotals(schedule.Measured, &platform.Platform{})
	sum.Main, sum.Report = o.Main, o.Report
	sum.Include(o)
	sum.Include(o)
	if r := recording(sum); r == nil || r.Steps != 4 || r.Of != 30 {
		t.Errorf("of two legs: %+v, want 4 of 30 steps", r)
	}
}
