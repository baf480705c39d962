package files_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/layers"
	"dahl/nn/models"
)

// writtenNetworks have all layers for which there are operators, with all their settings. Names of layers without parameters are automatic.
func writtenNetworks(t *testing.T) (all []*nn.Model) {
	named := func(name string, l nn.Layer, inputs ...string) nn.Named {
		return nn.Named{Name: name, Layer: l, Inputs: inputs}
	}
	add := func(name string, input []int, of ...nn.Layer) {
		all = append(all, must.Get(nn.New(name, input, of...))(t))
	}
	add("images", []int{6, 23, 19},
		layers.Conv2D{Filters: 12, Kernel: 3, Groups: 3, Pads: layers.Pads{Top: 1, Right: 2}, Columns: layers.Columns{Size: 5, Stride: 2}},
		layers.BatchNorm{Eps: 1e-3, Momentum: 0.2}, layers.ReLU{},
		layers.MaxPool{Size: 3, Stride: 2, Pad: 1, Columns: layers.Columns{Size: 2, Stride: 1}},
		named("part.a", layers.Conv2D{Filters: 7, Kernel: 3, Pad: 2, Dilation: 2, NoBias: true}),
		layers.BatchNorm{},
		named("part.b", layers.Conv2D{Filters: 7, Kernel: 1}, "pool1"),
		named("part.c", layers.Conv2D{Filters: 7, Kernel: 1}, "pool1"),
		named("add1", layers.Add{}, "bn2", "part.b", "part.c"), named("add2", layers.Add{}, "add1", "part.b"), named("concat1", layers.Concat{}, "add2", "part.c"),
		layers.AvgPool{Size: 2, Pad: 1}, layers.GlobalAvgPool{}, layers.Flatten{}, layers.Dropout{P: 0.3}, layers.Dense{Outputs: 5})
	features := []nn.Layer{layers.Dense{Outputs: 11}}
	for _, f := range []string{"tanh", "sigmoid", "gelu", "gelu_tanh"} {
		features = append(features, layers.Activation{Function: f})
	}
	features = append(features, layers.Activation{Function: "leaky_relu", Setting: 0.07}, nn.Named{Name: "tied", StateName: "tied", Layer: layers.Dense{Outputs: 11, NoBias: true}}, layers.Dense{Outputs: 3})
	add("features", []int{13}, features...)
	add("shared", []int{13}, layers.Dense{Outputs: 13}, layers.ReLU{}, nn.Named{Name: "fc2", Layer: layers.Dense{Outputs: 13}, Shares: []string{"fc1"}}, layers.Dense{Outputs: 2})
	add("sequences", []int{7}, layers.Embedding{Tokens: 11, Width: 6}, layers.Positions{}, layers.LayerNorm{Eps: 1e-3}, layers.Dense{Outputs: 30}, layers.Attention{Heads: 6, KeyHeads: 2, Causal: true},
		layers.Dense{Outputs: 6}, named("add1", layers.Add{}, "positions1", "fc2"), layers.RMSNorm{},
		named("fc3", layers.Dense{Outputs: 13, NoBias: true}), named("fc4", layers.Dense{Outputs: 13}, "rms1"),
		named("silu1", layers.Activation{Function: "silu"}, "fc3"), named("multiply1", layers.Multiply{}, "silu1", "fc4"),
		layers.Dense{Outputs: 18}, layers.Attention{Heads: 3}, layers.LayerNorm{NoBias: true}, nn.Named{Name: "last", Layer: layers.Dense{Outputs: 11, NoBias: true}, Shares: []string{"embed1.weight"}})
	add("patches", []int{3, 10, 14}, layers.Conv2D{Filters: 6, Kernel: 2, Stride: 2}, layers.Pixels{}, layers.Positions{}, layers.LayerNorm{}, layers.Dense{Outputs: 18}, layers.Attention{Heads: 3},
		layers.Pixels{}, layers.GlobalAvgPool{}, layers.Flatten{}, layers.Dense{Outputs: 5})
	add("class token", []int{3, 10, 14}, layers.Conv2D{Filters: 6, Kernel: 2, Stride: 2}, layers.Pixels{}, layers.ClassToken{}, layers.Positions{}, layers.Dense{Outputs: 18},
		layers.Attention{Heads: 3}, layers.Select{Position: 2}, layers.Flatten{}, layers.Dense{Outputs: 5})
	for _, path := range []string{"../examples/residual.toml", "../examples/depthwise.toml"} {
		all = append(all, must.Get(files.LoadModel(path))(t))
	}
	return append(all, must.Get(models.ByName("lenet5"))(t))
}

