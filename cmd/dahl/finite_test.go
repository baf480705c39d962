package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/must"
	"dahl/nn/npz"
	"dahl/plan"
	"dahl/rundir"
	"dahl/train"
	"dahl/train/metrics"
)

// divergingNetwork has a dense layer after a dense layer, so that weights of 1e20 make sums
// of some 1e20 in the first and more than 3.4e38 in the second.
const divergingNetwork = `
name = "two"
input = [1, 8, 8]
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 7
name = "a"
[[layer]]
kind = "dense"
outputs = 10
name = "b"
`

// TestDivergenceEndsTraining lets trainings diverge at their first step, at a later one, on
// an evaluation and on a device. Each ends with exit code 1, and all its files are of the
// steps before: verify and compare take them, and no JSON has a word for NaN.
func TestDivergenceEndsTraining(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", divergingNetwork)
	writeTestFile(t, "node.toml", emulatedNode)
	const train = "execute --json --model two.toml --data digits --batch 64 "
	for _, c := range []struct {
		name, args string
		want       []string // of the message
		step       int      // of the loss; 0: found by letting the training go on
		kept       int      // -1: those of the step before
	}{
		{"the first step", "--init uniform:1e20:2e20", []string{"loss of step 1 is ", "from layer b in step 1", "task b.forward", "those it began with"}, 1, 0},
		{"a later step", "--lr 1e4", []string{"from layer "}, 0, -1},
		{"a policy that decides at run time", "--lr 1e4 --policy eager", []string{"from layer "}, 0, -1},
		{"a device", "--lr 1e4 --platform node.toml --devices cpu,gpu --policy heft", []string{"what devices write in a step is not looked through"}, 0, -1},
		{"with devices that may fail", "--lr 1e4 --platform node.toml --devices cpu --continue-on-loss", []string{"from layer "}, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.step == 0 {
				c.step = firstNotFiniteStep(t, strings.Fields(train+c.args+" --continue-on-nan --out on"))
			}
			wantEnd(t, cli.ExitFailed, train+c.args+" --out run", append(c.want, fmt.Sprintf("the loss of step %d is ", c.step), "--continue-on-nan", "what was done is in run")...)
			if c.kept < 0 {
				c.kept = c.step - 1
			}
			checkDiverged(t, "run", c.step, c.kept)
		})
	}
}

// firstNotFiniteStep trains to the end and finds the step in the losses.
func firstNotFiniteStep(t *testing.T, args []string) int {
	t.Helper()
	mustRun(t, args...)
	checkJSON(t, "on")
	f := must.Get(os.Open("on/" + record.StepsFile))(t)
	defer f.Close()
	steps := must.Get(metrics.ReadSteps(f))(t)
	for _, s := range steps {
		if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) {
			m, err := record.ReadManifest("on")
			if err != nil || !m.Complete || m.Diverged == nil || m.Diverged.Step != s.Step {
				t.Errorf("manifest (%v) says %+v, want step %d of a complete run", err, m.Diverged, s.Step)
			}
			return s.Step
		}
	}
	t.Fatal("the training did not diverge")
	return 0
}

