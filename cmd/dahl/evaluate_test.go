package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/must"
	"dahl/nn/data"
	"dahl/nn/npz"
	"dahl/nn/weights"
)

func summaryOf(t *testing.T, dir string) *record.Summary {
	t.Helper()
	return must.Get(cli.ReadJSON[record.Summary](filepath.Join(dir, record.SummaryFile)))(t)
}

// another is a GPU beside the one of emulatedNode.
const another = `[[memory]]
name = "more"
capacity = "64 MB"
bandwidth = "50 GB/s"
[[device]]
name = "g1"
kind = "emulated"
memory = "more"
speed = { float32 = "10 GF/s" }
copy_engines = { in = 1, out = 1 }
power = { idle = "3 W", busy = "7 W" }
[[route]]
from = "ram"
to = "more"
links = ["bus"]
`

// TestEvaluateRun: loss and accuracy are the last ones of the training to the bit, on one core, on a core with an emulated GPU and on two such GPUs that share the
// samples, where the last batch is short. With other data they are other ones. Predictions and the printed matrix agree with them, and all repeats.
func TestEvaluateRun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	writeTestFile(t, "two.toml", emulatedNode+another)
	const trained = "execute --model digits-cnn --data synthetic:1x8x8:79:10 --batch 7 --epochs 2 --policy heft "
	for dir, flags := range map[string]string{"cores": "--workers 1", "both": "--platform node.toml", "shared": "--platform two.toml --policy data-parallel:2", "chosen": "--platform node.toml --policy best", "float64": "--workers 1 --dtype float64"} {
		mustRun(t, strings.Fields(trained+flags+" --out "+dir)...)
		text := mustRun(t, "evaluate", dir)
		was, is := summaryOf(t, dir), summaryOf(t, "dahl-evaluate")
		if *was.TestLoss != *is.TestLoss || *was.TestAccuracy != *is.TestAccuracy {
			t.Errorf("%s: loss %v and accuracy %v; at the end of the training %v and %v", dir, *is.TestLoss, *is.TestAccuracy, *was.TestLoss, *was.TestAccuracy)
		}
		// 79 samples are 11 steps of 7 and one of 2, and the first of each does not count.
		if c := is.Counted; c.Steps != 10 || c.Samples != 70 || is.SamplesPerS == nil || is.EnergyJ.PerSample <= 0 {
			t.Errorf("%s: counted %+v, %v samples/s, %v J", dir, c, is.SamplesPerS, is.EnergyJ.PerSample)
		}
		rows := readTable(t, filepath.Join("dahl-evaluate", record.PredictionsFile))
		correct := 0
		for _, row := range rows {
			if row["label"] == row["predicted"] {
				correct++
			}
		}
		if len(rows) != 79 || float64(correct)/79 != *is.TestAccuracy {
			t.Errorf("%s: %d predictions, %d of them correct, and an accuracy of %v", dir, len(rows), correct, *is.TestAccuracy)
		}
		must.Contain(t, text, "\npredicted   ", fmt.Sprintf("(%d of 79)\n", correct))
		mistakes := string(must.Get(os.ReadFile(filepath.Join("dahl-evaluate", record.MistakesFile)))(t))
		if n := strings.Count(mistakes, "<image"); n != min(79-correct, record.MostMistakesDrawn) {
			t.Errorf("%s: the sheet has %d of %d mistakes", dir, n, 79-correct)
		}
		wantVerified(t, "dahl-evaluate")
		mustRun(t, "rerun", "dahl-evaluate")
	}
	mustRun(t, strings.Fields("evaluate cores --data synthetic:1x8x8:50:10 --out other")...)
	if *summaryOf(t, "other").TestLoss == *summaryOf(t, "cores").TestLoss {
		t.Error("the loss of other data is the same")
	}
	// Layers are cut for a batch of their own, as those of a file of weights are.
	mustRun(t, strings.Fields("evaluate cores --batch 1 --out one")...)
	mustRun(t, strings.Fields("evaluate cores/weights.npz --model digits-cnn --data synthetic:1x8x8:79:10 --batch 1 --workers 1 --out file")...)
	one, file := must.Get(record.ReadManifest("one"))(t).Lowering, must.Get(record.ReadManifest("file"))(t).Lowering
	if !reflect.DeepEqual(one, file) || reflect.DeepEqual(one, must.Get(record.ReadManifest("cores"))(t).Lowering) {
		t.Errorf("one sample per step is cut as %+v, of a file of weights as %+v", one, file)
	}
}