// TestWriteONNX: a network that was written is the same network when it is read: its parameters have the same names and numbers, and its graphs of a
// training and of an evaluation are the same but for names of layers. So what it predicts is the same to the bit.
func TestWriteONNX(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 20))
	written := map[string]bool{}
	for _, m := range writtenNetworks(t) {
		for _, dtype := range []dag.DType{dag.Float32, dag.Float64} {
			numbers := map[string][]byte{}
			for _, p := range m.State() {
				for range p.Elems() {
					if v := rng.NormFloat64(); dtype == dag.Float32 {
						numbers[p.Name] = binary.LittleEndian.AppendUint32(numbers[p.Name], math.Float32bits(float32(v)))
					} else {
						numbers[p.Name] = binary.LittleEndian.AppendUint64(numbers[p.Name], math.Float64bits(v))
					}
				}
			}
			var file bytes.Buffer
			must.Do(t, files.WriteONNX(&file, m, dtype, func(name string) []byte { return numbers[name] }))
			read := must.Get(files.ParseONNX(file.Bytes(), m.Name+".onnx"))(t)
			checkSameState(t, m, read, dtype, numbers)
			for _, train := range []bool{false, true} {
				opt := nn.LowerOptions{Batch: 3, Samples: 5, Type: dtype, Train: train}
				if a, b := unnamed(lowered(t, m, opt)), unnamed(lowered(t, read, opt)); !slices.Equal(a, b) {
					t.Errorf("%s, training %v: tasks\n%s\nwere\n%s", m.Name, train, strings.Join(b, "\n"), strings.Join(a, "\n"))
				}
			}
		}
		for i := range m.Stages {
			written[m.Stages[i].Layer.Kind()] = true
		}
	}
	for _, info := range layers.All() {
		if written[info.Kind] {
			continue
		}
		if err := files.RefusesONNX(info.New(layers.Settings{})); err == nil || !strings.Contains(err.Error(), "no ONNX operator") {
			t.Errorf("layer %s: it is not refused (%v), and not in a network that is written", info.Kind, err)
		}
	}
}

// checkSameState compares the parameters of a network that was read, and their numbers but counts.
func checkSameState(t *testing.T, m, read *nn.Model, dtype dag.DType, numbers map[string][]byte) {
	t.Helper()
	want, got := m.State(), read.State()
	if len(want) != len(got) {
		t.Fatalf("%s: %d parameters, want %d", m.Name, len(got), len(want))
	}
	for i := range want {
		if want[i].Name != got[i].Name || !slices.Equal(want[i].Shape, got[i].Shape) {
			t.Fatalf("%s: parameter %s of %v, want %s of %v", m.Name, got[i].Name, got[i].Shape, want[i].Name, want[i].Shape)
		}
		for k, v := range got[i].Values {
			raw := numbers[got[i].Name][k*int(dtype.SizeBytes()):]
			if dtype == dag.Float32 && math.Float32bits(float32(v)) != binary.LittleEndian.Uint32(raw) || dtype == dag.Float64 && math.Float64bits(v) != binary.LittleEndian.Uint64(raw) {
				t.Fatalf("%s: element %d of %s is %v", m.Name, k, got[i].Name, v)
			}
		}
		if got[i].Values == nil && !got[i].Counts {
			t.Errorf("%s: %s has no numbers", m.Name, got[i].Name)
		}
	}
}

// unnamed lists the operations of a graph with their shapes, and what they read and write, in order.
func unnamed(g *dag.Graph) (all []string) {
	for i := range g.Tasks {
		task := &g.Tasks[i]
		line := task.Op + " " + task.Shape
		for _, p := range task.Params {
			line += fmt.Sprint(" ", p.Name, p.Value)
		}
		for _, a := range task.Accesses {
			line += fmt.Sprint(" ", a.Buffer, a.Mode, a.Box)
		}
		all = append(all, line)
	}
	return all
}

// TestWriteONNXOfBFloat16: a network of bfloat16 keeps its weights in float32, so that its file is that of the network of float32. As bfloat16 each
// array would have twice the bytes that its shape says.
func TestWriteONNXOfBFloat16(t *testing.T) {
	m := must.Get(models.ByName("lenet5"))(t)
	sizes := map[string]int{}
	for _, p := range m.State() {
		sizes[p.Name] = int(p.Elems()) * 4
	}
	write := func(dtype dag.DType) []byte {
		var file bytes.Buffer
		must.Do(t, files.WriteONNX(&file, m, dtype, func(name string) []byte { return make([]byte, sizes[name]) }))
		return file.Bytes()
	}
	if !bytes.Equal(write(dag.BFloat16), write(dag.Float32)) {
		t.Error("the file of the network of bfloat16 is not that of float32")
	}
}

// TestWriteONNXRefuses: what has no place in a file is refused in one line.
func TestWriteONNXRefuses(t *testing.T) {
	for want, m := range map[string]*nn.Model{
		`model "m": layer "flatten1" (flatten): samples of 3×5; dahl writes ONNX files for images C×H×W, for sequences T×C without a flatten`: must.Get(nn.New("m", []int{3, 5}, layers.Flatten{}, layers.Dense{Outputs: 2}))(t),
		`model "m": layer "bn1" (batchnorm): eps is 1.23456789e-05, and`:                                                                      must.Get(nn.New("m", []int{3, 5, 5}, layers.BatchNorm{Eps: 1.23456789e-5}))(t),
		`model "m": layer "fc1" (odd): dahl writes no ONNX operator for it;`:                                                                  must.Get(nn.New("m", []int{3}, nn.Named{Name: "fc1", Layer: odd{}}))(t),
	} {
		if err := files.CheckONNX(m, dag.Float32); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// odd is a layer of another module.
type odd struct{ layers.ReLU }

func (odd) Kind() string { return "odd" }
