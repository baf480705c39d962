package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// faultyNode is a core and two emulated GPUs, which fail as said; empty: not.
func faultyNode(faults ...string) string {
	text := emulatedNode
	memory := text[strings.LastIndex(text[:strings.Index(text, `name = "own"`)], "[[memory]]"):strings.Index(text, "[[device]]")]
	device := text[strings.LastIndex(text[:strings.Index(text, `name = "g0"`)], "[[device]]"):strings.Index(text, "[[link]]")]
	route := text[strings.Index(text, "[[route]]"):]
	second := func(s string) string { return strings.NewReplacer(`"own"`, `"own1"`, `"g0"`, `"g1"`).Replace(s) }
	text = strings.Replace(text, memory, memory+second(memory), 1)
	text = strings.Replace(text, device, device+second(device), 1) + second(route)
	for i, fault := range faults {
		if name := fmt.Sprintf("name = \"g%d\"\n", i); fault != "" {
			text = strings.Replace(text, name, name+"fault = "+fault+"\n", 1)
		}
	}
	return text
}

// lossyTraining is 2 epochs of 2 steps of 32 samples, one of 6 and the evaluation.
var lossyTraining = strings.Fields("execute --model digits-cnn --data synthetic:1x8x8:70:10 --batch 32 --epochs 2 --optimizer adam --lowering default --json")

// launchesBefore counts the launches on a worker before a step of a segment of the
// training on node.toml: a GPU launches once for each task that its plan lists.
func launchesBefore(t *testing.T, devices, worker string, segment, step int) int {
	t.Helper()
	o := flags.Options{Platform: "node.toml", Devices: devices, Model: "digits-cnn", Data: "synthetic:1x8x8:70:10", Batch: 32, Epochs: 2, Optimizer: "adam", Policy: "heft", DType: "float32"}
	w := must.Get(trainingWorkload(t.Context(), &o))(t)
	id, _ := w.Platform.WorkerByName(worker)
	launches := 0
	for i, seg := range w.Program.Order[:segment+1] {
		if i == segment {
			seg.Steps = step
		}
		launches += seg.Steps * len(w.Decision.Graphs[seg.Graph].Plan.Order[id])
	}
	return launches
}

// trainedOn runs lossyTraining on node.toml and reads its manifest and steps.
func trainedOn(t *testing.T, out string, args ...string) (*record.Manifest, []byte) {
	t.Helper()
	mustRun(t, append(append(lossyTraining, "--platform", "node.toml", "--out", out), args...)...)
	m := must.Get(record.ReadManifest(out))(t)
	steps := must.Get(os.ReadFile(out + "/" + record.StepsFile))(t)
	return m, steps
}

