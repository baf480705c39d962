package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/must"
)

// Messages are written here from the numbers of onnx.proto: number writes a whole number, block a
// text or a message within.

func number(id, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, id<<3), v)
}

func block(id uint64, parts ...[]byte) []byte {
	var inner []byte
	for _, p := range parts {
		inner = append(inner, p...)
	}
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, id<<3|2), uint64(len(inner))), inner...)
}

func text(id uint64, s string) []byte { return block(id, []byte(s)) }

func float32s(values ...float32) (raw []byte) {
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}

func float64s(values ...float64) (raw []byte) {
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return raw
}

// file is a graph with every encoding that a file may choose: numbers packed and one by one, as
// raw bytes and in fields of their own.
func file() []byte {
	minus := binary.AppendUvarint(nil, ^uint64(0)) // -1
	shape := block(2, block(1, text(2, "batch")), block(1, number(1, 3)))
	return slices.Concat(number(1, 8), block(7,
		block(1, text(1, "x"), text(1, "w"), text(2, "y"), text(3, "node"), text(4, "Gemm"),
			block(5, text(1, "alpha"), append([]byte{2<<3 | 5}, float32s(0.5)...)),
			block(5, text(1, "axis"), number(3, 7)),
			block(5, text(1, "mode"), text(4, "up")),
			block(5, text(1, "scales"), block(7, float32s(0.25, 3)), number(20, 6)),
			block(5, text(1, "pads"), number(8, 1), number(8, 2), number(20, 7))),
		block(1, text(2, "z"), text(4, "Odd"), text(7, "com.example"), block(5, text(1, "t"), block(5, text(8, "inner"), block(1, []byte{2}), number(2, typeInt64), block(7, []byte{5}, minus)))),
		block(5, text(8, "w"), number(1, 2), number(1, 1), number(2, typeFloat), block(9, float32s(1.5, -2))),
		block(5, text(8, "v"), block(1, []byte{3}), number(2, typeFloat), block(4, float32s(1, 2)), append([]byte{4<<3 | 5}, float32s(3)...)),
		block(5, text(8, "d"), block(1, []byte{1}), number(2, typeDouble), block(10, float64s(0.1))),
		block(5, text(8, "i"), number(1, 1), number(2, typeInt64), block(9, binary.LittleEndian.AppendUint64(nil, 9))),
		block(5, text(8, "h"), number(1, 6), number(2, typeFloat16), block(9, []byte{0, 0x3c, 0, 0xc0, 1, 0, 0xff, 0x7b, 0x55, 0x35, 0, 0x80})),
		block(5, text(8, "hi"), number(1, 1), number(2, typeFloat16), block(5, binary.AppendUvarint(nil, 0x3c00))),
		block(5, text(8, "b"), number(1, 2), number(2, typeBfloat16), block(9, []byte{0x80, 0x3f, 0x49, 0xc0})),
		block(5, text(8, "n"), number(1, 2), number(2, typeInt32), block(5, []byte{5}, minus)),
		block(5, text(8, "yes"), number(1, 1), number(2, typeBool), block(5, []byte{1})),
		block(11, text(1, "x"), block(2, block(1, number(1, 1), shape))),
		block(12, text(1, "y"))))
}

// Numbers of types in the file.
const (
	typeFloat, typeInt32, typeInt64, typeBool, typeFloat16, typeDouble, typeBfloat16 = 1, 6, 7, 9, 10, 11, 16
)

