package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/energy"
	"dahl/must"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

// recordedTraining is 2 epochs of 11 steps of 7 samples, one of 2, and an evaluation.
var recordedTraining = strings.Fields("execute --platform node.toml --model digits-cnn --data synthetic:1x8x8:79:10 --batch 7 --epochs 2 --policy heft")

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
		{[]string{"--record", "3"}, 8}, // 3 of the 11 and the one of 2 samples
		{nil, 22},
		{[]string{"--policy", "dmda", "--record", "3"}, 8},
		{[]string{"--devices", "cpu", "--record", "3"}, 8},
	} {
		var all, part record.Summary
		line := slices.Concat(recordedTraining, c.args)
		decodeObject(t, mustRun(t, slices.Concat(line, []string{"--json", "--record", "11", "--out", "all"})...), &all)
		text := mustRun(t, append(line, "--out", "part")...)
		s := must.Get(cli.ReadJSON[record.Summary]("part/" + record.SummaryFile))(t)
		part = *s
		if all.Recorded != nil || part.Recorded == nil || part.Recorded.Steps != c.recorded || part.Recorded.Of != 24 {
			t.Fatalf("%v: recorded %+v and %+v, want all and %d of 24 steps", c.args, all.Recorded, part.Recorded, c.recorded)
		}
		if want := fmt.Sprintf("recorded  %d of 24 training steps", c.recorded); !strings.Contains(text, want) {
			t.Errorf("%v: the text lacks %q:\n%s", c.args, want, text)
		}
		if part.Trained.WeightsSHA256 != all.Trained.WeightsSHA256 || part.Tasks != all.Tasks || part.Steps != all.Steps {
			t.Errorf("%v: weights %.12s, %d tasks, %d steps; recorded as a whole %.12s, %d, %d", c.args,
				part.Trained.WeightsSHA256, part.Tasks, part.Steps, all.Trained.WeightsSHA256, all.Tasks, all.Steps)
		}
		sameFiles(t, record.StepsFile, "all", "part")
		// All of 158 samples but 7 and 2, in 22 steps.
		if n := part.Counted; n.Steps != 22 || n.Samples != 149 || n != (record.CountedSummary{Steps: 22, Samples: 149, Seconds: n.Seconds, Joules: n.Joules}) || part.StepS != n.Seconds/22 || part.MakespanS <= n.Seconds || n.Joules <= 0 {
			t.Errorf("%v: step %v s, %v samples/s, run %v s, counted %+v", c.args, part.StepS, *part.SamplesPerS, part.MakespanS, n)
		}
		checkRecordedFiles(t, "part", c.recorded/2-1)
	}
}

// checkRecordedFiles checks those of a run of 2 epochs, with so many recorded steps in each.
func checkRecordedFiles(t *testing.T, dir string, steps int) {
	t.Helper()
	run := must.Get(record.LoadRun(dir))(t)
	predicted, err := run.Predicted()
	if err != nil || predicted == nil {
		t.Fatalf("the run has no prediction (%v)", err)
	}
	if run.Schedule.Steps != steps || predicted.Steps != steps {
		t.Errorf("the schedule has %d steps, its prediction %d; want %d", run.Schedule.Steps, predicted.Steps, steps)
	}
	wantVerified(t, dir)
	wantRepeated(t, dir)
}

// TestLossInTheUnrecordedPart loses the GPU in the third step of an epoch, of which the first
// is recorded. The leg that goes on has recorded steps of its own, so it can be checked, and
// the weights are those of a training without a fault.
func TestLossInTheUnrecordedPart(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", faultyNode())
	training := append(slices.Clone(recordedTraining), "--lowering", "default", "--continue-on-loss=2", "--record", "1", "--json")
	var whole, cut record.Summary
	decodeObject(t, mustRun(t, append(training, "--out", "whole")...), &whole)
	o := flags.Options{Platform: "node.toml", Model: "digits-cnn", Data: "synthetic:1x8x8:79:10", Batch: 7, Epochs: 2, Policy: "heft", DType: "float32"}
	w := must.Get(trainingWorkload(t.Context(), &o))(t)
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
	// One step before the loss; after it, one of either epoch, and two of 2 samples.
	if r := cut.Recorded; r == nil || r.Steps != 5 || r.Of != 24 {
		t.Errorf("recorded %+v, want 5 of 24 steps", r)
	}
	checkRunsInside(t, "cut/"+cut.Losses[0].Run)
}

// TestUnrecordedTotals adds 2 recorded steps of 7 samples, the first of 12 and both of 26 ms and 13 J, which is 0.5 J/ms. Pieces of
// 3, 5 and 5 steps that took 120 ms follow, of 60 J at that power. Without the first step these are 14 steps in 134 ms and 67 J. A piece
// of another graph, which evaluates, counts in the time of the run only.
func TestUnrecordedTotals(t *testing.T) {
	b := dag.NewBuilder("g")
	b.Task(dag.Task{Name: "a"})
	g := must.Get(b.Build())(t)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	o := plan.NewTotals(schedule.Measured, &platform.Platform{})
	piece := func(graph, steps, samples int, recorded, first bool) plan.Piece {
		return plan.Piece{Segment: dag.Segment{Graph: graph, Steps: steps}, Recorded: recorded, First: first, Samples: samples}
	}
	o.Add(plan.Accounted{Schedule: &schedule.Schedule{Steps: 2, Makespan: ms(26), FirstStep: ms(12), Period: ms(13)}, Report: &energy.Report{TotalJoules: 13, Basis: energy.Modelled}}, g, piece(0, 2, 7, true, true))
	if record.Recording(o) != nil || o.Counted != (plan.Counted{Steps: 1, Samples: 7, Time: ms(14), Joules: 7}) {
		t.Errorf("all recorded: %+v, counted %+v", record.Recording(o), o.Counted)
	}
	for _, p := range [][2]int{{3, 30}, {5, 35}, {5, 55}} {
		o.Add(plan.Accounted{Schedule: &schedule.Schedule{Steps: p[0], Makespan: ms(p[1])}}, g, piece(0, p[0], 7, false, false))
	}
	o.Add(plan.Accounted{Schedule: &schedule.Schedule{Steps: 7, Makespan: ms(14)}}, g, piece(1, 7, 0, false, true))
	if o.Run != ms(26+120+14) || o.Tasks != 2+13+7 || math.Abs(o.Joules-73) > 1e-9 {
		t.Errorf("run %v, %d tasks, %v J", o.Run, o.Tasks, o.Joules)
	}
	if c := o.Counted; c.Steps != 14 || c.Samples != 98 || c.Time != ms(134) || math.Abs(c.Joules-67) > 1e-9 {
		t.Errorf("counted %+v, want 14 steps, 98 samples, 134 ms, 67 J", c)
	}
	if r := record.Recording(o); r == nil || *r != (record.RecordSummary{Steps: 2, Of: 15}) {
		t.Errorf("recording %+v, want 2 of 15 steps", r)
	}
	sum := plan.NewTotals(schedule.Measured, &platform.Platform{})
	sum.Include(o)
	sum.Include(o)
	if r := record.Recording(sum); r == nil || r.Steps != 4 || r.Of != 30 || sum.Counted.Steps != 28 {
		t.Errorf("of two legs: %+v, want 4 of 30 steps", r)
	}
}
