package files_test

import (
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/nn/files"
	"dahl/nn/onnx"
)

// behind puts an operator on the flattened samples of onnxGraph, N×175, before its dense layer.
func behind(g *onnx.Graph, n onnx.Node) {
	n.Inputs, n.Outputs = append([]string{"f"}, n.Inputs...), []string{"moved"}
	g.Nodes[2].Inputs[0] = "moved"
	g.Nodes = slices.Insert(g.Nodes, 2, n)
}

// TestONNXViewsRefused: an order of dimensions that is none, and a range of no elements, are refused where they stand.
func TestONNXViewsRefused(t *testing.T) {
	list := func(values ...int64) onnx.Attribute { return onnx.Attribute{Ints: values} }
	for _, n := range []onnx.Node{
		{Op: "Transpose", Attributes: map[string]onnx.Attribute{"perm": list(5, 0)}},
		{Op: "Transpose", Attributes: map[string]onnx.Attribute{"perm": list(-1, 0)}},
		{Op: "Slice", Attributes: map[string]onnx.Attribute{"starts": list(3), "ends": list(3), "axes": list(1)}},
		{Op: "Slice", Attributes: map[string]onnx.Attribute{"starts": list(5), "ends": list(3)}},
	} {
		g := onnxGraph()
		behind(g, n)
		want := "net.onnx: operator " + n.Op + ` (node ""): dahl does not see samples of [`
		if _, err := files.ModelOfONNX(g, "net.onnx"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", n.Op, err, want)
		}
	}
}

// attentionGraph is attention over 4 positions of 6 features, which are 2 heads of 3. Of the heads of keys and values it takes
// those before one.
func attentionGraph(end int64) *onnx.Graph {
	ints := func(name string, values ...int64) *onnx.Tensor {
		return &onnx.Tensor{Name: name, Type: "int64", Shape: []int{len(values)}, Ints: values}
	}
	node := func(op, to string, inputs ...string) onnx.Node {
		return onnx.Node{Name: to, Op: op, Inputs: inputs, Outputs: []string{to}, Attributes: map[string]onnx.Attribute{}}
	}
	transpose := func(to, of string, order ...int64) onnx.Node {
		n := node("Transpose", to, of)
		n.Attributes["perm"] = onnx.Attribute{Ints: order}
		return n
	}
	g := &onnx.Graph{Tensors: map[string]*onnx.Tensor{}, Inputs: []onnx.Value{{Name: "x", Shape: []int{0, 4, 6}}}, Outputs: []onnx.Value{{Name: "z"}}}
	for _, t := range []*onnx.Tensor{
		ints("split", 0, 0, 2, 3), ints("joined", 0, 0, 6), ints("0", 0), ints("1", 1), ints("end", end),
		{Name: "scale", Type: "float32", Floats: []float64{0.57735026}}, // one by the root of 3
	} {
		g.Tensors[t.Name] = t
	}
	for _, of := range []string{"q", "k", "v"} {
		g.Tensors["w"+of] = &onnx.Tensor{Name: "w" + of, Type: "float32", Shape: []int{6, 6}, Floats: make([]float64, 36)}
		g.Nodes = append(g.Nodes, node("MatMul", of+"1", "x", "w"+of), node("Reshape", of+"2", of+"1", "split"), transpose(of, of+"2", 0, 2, 1, 3))
	}
	g.Nodes = append(g.Nodes, node("Slice", "keys", "k", "0", "end", "1"), node("Slice", "values", "v", "0", "end", "1"),
		transpose("turned", "keys", 0, 1, 3, 2), node("MatMul", "s", "q", "turned"), node("Mul", "scaled", "s", "scale"),
		node("Softmax", "shares", "scaled"), node("MatMul", "heads", "shares", "values"), transpose("back", "heads", 0, 2, 1, 3), node("Reshape", "z", "back", "joined"))
	return g
}

// TestONNXNoHeads: attention without any head of keys and values is refused at the operator that takes them away.
func TestONNXNoHeads(t *testing.T) {
	must.Get(files.ModelOfONNX(attentionGraph(2), "net.onnx"))(t)
	want := `net.onnx: operator Slice (node "keys"): dahl does not see samples of [`
	if _, err := files.ModelOfONNX(attentionGraph(0), "net.onnx"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestONNXComputesFew: a constant that is computed has at most 2^24 numbers, and all of them together at most 2^28.
func TestONNXComputesFew(t *testing.T) {
	const most = 1 << 24
	half := &onnx.Tensor{Name: "half", Type: "float32", Shape: []int{most/2 + 1}, Floats: make([]float64, most/2+1)}
	g := &onnx.Graph{Tensors: map[string]*onnx.Tensor{"half": half}, Nodes: []onnx.Node{{Op: "Concat", Inputs: []string{"half", "half"}, Outputs: []string{"all"}}}}
	want := `operator Concat (node ""): dahl does not compute this of constants and shapes`
	if err := files.ComputeONNX(g, 0); err == nil || err.Error() != want {
		t.Errorf("2^24 + 2 numbers: %v, want %s", err, want)
	}
	for before, want := range map[int]string{
		1<<28 - 3: "",
		1<<28 - 2: `operator ConstantOfShape (node ""): more than 268435456 numbers are computed of constants and shapes; write them into the file as initializers`,
	} {
		three := &onnx.Tensor{Name: "three", Type: "int64", Shape: []int{1}, Ints: []int64{3}}
		g := &onnx.Graph{Tensors: map[string]*onnx.Tensor{"three": three}, Nodes: []onnx.Node{{Op: "ConstantOfShape", Inputs: []string{"three"}, Outputs: []string{"zeros"}}}}
		if err := files.ComputeONNX(g, before); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("three numbers after %d: %v, want %s", before, err, want)
		}
	}
}