// TestEvaluateByHand multiplies samples by the weights of a dense layer: predictions are the greatest products, with their softmax.
func TestEvaluateByHand(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	mustRun(t, strings.Fields("execute --model tiny.toml --data synthetic:1x8x8:23:10 --batch 5 --workers 1 --save w.safetensors --out run")...)
	mustRun(t, strings.Fields("evaluate w.safetensors --model tiny.toml --data synthetic:1x8x8:23:10 --batch 4 --workers 1 --dtype float64 --outputs said.npz")...)
	said := must.Get(weights.Read("said.npz", nil))(t)[0]
	if said.Name != "outputs" || !slices.Equal(said.Shape, []int{23, 10}) {
		t.Fatalf("%s of %v", said.Name, said.Shape)
	}
	var w, b []float64
	for _, a := range must.Get(weights.Read("w.safetensors", nil))(t) {
		if values := a.Float64s(); len(a.Shape) == 2 {
			w = values
		} else {
			b = values
		}
	}
	d := must.Get(data.Open("synthetic:1x8x8:23:10", data.Options{Split: data.Test}))(t).As(dag.Float64)
	samples := make([]byte, d.Len()*d.SampleBytes())
	must.Do(t, d.Fill(samples))
	for i, row := range readTable(t, filepath.Join("dahl-evaluate", record.PredictionsFile)) {
		best, outputs := 0, make([]float64, 10)
		for c := range outputs {
			outputs[c] = b[c]
			for k := range 64 {
				outputs[c] += w[c*64+k] * float64(samples[i*64+k]) / d.Divisor
			}
			if got := said.Float64s()[i*10+c]; math.Abs(got-outputs[c]) > 1e-9 {
				t.Errorf("sample %d, output %d: %v, want %v", i, c, got, outputs[c])
			}
			if outputs[c] > outputs[best] {
				best = c
			}
		}
		sum := 0.0
		for _, z := range outputs {
			sum += math.Exp(z - outputs[best])
		}
		p := must.Get(strconv.ParseFloat(row["probability"], 64))(t)
		if row["index"] != fmt.Sprint(i) || row["label"] != fmt.Sprint(d.Labels[i]) || row["predicted"] != fmt.Sprint(best) || math.Abs(p*sum-1) > 1e-6 {
			t.Errorf("%v, want sample %d, label %d, class %d with probability %v", row, i, d.Labels[i], best, 1/sum)
		}
	}
}

// TestEvaluateRefuses: what cannot be evaluated is one line and exit code 2, and leaves nothing.
func TestEvaluateRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	mustRun(t, strings.Fields(tinyTraining+"--save w.npz --out run")...)
	mustRun(t, strings.Fields("simulate --platform laptop --model tiny.toml --policy heft --steps 1 --out sim")...)
	before := listing(t)
	for line, want := range map[string]string{
		"evaluate":                    "the directory of a training, a file of weights, or an .onnx file; no argument is given",
		"evaluate nowhere":            "nowhere: no such directory or file",
		"evaluate sim":                "sim has no weights.npz: it is a run of simulate",
		"evaluate w.npz":              "w.npz has weights without their network; name it with --model",
		"evaluate w.npz --model mlp":  "that of the parameter of network mlp is",
		"evaluate run --batch -1":     "batch",
		"evaluate run --out run":      "name another",
		"evaluate run --data nowhere": "nowhere",
		"evaluate run --dtype int8":   "int8",
	} {
		wantRefused(t, line, want)
	}
	if after := listing(t); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	writeTestFile(t, "tiny.toml", tinyNetwork+"# changed\n")
	wantRefused(t, "evaluate run", "tiny.toml has changed since the run; name the network with --model")
	must.Do(t, os.WriteFile("run/weights.npz", []byte("no weights"), 0o666))
	wantRefused(t, "evaluate run --model tiny.toml", "weights.npz")
}

// TestEvaluateIgnoredLabels: three of five labels count, and the accuracy is of these. The shares of the printed matrix and of a drawn one are theirs, too.
func TestEvaluateIgnoredLabels(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork+"[train]\nignored_labels = true\n")
	mustRun(t, strings.Fields("execute --model tiny.toml --data synthetic:1x8x8:23:10 --batch 5 --workers 1 --save w.npz --out run")...)
	x := npz.Array{Name: "x", Type: dag.Uint8, Shape: []int{5, 1, 8, 8}, Data: make([]byte, 5*64)}
	must.Do(t, npz.Write("set.npz", []npz.Array{x, npz.NewArray("y", dag.Int64, []int{5}, []float64{-1, 0, 1, -1, 2})}))
	text := mustRun(t, strings.Fields("evaluate w.npz --model tiny.toml --data set.npz --batch 2 --workers 1 --out said")...)
	correct := 0
	for _, row := range readTable(t, filepath.Join("said", record.PredictionsFile)) {
		if row["label"] == row["predicted"] {
			correct++
		}
	}
	if got := *summaryOf(t, "said").TestAccuracy; got != float64(correct)/3 {
		t.Errorf("%d of 3 are correct, and the accuracy is %v", correct, got)
	}
	must.Contain(t, text, fmt.Sprintf("(%d of 3)\n", correct))
	if n := strings.Count(string(must.Get(os.ReadFile(filepath.Join("said", record.MistakesFile)))(t)), "<image"); n != 3-correct {
		t.Errorf("the sheet has %d mistakes of %d", n, 3-correct)
	}
	mustRun(t, "plot", "said", "confusion")
}
