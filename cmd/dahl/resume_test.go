package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
	"dahl/rundir/durable"
	"dahl/train"
	"dahl/train/metrics"
)

// shortTraining is of 4 epochs of 4 steps of 31 samples and one of 3 (127 = 4·31 + 3). The digits would have 1,797 samples to test it by.
const shortTraining = "execute --model digits-cnn --data synthetic:1x8x8:127:10 --batch 31 --epochs 4 --seed 5 --checkpoint every=3steps"

// cutAfter runs a command line that ends when the checkpoint after a step is kept.
func cutAfter(t *testing.T, step string, args ...string) {
	t.Helper()
	r := cutAt(t, step, args...)
	if r.code != cli.ExitInterrupted || !strings.Contains(r.failure(), "what was done is in "+filepath.FromSlash("cut/.staging")+"; go on with dahl execute --resume cut") {
		t.Fatalf("exit code %d, %q", r.code, r.stderr)
	}
}

// cutAt runs a command line that is told to end when the checkpoint after a step is kept.
func cutAt(t *testing.T, step string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	durable.Fault = func(op durable.Op, path string) error {
		if op == durable.OpRename && strings.HasSuffix(filepath.ToSlash(path), "/checkpoints/"+step) {
			cancel()
		}
		return nil
	}
	defer func() { durable.Fault = nil }()
	return dahl(t, ctx, args...)
}

func manifestOf(t *testing.T, dir string) *record.Manifest {
	t.Helper()
	return must.Get(record.ReadManifest(dir))(t)
}

func epochsOf(t *testing.T, dir string) []metrics.Epoch {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(dir, record.EpochsFile)))(t)
	defer f.Close()
	epochs := must.Get(metrics.ReadEpochs(f))(t)
	for i := range epochs { // what time has to do with
		epochs[i].Seconds, epochs[i].Joules = 0, 0
	}
	return epochs
}

// TestResumeRun interrupts a training twice and goes on with it on other numbers of cores, with
// another policy, and from the checkpoint before a damaged one: weights, losses and epochs are
// those of the undisturbed run, and the run is sound and can be repeated.
func TestResumeRun(t *testing.T) {
	t.Chdir(t.TempDir())
	start := strings.Fields(shortTraining)
	mustRun(t, append(start, "--out", "whole")...)
	cutAfter(t, "6", append(start, "--out", "cut")...)
	wantState(t, "cut", "interrupted after step 6, resume with dahl execute --resume cut", false)
	cutAfter(t, "15", "execute", "--resume", "cut", "--workers", "1")
	newest := filepath.Join("cut", ".staging", "checkpoints", "15")
	data := must.Get(os.ReadFile(newest))(t)
	data[len(data)/2] ^= 1
	must.Do(t, os.WriteFile(newest, data, 0o666))
	wantEnd(t, cli.ExitOK, "execute --resume cut --policy eager", "resumed   after step 12, in epoch 3\n", "a checkpoint cannot be read; the one before it is taken")
	whole, cut := manifestOf(t, "whole"), manifestOf(t, "cut")
	if cut.WeightsHash != whole.WeightsHash || !cut.Complete || !slices.Equal(cut.Resumed, []record.Resumption{{AfterStep: 6, Alike: true}, {AfterStep: 12, Alike: true}}) {
		t.Errorf("weights %.12s, want %.12s; complete %v, resumed %v", cut.WeightsHash, whole.WeightsHash, cut.Complete, cut.Resumed)
	}
	sameFiles(t, record.StepsFile, "cut", "whole")
	if a, b := epochsOf(t, "cut"), epochsOf(t, "whole"); len(b) != 4 || !slices.Equal(a, b) {
		t.Errorf("epochs\n%+v\nwant\n%+v", a, b)
	}
	mustRun(t, "verify", "cut")
	mustRun(t, "rerun", "cut")
	if _, err := os.Stat("cut/.staging"); err == nil {
		t.Error("the stage is left")
	}
}