// TestDecode: among the float16 are 1, -2, the smallest number 2⁻²⁴, the largest (2 - 2⁻¹⁰)·2¹⁵ = 65504, 0x3555 = (1 + 341/1024)/4 and -0,
// and the bfloat16 are 1 and 0xc049 = -(1 + 73/128)·2.
func TestDecode(t *testing.T) {
	got := must.Get(Decode(file()))(t)
	want := &Graph{
		Nodes: []Node{
			{Name: "node", Op: "Gemm", Inputs: []string{"x", "w"}, Outputs: []string{"y"}, Attributes: map[string]Attribute{
				"alpha": {Float: 0.5}, "axis": {Int: 7}, "mode": {Text: "up"}, "pads": {Ints: []int64{1, 2}}, "scales": {Floats: []float64{0.25, 3}}}},
			{Op: "com.example.Odd", Outputs: []string{"z"}, Attributes: map[string]Attribute{
				"t": {Tensor: &Tensor{Name: "inner", Type: "int64", Shape: []int{2}, Ints: []int64{5, -1}}}}},
		},
		Tensors: map[string]*Tensor{
			"h":   {Name: "h", Type: "float16", Shape: []int{6}, Floats: []float64{1, -2, 0x1p-24, 65504, 1365. / 4096, math.Copysign(0, -1)}},
			"hi":  {Name: "hi", Type: "float16", Shape: []int{1}, Floats: []float64{1}},
			"b":   {Name: "b", Type: "bfloat16", Shape: []int{2}, Floats: []float64{1, -3.140625}},
			"n":   {Name: "n", Type: "int32", Shape: []int{2}, Ints: []int64{5, -1}},
			"yes": {Name: "yes", Type: "bool", Shape: []int{1}, Ints: []int64{1}},
			"w":   {Name: "w", Type: "float32", Shape: []int{2, 1}, Floats: []float64{1.5, -2}},
			"v":   {Name: "v", Type: "float32", Shape: []int{3}, Floats: []float64{1, 2, 3}},
			"d":   {Name: "d", Type: "float64", Shape: []int{1}, Floats: []float64{0.1}},
			"i":   {Name: "i", Type: "int64", Shape: []int{1}, Ints: []int64{9}},
		},
		Inputs:  []Value{{Name: "x", Type: "float32", Shape: []int{0, 3}}},
		Outputs: []Value{{Name: "y"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestBadFiles: a file that ends early or holds something else is an error.
func TestBadFiles(t *testing.T) {
	whole := file()
	for n := range whole {
		if _, err := Decode(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(whole))
		}
	}
	for want, message := range map[string][]byte{
		"it holds no graph":          nil,
		"a field has the encoding 3": {1<<3 | 3},
		"has 1 elements":             block(7, block(5, number(1, 2), number(2, typeFloat), block(4, float32s(1)))),
		`"w" of shape [2] and type float32 has 4 bytes in raw_data; want 8`:                block(7, block(5, text(8, "w"), number(1, 2), number(2, typeFloat), block(9, float32s(1)))),
		`"w" of shape [1] and type float32 has 7 bytes in raw_data; want 4`:                block(7, block(5, text(8, "w"), number(1, 1), number(2, typeFloat), block(9, float32s(1), []byte("end")))),
		`"w" is of type float32 and has numbers in int64_data; write them into float_data`: block(7, block(5, text(8, "w"), number(1, 2), number(2, typeFloat), block(4, float32s(1)), block(7, []byte{1}))),
		`"w" is of type int64 and has numbers in float_data; write them into int64_data`:   block(7, block(5, text(8, "w"), number(1, 1), number(2, typeInt64), block(4, float32s(1)))),
		`"w" has numbers in float_data and in raw_data; write them once`:                   block(7, block(5, text(8, "w"), number(1, 1), number(2, typeFloat), block(4, float32s(1)), block(9, float32s(1)))),
		`initializer "w" is there twice`:                                                   block(7, block(5, text(8, "w"), number(2, typeFloat), block(4, float32s(1))), block(5, text(8, "w"), number(2, typeFloat), block(4, float32s(1)))),
		"it holds two graphs":                                                              slices.Concat(block(7), block(7)),
		`operator Relu (node "b"): its output "y" is that of an operator before it, too`:   block(7, block(1, text(2, "y"), text(3, "a"), text(4, "Relu")), block(1, text(2, "y"), text(3, "b"), text(4, "Relu"))),
		`operator Relu (node "a"): its output "w" is an input or an initializer, too`:      block(7, block(1, text(2, "w"), text(3, "a"), text(4, "Relu")), block(5, text(8, "w"), number(2, typeFloat), block(4, float32s(1)))),
		`operator Relu (node "a"): its output "x" is an input or an initializer, too`:      block(7, block(1, text(2, "x"), text(3, "a"), text(4, "Relu")), block(11, text(1, "x"))),
		`attribute axis is there twice`:                                                    block(7, block(1, block(5, text(1, "axis"), number(3, 7)), block(5, text(1, "axis"), number(3, 8)))),
		`attribute axis has a value of another type than it says`:                          block(7, block(1, block(5, text(1, "axis"), number(3, 7), number(20, 1)))),
		`attribute axis has values of two types`:                                           block(7, block(1, block(5, text(1, "axis"), number(3, 7), number(8, 1)))),
		`attribute ceil_mode has no value of the type that ONNX gives it`:                  block(7, block(1, block(5, text(1, "ceil_mode"), append([]byte{2<<3 | 5}, float32s(1)...), number(20, 1)))),
		`attribute auto_pad has no value of the type that ONNX gives it`:                   block(7, block(1, block(5, text(1, "auto_pad"), number(3, 1)))),
		`tensor "v" is in another file`:                                                    block(7, block(5, text(8, "v"), number(14, 1), block(9, float32s(1)))),
		`tensor "w" is in another file`:                                                    block(7, block(5, text(8, "w"), block(13))),
		"has an extent of":                                                                 block(7, block(5, number(1, 1<<31), number(1, 2))),
	} {
		if _, err := Decode(message); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestManyNames: names are looked up, and not compared with each other: 2^16 results and as many inputs would take 2^32 comparisons,
// half a minute, and take a tenth of a second.
func TestManyNames(t *testing.T) {
	g := &Graph{Tensors: map[string]*Tensor{}}
	for i := range 1 << 16 {
		g.Inputs = append(g.Inputs, Value{Name: fmt.Sprint("x", i)})
		g.Nodes = append(g.Nodes, Node{Outputs: []string{fmt.Sprint("y", i)}})
	}
	begin := time.Now()
	must.Do(t, g.checkNames())
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
