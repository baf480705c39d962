package train

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
)

// TestFromNPZ: a file has the parameters of the network by name and shape, in numbers of its type,
// and nothing else.
func TestFromNPZ(t *testing.T) {
	m, err := nn.New("small", []int{3}, nn.Named{Name: "fc", Layer: nn.Dense{Outputs: 2}})
	if err != nil {
		t.Fatal(err)
	}
	floats := func(name string, of dag.DType, shape []int, first float64) nn.Array {
		values := []float64{first}
		for len(values) < (&nn.Parameter{Shape: shape}).Elems() {
			values = append(values, 1)
		}
		return nn.NewArray(name, of, shape, values)
	}
	weight, bias := floats("fc.weight", dag.Float32, []int{2, 3}, 7), floats("fc.bias", dag.Float64, []int{2}, 5)
	for i, c := range []struct {
		arrays []nn.Array
		want   string // "": it is taken
	}{
		{[]nn.Array{weight, bias}, ""},
		{[]nn.Array{weight}, `no array "fc.bias" of shape [2]`},
		{[]nn.Array{weight, bias, floats("fc2.bias", dag.Float32, []int{2}, 1)}, "fc2.bias.npy: network small has no parameter of this name; write fc.weight, fc.bias and nothing else"},
		{[]nn.Array{floats("fc.weight", dag.Float32, []int{3, 2}, 1), bias}, "fc.weight.npy: its shape is [3 2], that of the parameter of network small is [2 3]"},
		{[]nn.Array{weight, {Name: "fc.bias", Type: dag.Int32, Shape: []int{2}, Data: make([]byte, 8)}}, "fc.bias.npy: its type is int32; write float32 or float64"},
		{[]nn.Array{weight, floats("fc.bias", dag.Float64, []int{2}, math.NaN())}, `array "fc.bias" has NaN at [0]`},
		{[]nn.Array{weight, floats("fc.bias", dag.Float64, []int{2}, 1e39)}, `array "fc.bias" has 1e+39 at [0]`},
	} {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.npz", i))
		if err := nn.WriteNPZ(path, c.arrays); err != nil {
			t.Fatal(err)
		}
		init, err := FromNPZ(path, m, dag.Float32)
		for _, p := range m.Parameters() {
			values := make([]float64, p.Elems())
			if err == nil {
				err = init(&p, values)
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
