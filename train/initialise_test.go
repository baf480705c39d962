package train

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/npz"
	"dahl/nn/random"
)

// TestFromFile: a file has the parameters of the network by name and shape, in numbers of its type,
// and nothing else.
func TestFromFile(t *testing.T) {
	m := must.Get(nn.New("small", []int{3}, nn.Named{Name: "fc", Layer: layers.Dense{Outputs: 2}}))(t)
	floats := func(name string, of dag.DType, shape []int, first float64) npz.Array {
		values := []float64{first}
		for len(values) < (&nn.Parameter{Shape: shape}).Elems() {
			values = append(values, 1)
		}
		return npz.NewArray(name, of, shape, values)
	}
	weight, bias := floats("fc.weight", dag.Float32, []int{2, 3}, 7), floats("fc.bias", dag.Float64, []int{2}, 5)
	for i, c := range []struct {
		arrays []npz.Array
		want   string // "": it is taken
	}{
		{[]npz.Array{weight, bias}, ""},
		{[]npz.Array{weight}, `no array "fc.bias" of shape [2]`},
		{[]npz.Array{weight, bias, floats("fc2.bias", dag.Float32, []int{2}, 1)}, "fc2.bias.npy: network small has no parameter of this name; write fc.weight, fc.bias and nothing else"},
		{[]npz.Array{floats("fc.weight", dag.Float32, []int{3, 2}, 1), bias}, "fc.weight.npy: its shape is [3 2], that of the parameter of network small is [2 3]"},
		{[]npz.Array{weight, {Name: "fc.bias", Type: dag.Int32, Shape: []int{2}, Data: make([]byte, 8)}}, "fc.bias.npy: its type is int32; write float32 or float64"},
		{[]npz.Array{weight, floats("fc.bias", dag.Float64, []int{2}, math.NaN())}, `array "fc.bias" has NaN at [0]`},
		{[]npz.Array{weight, floats("fc.bias", dag.Float64, []int{2}, 1e39)}, `array "fc.bias" has 1e+39 at [0]`},
	} {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.npz", i))
		must.Do(t, npz.Write(path, c.arrays))
		init, err := FromFile(path, m, dag.Float32)
		for _, p := range m.Parameters() {
			values := make([]float64, p.Elems())
			if err == nil {
				err = init(&p, 0, values)
			}
			if want := map[string]float64{"fc.weight": 7, "fc.bias": 5}[p.Name]; c.want == "" && values[0] != want {
				t.Errorf("%s begins with %v, want %v", p.Name, values[0], want)
			}
		}
		if c.want == "" && err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if bad := (InputError{}); c.want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d: error %v, want one of the input with %q", i, err, c.want)
		}
	}
}

// TestFromFileWithStatistics: a network with batch normalisation also takes the running statistics, and the number of batches,
// which is an int64.
func TestFromFileWithStatistics(t *testing.T) {
	m := must.Get(nn.New("tracked", []int{2, 3, 3}, layers.BatchNorm{}, layers.Flatten{}, layers.Dense{Outputs: 1}))(t)
	for of, want := range map[dag.DType]string{dag.Int64: "", dag.Float32: "bn1.num_batches_tracked.npy: its type is float32; write int64"} {
		var arrays []npz.Array
		for i, p := range m.State() {
			values := make([]float64, p.Elems())
			values[0] = float64(i + 1)
			kind := dag.Float64
			if p.Counts {
				kind = of
			}
			arrays = append(arrays, npz.NewArray(p.Name, kind, p.Shape, values))
		}
		path := filepath.Join(t.TempDir(), "w.npz")
		must.Do(t, npz.Write(path, arrays))
		init, err := FromFile(path, m, dag.Float32)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
			continue
		}
		for i, p := range m.State() {
			values := make([]float64, p.Elems())
			if err == nil {
				err = init(&p, 0, values)
			}
			if err != nil || values[0] != float64(i+1) {
				t.Errorf("%s begins with %v: %v", p.Name, values, err)
			}
		}
	}
}

// TestFromFileShared: a parameter of two layers is taken from a file that has it once, or under both names with equal numbers.
func TestFromFileShared(t *testing.T) {
	m := must.Get(nn.New("m", []int{2}, layers.Dense{Outputs: 2, NoBias: true}, nn.Named{Layer: layers.Dense{Outputs: 2, NoBias: true}, Shares: []string{"fc1"}}))(t)
	for second, want := range map[float64]string{4: "", 5: `arrays "fc2.weight" and "fc1.weight" differ, and are one parameter of network m`} {
		path := filepath.Join(t.TempDir(), "w.npz")
		arrays := []npz.Array{npz.NewArray("fc1.weight", dag.Float32, []int{2, 2}, []float64{1, 2, 3, 4}), npz.NewArray("fc2.weight", dag.Float32, []int{2, 2}, []float64{1, 2, 3, second})}
		must.Do(t, npz.Write(path, arrays))
		init, err := FromFile(path, m, dag.Float32)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		p, values := m.State()[0], make([]float64, 4)
		if err := init(&p, 0, values); err != nil || len(m.State()) != 1 || !slices.Equal(values, []float64{1, 2, 3, 4}) {
			t.Errorf("%s of %d is %v: %v", p.Name, len(m.State()), values, err)
		}
	}
}

// TestSetWeightsInPlace: a layer of 64 × 30,011 weights, 7.7 MB, takes no more than its place when it begins, whatever says with
// what, and the numbers are those of the parameter as a whole. A megabyte is room for what else runs.
func TestSetWeightsInPlace(t *testing.T) {
	m := must.Get(nn.New("wide", []int{1, 8, 8}, layers.Flatten{}, layers.Dense{Outputs: 30_011}, layers.ReLU{}, layers.Dense{Outputs: 10}))(t)
	cores := must.Get(load(t, "emulated").Select("cpu"))(t)
	w := trainableOf(t, m, cores, Options{})
	tr, err := w.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	kept, began := tr.Weights(), tr.Weights()[0].Float64s()
	path := filepath.Join(t.TempDir(), "w.npz")
	must.Do(t, npz.Write(path, kept))
	want := make([]float64, 64*30_011)
	for name, initialiser := range map[string]func() (Initialiser, error){
		"the default": func() (Initialiser, error) {
			p := w.Model.State()[0]
			p.Init(want, 0, 11)
			return nil, nil
		},
		"uniform": func() (Initialiser, error) {
			random.InitBetween(want, 0, 11, "fc1.weight", -0.5, 2)
			return Uniform(11, -0.5, 2), nil
		},
		"a file": func() (Initialiser, error) {
			copy(want, began)
			return FromFile(path, w.Model, dag.Float32)
		},
	} {
		tr.Workload.Options.Init, err = initialiser()
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = tr.SetWeights()
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; err != nil || taken > 1<<20 {
			t.Errorf("%s: %d bytes are taken (%v)", name, taken, err)
		}
		a := &tr.Weights()[0]
		if a.Name != "fc1.weight" || a.Len() != len(want) {
			t.Fatalf("%s has %d elements", a.Name, a.Len())
		}
		for i, v := range a.Float64s() {
			if v != float64(float32(want[i])) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, v, want[i])
			}
		}
	}
}
