package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/nn/npz"
	"dahl/platform"
	"dahl/rundir"
)

// TestInference: simulate, plan and evaluate have one graph of an inference. A plan of one core with whole layers is executed as it is, and comes to
// the loss of the training but for rounding. Of 79 samples a batch has 79 at most, and its joules are those of as many.
func TestInference(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	const of = " --platform laptop --devices cpu:1 --model tiny.toml --data synthetic:1x8x8:79:10 "
	mustRun(t, strings.Fields("execute --policy heft --batch 7 --out run"+of)...)
	mustRun(t, strings.Fields("evaluate run --out evaluated")...)
	mustRun(t, strings.Fields("simulate --inference --policy heft --batch 7 --steps 3 --out predicted"+of)...)
	graphOf := func(dir string) string { return must.Get(record.ReadManifest(dir))(t).Graphs[0].SHA256 }
	if graphOf("evaluated") != graphOf("predicted") {
		t.Error("the graph that is simulated is not the one that is executed")
	}
	text := string(must.Get(rundir.ReadAs(filepath.Join("predicted", rundir.GraphFile), rundir.All))(t))
	if strings.Contains(text, "backward") || strings.Contains(text, "update") {
		t.Error("an inference has gradients")
	}
	s := summaryOf(t, "predicted")
	if r := *s.SamplesPerS * s.StepS; math.Abs(r-7) > 1e-9 || s.Method != "" || s.EpochSamples != 0 {
		t.Errorf("%g samples per step, method %q, %d samples in an epoch", r, s.Method, s.EpochSamples)
	}

	mustRun(t, strings.Fields("plan --inference --batch 100 --objective time --budget 50 --out plan"+of)...)
	mustRun(t, strings.Fields("simulate --inference --batch 100 --plan plan/plan.json --out planned"+of)...)
	mustRun(t, strings.Fields("evaluate run --batch 100 --plan plan/plan.json --out replayed")...)
	wantVerified(t, "plan")
	wantVerified(t, "replayed")
	if g := graphOf("plan"); g != graphOf("planned") || g != graphOf("replayed") {
		t.Error("the graph of the plan is not the one that follows it")
	}
	planned := summaryOf(t, "planned")
	if n, watts := *planned.SamplesPerS*planned.StepS, planned.Counted.Joules/planned.Counted.Seconds; math.Abs(n-79) > 1e-9 || math.Abs(planned.EnergyJ.PerSample*79-watts*planned.StepS) > 1e-9 {
		t.Errorf("%g samples per step with %g J each, at %g W", n, planned.EnergyJ.PerSample, watts)
	}
	a, b := summaryOf(t, "evaluated"), summaryOf(t, "replayed")
	if d := float64(*a.TestLoss - *b.TestLoss); math.Abs(d) > 1e-6 || *a.TestAccuracy != *b.TestAccuracy {
		t.Errorf("the losses differ by %g, the accuracies are %g and %g", d, *a.TestAccuracy, *b.TestAccuracy)
	}
	if p := must.Get(platform.Load(filepath.Join("replayed", rundir.PlatformFile)))(t); len(p.Workers) != 1 {
		t.Errorf("it ran on %d workers", len(p.Workers))
	}

	mustRun(t, strings.Fields("plan --policy heft --batch 7 --out training"+of)...)
	wantRefused(t, "simulate --inference --batch 7 --plan training/plan.json --out no"+of, "it was made for another graph than")
	wantRefused(t, "evaluate run --plan training/plan.json --out no", "it was made for another graph than")
	wantRefused(t, "simulate --inference --model mlp --lr 0.1 --platform laptop", "--inference and --lr exclude each other")
	wantRefused(t, "simulate --inference --graph g.json --platform laptop", "--inference and --graph exclude each other")
}

// TestInferenceOnSeveralGPUs: what dahl chooses for an inference takes no longer than one GPU, and than published strategies over all of them.
func TestInferenceOnSeveralGPUs(t *testing.T) {
	t.Chdir(t.TempDir())
	const of = "simulate --inference --platform nvlink --model vgg11 --batch 64 --devices "
	mustRun(t, strings.Fields(of+"gpu --out chosen")...)
	chosen := summaryOf(t, "chosen").StepS
	for _, other := range []string{"gpu0 --policy heft", "gpu --policy heft", "gpu --policy data-parallel:4", "gpu --policy owt:4", "gpu --policy 1f1b:4x1"} {
		mustRun(t, strings.Fields(of+other+" --out other")...)
		if s := summaryOf(t, "other").StepS; chosen > s*1.0001 {
			t.Errorf("a step takes %g s, and %g by %s", chosen, s, other)
		}
	}
}

// TestSaveONNX: a network that execute or evaluate has written predicts the same to the bit, with a convolution that a batch normalisation
// follows, and keeps the names of its parameters. What has no operator is refused before anything is written.
func TestSaveONNX(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "net.toml", `name = "net"
input = [1, 8, 8]
layer = [{kind = "conv2d", name = "a.b", filters = 5, kernel = 3}, {kind = "batchnorm"}, {kind = "relu"}, {kind = "flatten"}, {kind = "dropout"}, {kind = "dense", outputs = 10}]
`)
	const data = " --data synthetic:1x8x8:79:10 --batch 7 --workers 1 "
	mustRun(t, strings.Fields("execute --model net.toml --save net.onnx --out run"+data)...)
	mustRun(t, strings.Fields("evaluate run --save again.onnx --out evaluated")...)
	mustRun(t, strings.Fields("evaluate net.onnx --save weights.npz --out read"+data)...)
	for _, files := range [][2]string{{"net.onnx", "again.onnx"}, {"evaluated/predictions.csv", "read/predictions.csv"}} {
		if a, b := must.Get(os.ReadFile(files[0]))(t), must.Get(os.ReadFile(files[1]))(t); !bytes.Equal(a, b) {
			t.Errorf("%s and %s differ", files[0], files[1])
		}
	}
	was, is := must.Get(npz.Read("run/weights.npz", nil))(t), must.Get(npz.Read("weights.npz", nil))(t)
	for i, a := range was {
		if b := is[i]; a.Name != b.Name || !slices.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) && !strings.HasSuffix(a.Name, "num_batches_tracked") {
			t.Errorf("%s of %v was written, and %s of %v came back", a.Name, a.Shape, b.Name, b.Shape)
		}
	}

	before := listing(t)
	writeTestFile(t, "tokens.toml", "name = \"t\"\ninput = [3, 5]\nlayer = [{kind = \"flatten\"}, {kind = \"dense\", outputs = 4}]\n")
	wantRefused(t, "execute --model tokens.toml --data synthetic:3x5:9:4 --save t.onnx --out no", `--save t.onnx: model "t": layer "flatten1" (flatten): samples of 3×5; dahl writes ONNX files for images C×H×W, for sequences T×C without a flatten of several positions, and for features`)
	must.Do(t, os.Remove("tokens.toml"))
	wantRefused(t, "evaluate run --save run/net.onnx", "run, which holds a run; name a file elsewhere")
	wantRefused(t, "evaluate run --save dahl-evaluate/net.onnx", "--save dahl-evaluate/net.onnx lies in the directory of the run")
	if after := listing(t); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