// TestResumeSchedule trains with all that changes a step, and goes on for more epochs: the rates and
// weights are those of a training that was to have so many from the start. Each setting counts.
func TestResumeSchedule(t *testing.T) {
	t.Chdir(t.TempDir())
	flags := []string{"--optimizer", "adamw", "--schedule", "cosine over=13steps warmup=4steps from=0.25", "--label-smoothing", "0.125", "--clip-norm", "0.5"}
	start := append(strings.Fields(shortTraining), flags...)
	mustRun(t, append(start, "--out", "whole")...)
	mustRun(t, append(start, "--out", "run", "--epochs", "3")...)
	wantRefused(t, "execute --resume run", "all 3 epochs are done; to go on, ask for more with --epochs")
	wantVerified(t, "run")
	wantRefused(t, "execute --resume run --epochs 4 --schedule constant", "--schedule is fixed from the start of a training")
	mustRun(t, "execute", "--resume", "run", "--epochs", "4")
	whole := manifestOf(t, "whole")
	if a := manifestOf(t, "run"); a.WeightsHash != whole.WeightsHash {
		t.Errorf("weights %.12s, want %.12s", a.WeightsHash, whole.WeightsHash)
	}
	sameFiles(t, record.StepsFile, "run", "whole")
	wantVerified(t, "run")
	mustRun(t, "rerun", "run")
	s, err := cli.ReadJSON[record.Summary](filepath.Join("whole", record.SummaryFile))
	const method = "adamw lr=0.001 beta1=0.9 beta2=0.999 eps=1e-08 weight_decay=0.01 decoupled=1; " +
		"schedule cosine over=13steps min=0 warmup=4steps from=0.25; loss cross_entropy label_smoothing=0.125; clip_norm=0.5"
	if err != nil || s.Method != method {
		t.Errorf("summary.json says %q, want %q: %v", s.Method, method, err)
	}
	for i := 0; i < len(flags); i += 2 {
		mustRun(t, append(append(strings.Fields(shortTraining), "--out", "without"), slices.Concat(flags[:i], flags[i+2:])...)...)
		if manifestOf(t, "without").WeightsHash == whole.WeightsHash {
			t.Errorf("%s changes nothing", flags[i])
		}
	}
}

// TestResumeOtherwise goes on with other tiles, which is said, and is kept in the manifest.
func TestResumeOtherwise(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", smallNetwork)
	cutAfter(t, "3", append(strings.Fields(strings.Replace(shortTraining, "digits-cnn", "small.toml", 1)), "--out", "cut")...)
	wantEnd(t, cli.ExitOK, "execute --resume cut --variant ref --epochs 2", "the training goes on with other kernels: its weights may differ in their last bits")
	m := manifestOf(t, "cut")
	if !slices.Equal(m.Resumed, []record.Resumption{{AfterStep: 3}}) || m.Options.Epochs != 2 {
		t.Errorf("resumed %v, %d epochs", m.Resumed, m.Options.Epochs)
	}
	mustRun(t, "verify", "cut")
}

// noteRows writes another number of rows of steps into a checkpoint. What it returns takes that back.
func noteRows(t *testing.T, path string, rows int) (restore func()) {
	t.Helper()
	before := must.Get(os.ReadFile(path))(t)
	c := must.Get(train.DecodeCheckpoint(bytes.NewReader(before), int64(len(before))))(t)
	var note kept
	must.Do(t, json.Unmarshal(c.Note, &note))
	note.Steps.Rows = rows
	c.Note = must.Get(json.Marshal(&note))(t)
	var changed bytes.Buffer
	must.Do(t, c.Encode(&changed))
	must.Do(t, os.WriteFile(path, changed.Bytes(), 0o666))
	return func() { must.Do(t, os.WriteFile(path, before, 0o666)) }
}

// TestResumeRefused: what cannot go on is one line and exit code 2, and leaves the training as it is.
func TestResumeRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", smallNetwork)
	mustRun(t, "simulate", "--platform", "laptop", "--model", "mlp", "--out", "finished")
	cutAfter(t, "3", append(strings.Fields(strings.Replace(shortTraining, "digits-cnn", "small.toml", 1)), "--out", "cut")...)
	refuse := func(want string, args ...string) {
		t.Helper()
		wantRefused(t, strings.Join(append([]string{"execute"}, args...), " "), want)
		if s := rundir.Look("cut"); s.Step != 3 || s.Holder != "" {
			t.Fatalf("%v: the training is %+v", args, s)
		}
	}
	refuse("--lr is fixed from the start of a training", "--resume", "cut", "--lr", "0.5")
	refuse("--out is fixed from the start of a training", "--resume", "cut", "--out", "other")
	refuse("there is nothing to resume", "--resume", "finished")
	refuse("no such file or directory", "--resume", "nowhere")
	refuse("--checkpoint 7: write every=100steps", "--model", "mlp", "--checkpoint", "7")
	refuse("--checkpoint every=0steps: write steps or a time", "--model", "mlp", "--checkpoint", "every=0steps")
	for _, rows := range []int{-5, 2, 4} { // three steps have been kept
		restore := noteRows(t, filepath.Join("cut", ".staging", "checkpoints", "3"), rows)
		refuse(fmt.Sprintf("reading %s: it has 3 rows, and the checkpoint says %d; the checkpoint is damaged", record.StepsFile, rows), "--resume", "cut")
		restore()
	}
	writeTestFile(t, "small.toml", strings.Replace(smallNetwork, "filters = 3", "filters = 5", 1))
	refuse("small.toml has changed since the training began\n", "--resume", "cut")
}
