package peer

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/models"
	"dahl/train"
)

// pythonForTests is the interpreter that DAHL_PYTHON names, else the one on the path.
func pythonForTests() string {
	if p := os.Getenv("DAHL_PYTHON"); p != "" {
		return p
	}
	return "python3"
}

// workload is a small training on this machine, on its processors alone.
func workload(t *testing.T, m *nn.Model, data string, limit int, o train.Options) *train.Workload {
	t.Helper()
	d := must.Get(train.OpenData(data, limit, 0))(t)
	p := must.Get(hardware.Detect())(t)
	return must.Get(train.New(m, d, p, o))(t)
}

// everyKind has a layer of every kind but dropout: windows that differ between rows and columns, pads that differ from side to
// side, groups, dilation, and values that several layers read.
const everyKind = `
name = "every-kind"
input = [2, 11, 13]
[train]
%s
[[layer]]
kind = "conv2d"
name = "stem.0"
filters = 6
kernel = [3, 5]
pad = [1, 2]
[[layer]]
kind = "batchnorm"
[[layer]]
kind = "relu"
[[layer]]
kind = "conv2d"
filters = 6
kernel = 3
pad = [2, 0, 0, 2]
groups = 2
bias = false
[[layer]]
kind = "tanh"
[[layer]]
kind = "add"
input = ["relu1", "tanh1"]
[[layer]]
kind = "maxpool"
size = [2, 3]
stride = [1, 2]
pad = [1, 0, 0, 1]
[[layer]]
kind = "conv2d"
filters = 5
kernel = 3
pad = 2
dilation = 2
[[layer]]
kind = "gelu"
[[layer]]
kind = "concat"
input = ["pool1", "gelu1"]
[[layer]]
kind = "avgpool"
size = [3, 2]
stride = [2, 1]
pad = [1, 0]
[[layer]]
kind = "leaky_relu"
slope = 0.125
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 7
[[layer]]
kind = "sigmoid"
[[layer]]
kind = "globalavgpool"
input = ["leaky_relu1"]
[[layer]]
kind = "flatten"
[[layer]]
kind = "gelu_tanh"
[[layer]]
kind = "silu"
[[layer]]
kind = "multiply"
input = ["gelu_tanh1", "silu1"]
[[layer]]
kind = "concat"
input = ["sigmoid1", "multiply1"]
[[layer]]
kind = "dense"
outputs = 5
bias = false
`

// everyTokens is a network of tokens with a label for each position, and the layers that everyKind lacks. Its last layer has the table of
// its first.
const everyTokens = `
name = "every-tokens"
input = [7]
[train]
%s
[[layer]]
kind = "embedding"
name = "wte"
tokens = 11
width = 6
[[layer]]
kind = "positions"
[[layer]]
kind = "segments"
input = ["input"]
token = 3
[[layer]]
kind = "embedding"
tokens = 2
width = 6
[[layer]]
kind = "add"
input = ["positions1", "embed2"]
name = "sum"
[[layer]]
kind = "layernorm"
[[layer]]
kind = "dense"
outputs = 24
[[layer]]
kind = "rotary"
heads = 3
width = 4
name = "turned"
[[layer]]
kind = "mask"
input = ["input"]
token = 5
name = "mask"
[[layer]]
kind = "attention"
input = ["turned", "mask"]
heads = 2
key_heads = 2
window = 3
[[layer]]
kind = "dense"
outputs = 18
[[layer]]
kind = "attention"
heads = 3
causal = true
[[layer]]
kind = "pixels"
[[layer]]
kind = "pixels"
[[layer]]
kind = "rmsnorm"
[[layer]]
kind = "dense"
outputs = 11
bias = false
weights_of = "wte"
`

// trainings are ways to train it.
var trainings = map[string]string{
	"nesterov": "optimizer = 'sgd'\nlr = 0.125\nmomentum = 0.75\nweight_decay = 0.0625\nnesterov = true\nschedule = 'step every=3steps gamma=0.5'",
	"adam":     "optimizer = 'adam'\nlr = 0.03125\nweight_decay = 0.0625\nclip_norm = 0.75\nloss = 'mse'",
	"groups":   "optimizer = 'adamw'\nlr = 0.03125\nweight_decay = 0.25\ndecay_dims = 2\nclip_norm = 0.75",
	"tokens":   "optimizer = 'adamw'\nlr = 0.03125\nweight_decay = 0.25\ndecay_dims = 2\nclip_norm = 0.75",
	"adamw":    "optimizer = 'adamw'\nlr = 0.03125\nweight_decay = 0.25\nlabel_smoothing = 0.125",
}

