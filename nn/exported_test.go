package nn_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
)

// TestExportedNetworks reads networks that PyTorch exported. Each is that of the fixture of the same name, whose
// values are compared with PyTorch's: it lowers to the same graph, and its parameters begin with
// the same numbers.
func TestExportedNetworks(t *testing.T) {
	for _, f := range readFixtures(t).Layers {
		if f.Name == "exchange" || f.Name == "windows" || f.Name == "normalised" {
			t.Run(f.Name, func(t *testing.T) { checkExported(t, &f) })
		}
	}
}

func checkExported(t *testing.T, f *layerFixture) {
	m := must.Get(files.LoadModel("testdata/" + f.Name + ".onnx"))(t)
	opt := nn.LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 11, Lowering: dag.Lowering{}}
	got, want := mustLower(t, m, opt), mustLower(t, f.model(t), opt)
	if !reflect.DeepEqual(got.Tasks, want.Tasks) || !reflect.DeepEqual(got.Buffers, want.Buffers) {
		t.Error("the network is another than that of the fixture")
	}
	fitted := must.Get(m.For(m.Input, m.Classes()))(t)
	known := 0
	for _, p := range fitted.State() {
		if p.Counts {
			continue
		}
		known++
		values := make([]float64, p.Elems())
		p.Init(values, 0, 7)
		if !slices.Equal(values, f.Params[p.Name]) {
			t.Errorf("%s begins with %v…, want %v…", p.Name, values[:2], f.Params[p.Name][:2])
		}
	}
	if n := len(f.Params); n != known {
		t.Errorf("%d parameters and running statistics, want %d", known, n)
	}
}

// TestExportedSharing: after a step of rate 1/2 on these images the first row of the weight that both layers have is as the numeric
// derivative of the loss in float64 says (numpy, central differences).
func TestExportedSharing(t *testing.T) {
	m := must.Get(files.LoadModel("testdata/tied.onnx"))(t)
	if want := "sum of its gradients, also where the program that wrote the file only found equal numbers: t.bias (t, fc1), t.weight (t, fc1)"; len(m.Notes) != 1 || !strings.Contains(m.Notes[0], want) {
		t.Errorf("notes %q, want %s", m.Notes, want)
	}
	if m.NumWeights() != 20 {
		t.Errorf("%d weights, want 20", m.NumWeights())
	}
	images := []byte{
		0xef, 0xf7, 0xde, 0xae, 0x61, 0x64, 0x0a, 0x2f, 0x55, 0x58, 0x94, 0x82, 0xb1, 0xe4, 0xe0, 0xc6,
		0xfa, 0x51, 0xe8, 0xec, 0x39, 0x78, 0x91, 0xb1, 0xb3, 0x1b, 0x7a, 0x1a, 0xf5, 0x33, 0x72, 0xe2,
	}
	opt := nn.LowerOptions{Batch: 8, Type: dag.Float64, Train: true, Samples: 8, Optimizer: nn.SGD{LearningRate: 0.5}}
	in := newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
	copy(in.bytes("data.train.images"), images)
	copy(in.ints("data.train.labels"), []int32{0, 1, 2, 3, 0, 1, 2, 3})
	for _, p := range m.State() {
		values := make([]float64, p.Elems())
		p.Init(values, 0, 1)
		in.setFloats(p.Name, values)
	}
	in.step(indices(0, 8), 0.5, 1)
	for i, want := range []float64{0.0945267, -0.1742836, -0.1884291, -1.2207336} {
		if got := in.floats("t.weight")[i]; math.Abs(got-want) > 1e-7 {
			t.Errorf("t.weight[0][%d] is %.9f, want %.7f", i, got, want)
		}
	}
}
