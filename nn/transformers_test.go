package nn_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
)

// TestExportedTransformers: networks of sequences that PyTorch exported say of two samples what onnxruntime does (testdata/transformers/export.py).
// Both compute in float32: sums of up to 30 products of numbers near 1, in another order, differ by some ULP of 2⁻²⁴.
func TestExportedTransformers(t *testing.T) {
	var expected struct {
		Tokens  []int32
		Images  []int
		Squares []int // images of as many rows as columns
		Outputs map[string][]float64
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("testdata/transformers/outputs.json"))(t), &expected))
	for name, want := range expected.Outputs {
		m, err := files.LoadModel("testdata/transformers/" + name + ".onnx")
		if err != nil {
			t.Error(err)
			continue
		}
		images := expected.Images
		if m.Vocabulary() == 0 && m.Input[1] == m.Input[2] {
			images = expected.Squares
		}
		said := outputsOf(t, m, expected.Tokens, images)
		if len(said) != len(want) {
			t.Errorf("%s: %d outputs, want %d", name, len(said), len(want))
			continue
		}
		for i := range want {
			if !(math.Abs(said[i]-want[i]) <= 1e-5*max(1, math.Abs(want[i]))) {
				t.Errorf("%s: output %d is %v, onnxruntime says %v", name, i, said[i], want[i])
				break
			}
		}
	}
}

// outputsOf is the output of a network with numbers of its own for two samples of tokens, or two images, in float32.
func outputsOf(t *testing.T, m *nn.Model, tokens []int32, pixels []int) []float64 {
	in := newInterpreter(t, mustLower(t, m, nn.LowerOptions{Batch: 2, Type: dag.Float32, Samples: 2}), map[string][]uint64{})
	if m.Vocabulary() > 0 {
		copy(in.ints("data.test.images"), tokens)
	} else {
		for i, pixel := range pixels {
			in.bytes("data.test.images")[i] = byte(pixel)
		}
	}
	for _, p := range m.State() {
		values := make([]float64, p.Elems())
		p.Init(values, 0, 1)
		in.setFloats(p.Name, values)
	}
	in.step(indices(0, 2), 0, 1)
	return in.floats(m.Stages[len(m.Stages)-1].Name + ".out")
}