// In double precision rounding is far below the bound of the losses, so that every layer, optimiser, loss and
// schedule has to be the same.
func TestEveryKindOfLayer(t *testing.T) {
	for name, training := range trainings {
		network, data := everyKind, "synthetic:2x11x13:29:5"
		if name == "tokens" {
			network, data = everyTokens, "tokens:7:29:11"
		}
		m := must.Get(files.ParseModel(fmt.Appendf(nil, network, training), name))(t)
		w := workload(t, m, data, 0, train.Options{Batch: 3, Epochs: 1, Type: dag.Float64, Seed: 3})
		ours := must.Get(w.Train(t.Context()))(t)
		for _, program := range []string{"pytorch", "jax"} {
			formats := Formats(m)
			if name != "nesterov" {
				formats = formats[:1] // which optimisers do not see
			}
			for _, format := range formats {
				t.Run(strings.Join([]string{name, program, format}, " "), func(t *testing.T) {
					p := must.Get(ProgramByName(program))(t)
					r, err := run(t.Context(), Job{Workload: w, Program: p, Python: pythonForTests(), Setting: "default: " + format})
					var missing *MissingError
					if errors.As(err, &missing) {
						t.Skip("not installed: ", err)
					}
					if err != nil {
						t.Fatal(err)
					}
					// The last evaluation is of weights and running statistics after all steps.
					got, want := r.Epochs[0].TestLoss, ours.Epochs[0].TestLoss
					if r.LossError > 1e-11 || math.Abs(got-want) > 1e-10*want {
						t.Errorf("losses differ by %v; the test loss is %v, dahl's %v", r.LossError, got, want)
					}
				})
			}
		}
	}
}

// Every program that is installed trains to dahl's losses, in the shuffled order, with a short last
// batch, and to its test accuracy.
func TestProgramsTrainAsDahl(t *testing.T) {
	m := must.Get(models.ByName("digits-cnn"))(t)
	w := workload(t, m, "digits", 211, train.Options{Batch: 17, Epochs: 2, Seed: 3, Shuffle: true})
	ours := must.Get(w.Train(t.Context()))(t)
	for _, p := range Programs() {
		t.Run(p.Name, func(t *testing.T) {
			r, err := run(t.Context(), Job{Workload: w, Program: p, Python: pythonForTests(), Setting: p.onCPU[0].Name + ": " + ChannelsLast})
			var missing *MissingError
			if errors.As(err, &missing) {
				t.Skip("not installed: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Epochs) != 2 || len(r.Steps) != len(ours.Steps) {
				t.Fatalf("%d epochs, %d steps; dahl has %d", len(r.Epochs), len(r.Steps), len(ours.Steps))
			}
			for i, s := range r.Steps {
				// Rounding in single precision, which each of 26 steps magnifies.
				if want := ours.Steps[i]; s.Samples != want.Samples || math.Abs(s.Loss-want.Loss) > 1e-2*want.Loss {
					t.Errorf("step %d: %+v; dahl has %+v", i+1, s, want)
				}
			}
			for i, e := range r.Epochs {
				if want := ours.Epochs[i]; math.Abs(e.TestAccuracy-want.TestAccuracy) > 5e-3 || math.Abs(e.TestLoss-want.TestLoss) > 1e-2*want.TestLoss {
					t.Errorf("epoch %d: test loss %v, accuracy %v; dahl has %v, %v", i+1, e.TestLoss, e.TestAccuracy, want.TestLoss, want.TestAccuracy)
				}
			}
			if r.Seconds <= 0 || r.CPUSeconds <= 0 || r.PeakBytes < 10<<20 || !strings.Contains(strings.ToLower(r.Versions.Program), p.Name[:3]) {
				t.Errorf("%+v", r)
			}
		})
	}
}
