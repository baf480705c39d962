package onnx

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"dahl/must"
)

// TestEncode: a graph is written field by field as the test's own writer of messages has them, and read as it was.
func TestEncode(t *testing.T) {
	g := &Graph{
		Nodes: []Node{{Name: "n", Op: "LeakyRelu", Inputs: []string{"x", "w"}, Outputs: []string{"y"}, Attributes: map[string]Attribute{
			"alpha": {Float: 0.5}, "axis": {Int: 7}, "approximate": {Text: "tanh"}, "pads": {Ints: []int64{3, 2}}}}},
		Tensors: map[string]*Tensor{
			"w": {Name: "w", Type: "float32", Shape: []int{2, 1}, Raw: float32s(1.5, -2)},
			"d": {Name: "d", Type: "float64", Shape: []int{}, Raw: float64s(0.1)},
		},
		Inputs:  []Value{{Name: "x", Type: "float32", Shape: []int{0, 3}}},
		Outputs: []Value{{Name: "y", Type: "float32", Shape: []int{0, 5}}},
		Opset:   GeluOpset,
	}
	var out bytes.Buffer
	must.Do(t, Encode(&out, g, "net"))
	shape := func(extent uint64) []byte {
		return block(2, block(1, number(1, 1), block(2, block(1, text(2, "N")), block(1, number(1, extent)))))
	}
	want := slices.Concat(number(1, 9), text(2, "dahl"), block(7,
		block(1, text(1, "x"), text(1, "w"), text(2, "y"), text(3, "n"), text(4, "LeakyRelu"),
			block(5, text(1, "alpha"), append([]byte{2<<3 | 5}, float32s(0.5)...), number(20, 1)),
			block(5, text(1, "approximate"), text(4, "tanh"), number(20, 3)),
			block(5, text(1, "axis"), number(3, 7), number(20, 2)),
			block(5, text(1, "pads"), number(8, 3), number(8, 2), number(20, 7))),
		text(2, "net"),
		block(5, number(2, typeDouble), text(8, "d"), block(9, float64s(0.1))),
		block(5, number(1, 2), number(1, 1), number(2, typeFloat), text(8, "w"), block(9, float32s(1.5, -2))),
		block(11, text(1, "x"), shape(3)), block(12, text(1, "y"), shape(5))),
		block(8, text(1, ""), number(2, 20)))
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("got %x, want %x", out.Bytes(), want)
	}
	for name, values := range map[string][]float64{"w": {1.5, -2}, "d": {0.1}} {
		g.Tensors[name].Floats, g.Tensors[name].Raw = values, nil
	}
	g.Tensors["d"].Shape, g.Opset = nil, 0 // of a single number; nobody reads the version
	if got := must.Get(Decode(want))(t); !reflect.DeepEqual(got, g) {
		t.Errorf("got %+v, want %+v", got, g)
	}
}