// TestContinueOnLoss lets devices fail at every kind of moment. The training goes on from
// the last step that was kept, and comes to the weights and losses of one without a fault
// on the devices that it began on, to the last bit. GPUs alone begin with a lowering of
// their own, of which other kernels than those for AVX-512 sum in another order.
func TestContinueOnLoss(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", faultyNode())
	type undisturbed struct {
		weights string
		steps   []byte
	}
	wholes := map[string]undisturbed{}
	for _, devices := range []string{"", "gpu"} {
		m, steps := trainedOn(t, "whole"+devices, "--devices", devices)
		wholes[devices] = undisturbed{m.WeightsHash, steps}
	}
	type at struct{ segment, step, launches int } // segments of an epoch: 2 steps, the short one, the evaluation
	type lost struct {
		device       string
		epoch, after int
		graph        string
		on           string
	}
	for _, c := range []struct {
		name    string
		devices string
		every   string
		faults  []at // of g0, and of g1, which counts from 0 when g0 is gone
		kind    string
		want    []lost
	}{
		{"the first launch", "", "", []at{{0, 0, 0}}, "lost", []lost{{"g0", 1, 0, "train", "cpu,g1"}}},
		{"in the middle of an epoch", "", "", []at{{0, 1, 3}}, "lost", []lost{{"g0", 1, 1, "train", "cpu,g1"}}},
		{"out of memory", "", "", []at{{0, 1, 3}}, "memory", []lost{{"g0", 1, 1, "train", "cpu,g1"}}},
		{"two steps are kept at once", "", "=2", []at{{0, 1, 3}}, "lost", []lost{{"g0", 1, 0, "train", "cpu,g1"}}},
		{"in the short last batch", "", "", []at{{1, 0, 2}}, "lost", []lost{{"g0", 1, 2, "train.tail", "cpu,g1"}}},
		{"in an evaluation", "", "", []at{{2, 0, 2}}, "lost", []lost{{"g0", 1, 3, "eval", "cpu,g1"}}},
		{"in the second epoch", "", "", []at{{4, 1, 1}}, "lost", []lost{{"g0", 2, 4, "train", "cpu,g1"}}},
		{"both, one after the other", "", "", []at{{0, 1, 3}, {0, 1, 2}}, "lost", []lost{{"g0", 1, 1, "train", "cpu,g1"}, {"g1", 1, 2, "train.tail", "cpu"}}},
		{"GPUs alone", "gpu", "", []at{{0, 1, 3}}, "lost", []lost{{"g0", 1, 1, "train", "cpu,g1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var faults []string
			for i, f := range c.faults {
				writeTestFile(t, "node.toml", faultyNode())
				devices := c.devices
				if i == 1 {
					devices = "cpu,g1"
				}
				faults = append(faults, fmt.Sprintf("{ after = %d, kind = %q }", launchesBefore(t, devices, fmt.Sprint("g", i), f.segment, f.step)+f.launches, c.kind))
			}
			writeTestFile(t, "node.toml", faultyNode(faults...))
			m, steps := trainedOn(t, "e", "--continue-on-loss"+c.every, "--devices", c.devices)
			whole := wholes[c.devices]
			if m.WeightsHash != whole.weights || !bytes.Equal(steps, whole.steps) || !m.Complete {
				t.Errorf("weights %.12s, want %.12s; steps\n%s\nwant\n%s", m.WeightsHash, whole.weights, steps, whole.steps)
			}
			if len(m.Losses) != len(c.want) {
				t.Fatalf("losses %+v, want %+v", m.Losses, c.want)
			}
			for i, w := range c.want {
				l := m.Losses[i]
				if got := (lost{l.Device, l.Epoch, l.AfterStep, l.Graph, l.Devices}); got != w || l.Task == "" || l.State == "" || l.Cause == "" {
					t.Errorf("loss %+v, want %+v", l, w)
				}
				if l.Run != "" {
					checkRunsInside(t, "e/"+l.Run)
				}
			}
			wantVerified(t, "e")
		})
	}
}

// checkRunsInside reads the part of a run that followed a loss.
func checkRunsInside(t *testing.T, dir string) {
	t.Helper()
	wantVerified(t, dir)
	mustRun(t, "compare", dir)
	wantRefused(t, "rerun "+dir, afterLossCommand)
}

// TestRerunOfALoss repeats a run with its loss, into the directory of another.
func TestRerunOfALoss(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", faultyNode(`{ after = 40, kind = "lost" }`))
	trainedOn(t, "e", "--continue-on-loss")
	trainedOn(t, "again", "--continue-on-loss")
	wantRepeated(t, "e", "--out", "again")
}

// TestLossEndsTheRun: without --continue-on-loss, or with no other device, a device that
// fails ends the run with one line and what was done. With it the weights are those of the
// last step that was kept.
func TestLossEndsTheRun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", faultyNode())
	line := strings.Fields("execute --platform node.toml --model digits-cnn --batch 32 --shuffle=false --devices g0 --json")
	mustRun(t, append(line, "--limit", "64", "--out", "two")...)
	two := must.Get(record.ReadManifest("two"))(t)
	o := flags.Options{Platform: "node.toml", Devices: "g0", Model: "digits-cnn", Limit: 128, Batch: 32, Policy: "heft", DType: "float32", Epochs: 1}
	w := must.Get(trainingWorkload(t.Context(), &o))(t)
	id, _ := w.Platform.WorkerByName("g0")
	perStep := len(w.Decision.Graphs[0].Plan.Order[id])
	writeTestFile(t, "node.toml", faultyNode(fmt.Sprintf("{ after = %d, kind = \"lost\" }", 2*perStep+5)))
	for _, survive := range []bool{false, true} {
		args := append(line, "--limit", "128", "--out", "cut")
		if survive {
			args = append(args, "--continue-on-loss")
		}
		r := wantEnd(t, cli.ExitFailed, strings.Join(args, " "), `device "g0"`, `graph "train"`, "issued and not done", "the device is lost", "what was done is in cut")
		m := must.Get(record.ReadManifest("cut"))(t)
		if m.Complete {
			t.Error("the run is called complete")
		}
		if survive && (m.WeightsHash != two.WeightsHash || !strings.Contains(r.stderr, "no device is left")) {
			t.Errorf("weights %.12s, want those of two steps, %.12s; %s", m.WeightsHash, two.WeightsHash, r.stderr)
		}
	}
}

// TestInterruptedOnDevices ends a training on a core and two emulated GPUs, also one that
// would go on without them: what was done is written, and no goroutine stays.
func TestInterruptedOnDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", faultyNode())
	for _, args := range [][]string{nil, {"--continue-on-loss"}} {
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for ctx.Err() == nil { // until the run directory says that the training began
				if _, err := os.Stat("cut/.staging/" + rundir.ManifestName); err == nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		r := dahl(t, ctx, append(strings.Fields("execute --platform node.toml --model digits-cnn --epochs 50000 --out cut"), args...)...)
		cancel()
		if r.code != cli.ExitInterrupted || !strings.Contains(r.stderr, "dahl: interrupted: ") || !strings.Contains(r.stderr, "what was done is in cut") {
			t.Errorf("exit code %d, %q", r.code, r.stderr)
		}
		m := must.Get(record.ReadManifest("cut/.staging"))(t)
		if m.Complete || m.WeightsHash == "" || len(m.Losses) > 0 {
			t.Errorf("manifest %+v", m)
		}
		for range 60_000 { // a goroutine that has ended is counted for a moment
			if runtime.NumGoroutine() <= before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if n := runtime.NumGoroutine(); n > before {
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines, %d before\n%s", n, before, stacks[:runtime.Stack(stacks, true)])
		}
		must.Do(t, os.RemoveAll("cut"))
	}
}