// checkDiverged reads a run that ended at the loss of a step.
func checkDiverged(t *testing.T, dir string, step, kept int) {
	t.Helper()
	checkJSON(t, dir)
	m := must.Get(record.ReadManifest(dir))(t)
	if m.Complete || m.Diverged == nil || m.Diverged.Step != step || m.Diverged.KeptStep != kept {
		t.Errorf("manifest: complete %v, %+v; want step %d and the weights of step %d", m.Complete, m.Diverged, step, kept)
	}
	s := must.Get(cli.ReadJSON[record.Summary](filepath.Join(dir, record.SummaryFile)))(t)
	if s.Steps != max(1, kept) { // the first step is written, since there is no other
		t.Errorf("the summary is of %d steps, want %d", s.Steps, max(1, kept))
	}
	arrays := must.Get(npz.Read(filepath.Join(dir, record.WeightsFile), nil))(t)
	for _, a := range arrays {
		if i := slices.IndexFunc(a.Float64s(), func(v float64) bool { return !record.IsFinite(v) }); i >= 0 {
			t.Errorf("weights %s[%d] = %v", a.Name, i, a.Float64s()[i])
		}
	}
	wantVerified(t, dir)
	decoded[plan.Comparison](t, mustRun(t, "compare", dir, "--json"))
	for _, name := range []string{"gantt.svg", "compare.svg", rundir.PredictedFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantRefused(t, "rerun "+dir, "ended early, since ")
}

// checkJSON parses all JSON of a run; NaN is no JSON.
func checkJSON(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, path := range files {
		if data, err := os.ReadFile(path); err != nil || !json.Valid(data) {
			t.Errorf("%s is not JSON (%v)", path, err)
		}
	}
}

// TestTestLossNotFinite: with weights of 1e15 the loss of the only step is some 1e33. Its
// gradients are of 1e15 for a and 1e17 for b, so that a rate of 1e9 makes weights of 1e24
// and 1e26, whose products are beyond 3.4e38.
func TestTestLossNotFinite(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", divergingNetwork)
	wantEnd(t, cli.ExitFailed, "execute --model two.toml --data digits --batch 64 --limit 64 --init uniform:1e15:2e15 --lr 1e9 --out run",
		"the test loss after step 1 is NaN; the first values that are not finite come from layer b in the test set")
	checkDiverged(t, "run", 1, 1)
}

// TestUpdateNotFinite: all weights are below 0 but for one in 1e5, so that the first layer gives 0 behind a ReLU and the
// loss is that of the last biases, of at most 1e30. A rate and a decay of 1e9 make 1 - 1e18 times as much of the weights,
// of which those above 3.4e20 are beyond 3.4e38 then. The only step does so, whose loss does not show it. With a test set
// and without, the run ends with the weights that it began with, in all places.
func TestUpdateNotFinite(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", strings.Replace(divergingNetwork, "name = \"a\"\n", "name = \"a\"\n[[layer]]\nkind = \"relu\"\n", 1))
	const line = "execute --model two.toml --limit 32 --batch 32 --optimizer adamw --lr 1e9 --weight-decay 1e9 --init uniform:-1e30:1e25 --save w.npz --out run --data "
	const names = "after step 1 these weights are not finite: a.weight, a.bias, b.weight, b.bias"
	writeTestFile(t, "notest/train-images-idx3-ubyte", "\x00\x00\x08\x03\x00\x00\x00\x20\x00\x00\x00\x08\x00\x00\x00\x08"+strings.Repeat("\x01\x02\x03\x04", 32*16))
	writeTestFile(t, "notest/train-labels-idx1-ubyte", "\x00\x00\x08\x01\x00\x00\x00\x20"+strings.Repeat("\x00\x01\x07\x09", 8))
	for _, data := range []string{"notest", "digits"} {
		wantEnd(t, cli.ExitFailed, line+data, names+"; the first values that are not finite come from layer ", "the weights kept are those it began with", "--continue-on-nan")
		checkDiverged(t, "run", 1, 0)
		if saved, err := npz.Read("w.npz", nil); err != nil || train.HashOf(saved) != manifestOf(t, "run").WeightsHash {
			t.Errorf("%s: the weights of --save are others: %v", data, err)
		}
		if s := rundir.Look("run"); s.Step > 0 {
			t.Errorf("%s: it can be resumed, and would end in the same way: %+v", data, s)
		}
	}
	wantEnd(t, cli.ExitOK, line+"notest --continue-on-nan", names+"; --continue-on-nan goes on")
}

// TestInitRefusesNumbersNotFinite: a weight that is not finite, or not in the type that the
// network has, is named with its index.
func TestInitRefusesNumbersNotFinite(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", divergingNetwork)
	weights := func(bad float64) []npz.Array {
		a := make([]float64, 7*64)
		a[3*64+5] = bad
		return []npz.Array{
			npz.NewArray("a.weight", dag.Float64, []int{7, 64}, a), npz.NewArray("a.bias", dag.Float64, []int{7}, make([]float64, 7)),
			npz.NewArray("b.weight", dag.Float64, []int{10, 7}, make([]float64, 70)), npz.NewArray("b.bias", dag.Float64, []int{10}, make([]float64, 10)),
		}
	}
	for _, c := range []struct {
		value float64
		dtype string
		want  string // empty means that it is taken
	}{
		{math.NaN(), "float32", `array "a.weight" has NaN at [3 5]`},
		{math.Inf(-1), "float64", `array "a.weight" has -Inf at [3 5]`},
		{1e39, "float32", `array "a.weight" has 1e+39 at [3 5]`}, // beyond 3.4e38
		{1e39, "float64", ""},
	} {
		must.Do(t, npz.Write("w.npz", weights(c.value)))
		code := cli.ExitBadInput
		if c.want == "" {
			code = cli.ExitOK
		}
		wantEnd(t, code, "execute --model two.toml --data digits --limit 64 --init w.npz --continue-on-nan --dtype "+c.dtype, c.want)
	}
}
