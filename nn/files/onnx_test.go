package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

const exportedFile = "../testdata/exchange.onnx"

// TestONNXClasses: weights of a file have its number of classes.
func TestONNXClasses(t *testing.T) {
	m := must.Get(files.LoadModel(exportedFile))(t)
	if _, err := m.For(m.Input, m.Classes()+2); err == nil || !strings.Contains(err.Error(), `parameter "fc3.weight" of the file has shape [17 19], and [19 19] is wanted`) {
		t.Errorf("another number of classes: %v", err)
	}
}

func lowered(t *testing.T, m *nn.Model, opt nn.LowerOptions) *dag.Graph {
	return must.Get(m.Lower(opt))(t)
}

// onnxGraph is a graph of one convolution 3×5×5 → 7×5×5, a flatten and a dense layer.
func onnxGraph() *onnx.Graph {
	tensor := func(name string, shape ...int) *onnx.Tensor {
		return &onnx.Tensor{Name: name, Shape: shape, Floats: make([]float64, nn.Elems(shape))}
	}
	g := &onnx.Graph{Tensors: map[string]*onnx.Tensor{}, Inputs: []onnx.Value{{Name: "x", Shape: []int{0, 3, 5, 5}}}, Outputs: []onnx.Value{{Name: "z"}}}
	for _, t := range []*onnx.Tensor{tensor("conv.weight", 7, 3, 1, 1), tensor("w", 11, 175), {Name: "shape", Shape: []int{2}, Ints: []int64{-1, 175}}} {
		g.Tensors[t.Name] = t
	}
	node := func(op, to string, inputs ...string) onnx.Node {
		return onnx.Node{Name: "the " + op, Op: op, Inputs: inputs, Outputs: []string{to}, Attributes: map[string]onnx.Attribute{}}
	}
	g.Nodes = []onnx.Node{node("Conv", "y", "x", "conv.weight"), node("Reshape", "f", "y", "shape"), node("Gemm", "z", "f", "w")}
	g.Nodes[2].Attributes["transB"] = onnx.Attribute{Int: 1}
	return g
}

// addBias puts a sum with a constant of a shape behind the convolution of onnxGraph.
func addBias(g *onnx.Graph, shape ...int) {
	g.Tensors["b"] = &onnx.Tensor{Name: "b", Type: "float32", Shape: shape, Floats: []float64{1, 2, 3, 4, 5, 6, 7}}
	g.Nodes = slices.Insert(g.Nodes, 1, onnx.Node{Op: "Add", Inputs: []string{"b", "y"}, Outputs: []string{"sum"}})
	g.Nodes[2].Inputs[0] = "sum"
}

// pool puts a pooling with windows of a size, as far apart, behind the convolution of onnxGraph. It leaves out what follows.
func pool(g *onnx.Graph, size int64, ceil onnx.Attribute) {
	twice := onnx.Attribute{Ints: []int64{size, size}}
	pool := onnx.Node{Op: "MaxPool", Inputs: []string{"y"}, Outputs: []string{"p"}, Attributes: map[string]onnx.Attribute{"kernel_shape": twice, "strides": twice, "ceil_mode": ceil}}
	g.Nodes = []onnx.Node{g.Nodes[0], pool, {Op: "Flatten", Inputs: []string{"p"}, Outputs: []string{"z"}}}
}

// TestONNXErrors: what dahl has no layer for is refused in one line that names the operator.
func TestONNXErrors(t *testing.T) {
	if m, err := files.ModelOfONNX(onnxGraph(), "net.onnx"); err != nil || m.Stages[0].Name != "conv" || m.Stages[2].Name != "fc1" || m.Name != "net" {
		t.Fatalf("the graph itself: %+v, %v", m, err)
	}
	for want, change := range map[string]func(g *onnx.Graph){
		`operator Hardmax (node "the Conv"): dahl has no layer for it; it reads Add, AveragePool, `: func(g *onnx.Graph) { g.Nodes[0].Op = "Hardmax" },
		`operator Conv (node "the Conv"): pads are [1 2]; want 4 numbers of at least 0`:             func(g *onnx.Graph) { g.Nodes[0].Attributes["pads"] = onnx.Attribute{Ints: []int64{1, 2}} },
		`operator Conv (node "the Conv"): strides are [0 2]; want at least 1`:                       func(g *onnx.Graph) { g.Nodes[0].Attributes["strides"] = onnx.Attribute{Ints: []int64{0, 2}} },
		`operator Conv (node "the Conv"): kernel_shape are [1 3]; the weight has [1 1]`:             func(g *onnx.Graph) { g.Nodes[0].Attributes["kernel_shape"] = onnx.Attribute{Ints: []int64{1, 3}} },
		`operator Conv (node "the Conv"): group is 8; want 1 to 7, the filters`:                     func(g *onnx.Graph) { g.Nodes[0].Attributes["group"] = onnx.Attribute{Int: 8} },
		`model "net": layer "conv" (conv2d) of input 3×5×5: 7 groups; want a divisor of the 3 ch`:   func(g *onnx.Graph) { g.Nodes[0].Attributes["group"] = onnx.Attribute{Int: 7} },
		`operator Conv (node "the Conv"): attribute magic: dahl does not know it`:                   func(g *onnx.Graph) { g.Nodes[0].Attributes["magic"] = onnx.Attribute{} },
		`operator Add (node "the sum"): operand "w" is a constant of the file; dahl reads a constant only as a weight`: func(g *onnx.Graph) {
			g.Nodes = slices.Insert(g.Nodes, 2, onnx.Node{Name: "the sum", Op: "Add", Inputs: []string{"f", "w"}, Outputs: []string{"s"}})
		},
		`operator Conv (node "the Conv"): constant "b" of shape [7] is added; dahl adds a bias, of shape [7 1 1]`: func(g *onnx.Graph) { addBias(g, 7) },
		`operator Add (node ""): attribute axis: dahl does not know it`: func(g *onnx.Graph) {
			addBias(g, 7, 1, 1)
			g.Nodes[1].Attributes = map[string]onnx.Attribute{"axis": {Int: 1}, "broadcast": {Int: 1}}
		},
		`operator Gelu (node ""): approximate is "erf"; dahl has none and tanh`: func(g *onnx.Graph) {
			gelu := onnx.Node{Op: "Gelu", Inputs: []string{"y"}, Outputs: []string{"a"}, Attributes: map[string]onnx.Attribute{"approximate": {Text: "erf"}}}
			g.Nodes = slices.Insert(g.Nodes, 1, gelu)
		},
		`operator Conv (node "the Conv"): operand "conv.weight" is of type uint8 and shape [7 3 1 1]; write numbers of type float32`: func(g *onnx.Graph) {
			t := g.Tensors["conv.weight"]
			t.Type, t.Floats = "uint8", nil
		},
		`operator Conv (node "the Conv"): auto_pad is "SAME"; dahl has NOTSET, VALID, SAME_UPPER and SAME_LOWER`: func(g *onnx.Graph) { g.Nodes[0].Attributes["auto_pad"] = onnx.Attribute{Text: "SAME"} },
		`operator Conv (node "the Conv"): auto_pad is VALID and pads are [1 1 1 1]; write one of them`: func(g *onnx.Graph) {
			g.Nodes[0].Attributes["auto_pad"], g.Nodes[0].Attributes["pads"] = onnx.Attribute{Text: "VALID"}, onnx.Attribute{Ints: []int64{1, 1, 1, 1}}
		},
		`operator MaxPool (node ""): ceil_mode is 1, and windows of 2 with stride 2 do not end with the 5 rows`:           func(g *onnx.Graph) { pool(g, 2, onnx.Attribute{Int: 1}) },
		`operator Conv (node "the Conv"): operand "y" is not a constant of 4 dimensions`:                                  func(g *onnx.Graph) { g.Nodes[0].Inputs[1] = "y" },
		`operator Reshape (node "the Reshape"): samples of 7×5×5 do not have shape [5 35]; dahl keeps the samples apart`:  func(g *onnx.Graph) { g.Tensors["shape"].Ints = []int64{5, 35} },
		`operator Reshape (node "the Reshape"): samples of 7×5×5 do not have shape [-1 35]; dahl keeps the samples apart`: func(g *onnx.Graph) { g.Tensors["shape"].Ints[1] = 35 },
		`operator Gemm (node "the Gemm"): alpha is not 1`:                                                                 func(g *onnx.Graph) { g.Nodes[2].Attributes["alpha"] = onnx.Attribute{Float: 2} },
		`operator Gemm (node "the Gemm"): operand "q" is not the output of an operator before it`:                         func(g *onnx.Graph) { g.Nodes[2].Inputs[0] = "q" },
		`parameter "conv.weight" is to have shape [7 3 1 1], and the file has [7 2 1 1]`:                                  func(g *onnx.Graph) { g.Tensors["conv.weight"].Shape[1] = 2 },
		`the output is not that of the last operator alone`:                                                               func(g *onnx.Graph) { g.Outputs[0].Name = "y" },
		`it has several inputs; want one, images, features or tokens`:                                                     func(g *onnx.Graph) { g.Inputs = append(g.Inputs, g.Inputs[0]) },
		`it has no input`: func(g *onnx.Graph) { g.Inputs = nil },
		`input "x" has shape [0 3 0 5]; want a batch of C×H×W, of T×C, of features or of tokens, whose extents are known`: func(g *onnx.Graph) { g.Inputs[0].Shape[2] = 0 },
		`model "net": layer "relu1": no layer reads its output; write its name into the input of a later layer, or le`: func(g *onnx.Graph) {
			g.Nodes = slices.Insert(g.Nodes, 2, onnx.Node{Op: "Relu", Inputs: []string{"y"}, Outputs: []string{"x2"}})
		},
	} {
		g := onnxGraph()
		change(g)
		if _, err := files.ModelOfONNX(g, "net.onnx"); err == nil || !strings.HasPrefix(err.Error(), "net.onnx: "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestONNXTurnsWeights: without transB a dense weight is (inputs, outputs) in the file.
func TestONNXTurnsWeights(t *testing.T) {
	g := onnxGraph()
	w := &onnx.Tensor{Name: "w", Shape: []int{175, 11}}
	for i := range 175 * 11 {
		w.Floats = append(w.Floats, float64(i))
	}
	g.Tensors["w"], g.Nodes[2].Attributes["transB"] = w, onnx.Attribute{}
	m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
	p := m.Stages[2].Params[0]
	values := make([]float64, p.Elems())
	p.Init(values, 0, 1)
	if values[0] != 0 || values[1] != 11 || values[175] != 1 || !slices.Equal(p.Shape, []int{11, 175}) {
		t.Errorf("shape %v, values %v…", p.Shape, values[:3])
	}
}

// TestONNXDropout: the probability is an operand, or an attribute of older files, and 1/2 where there is neither.
func TestONNXDropout(t *testing.T) {
	for want, change := range map[float64]func(g *onnx.Graph, n *onnx.Node){
		0.5: func(*onnx.Graph, *onnx.Node) {},
		0.3: func(_ *onnx.Graph, n *onnx.Node) {
			n.Attributes["ratio"] = onnx.Attribute{Float: float64(float32(0.3))}
		},
		0.25: func(g *onnx.Graph, n *onnx.Node) {
			g.Tensors["p"], n.Inputs = &onnx.Tensor{Floats: []float64{0.25}}, append(n.Inputs, "p", "training")
		},
	} {
		g := onnxGraph()
		n := onnx.Node{Op: "Dropout", Inputs: []string{"f"}, Outputs: []string{"d", "mask"}, Attributes: map[string]onnx.Attribute{}}
		change(g, &n)
		g.Nodes[2].Inputs[0] = "d"
		g.Nodes = slices.Insert(g.Nodes, 2, n)
		m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
		if got := m.Stages[2].Layer.(layers.Dropout).P; got != want {
			t.Errorf("p is %g, want %g", got, want)
		}
	}
}

// FuzzONNX: no file panics, and a model that is read lowers.
func FuzzONNX(f *testing.F) {
	file := must.Get(os.ReadFile(exportedFile))(f)
	f.Add(file)
	for i := 0; i < len(file); i += 997 {
		f.Add(file[:i])
	}
	for _, path := range must.Get(filepath.Glob("../testdata/transformers/*.onnx"))(f) {
		f.Add(must.Get(os.ReadFile(path))(f))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := files.ParseONNX(file, "fuzz.onnx")
		if err != nil {
			return
		}
		for _, s := range m.Stages {
			if slices.ContainsFunc(append(s.In, s.Out), func(shape []int) bool { return nn.Elems(shape) > 1<<20 }) {
				return // fine, but slow to lower
			}
		}
		for _, p := range m.Parameters() {
			if p.Elems() > 1<<20 {
				return
			}
			p.Init(make([]float64, p.Elems()), 0, 1)
		}
		if _, err := m.Lower(nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5}); err != nil {
			t.Errorf("a model that is read does not lower: %v", err)
		}
	})
}

// TestONNXSpellings: what says the same in other words is the same network. The graph is a convolution, a flatten to 175 features and a
// dense layer; it has a batch of 2 where a shape says a number.
func TestONNXSpellings(t *testing.T) {
	ints := func(name string, values ...int64) *onnx.Tensor {
		return &onnx.Tensor{Name: name, Type: "int64", Shape: []int{len(values)}, Ints: values}
	}
	node := func(op, to string, inputs ...string) onnx.Node {
		return onnx.Node{Op: op, Inputs: inputs, Outputs: []string{to}, Attributes: map[string]onnx.Attribute{}}
	}
	with := func(n onnx.Node, name string, a onnx.Attribute) onnx.Node {
		n.Attributes[name] = a
		return n
	}
	instead := func(g *onnx.Graph, nodes ...onnx.Node) { g.Nodes = slices.Concat(g.Nodes[:1], nodes, g.Nodes[2:]) }
	opt := nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5}
	plain := must.Get(files.ModelOfONNX(onnxGraph(), "net.onnx"))(t)
	want := lowered(t, plain, opt).Hash()
	for name, change := range map[string]func(g *onnx.Graph){
		"flatten, axis -3": func(g *onnx.Graph) { instead(g, with(node("Flatten", "f", "y"), "axis", onnx.Attribute{Int: -3})) },
		"the batch":        func(g *onnx.Graph) { g.Inputs[0].Shape[0], g.Tensors["shape"].Ints = 2, []int64{2, 175} },
		"0, -1":            func(g *onnx.Graph) { g.Tensors["shape"].Ints = []int64{0, -1} },
		"constant of numbers": func(g *onnx.Graph) {
			instead(g, with(node("Constant", "s"), "value_ints", onnx.Attribute{Ints: []int64{-1, 175}}), node("Reshape", "f", "y", "s"))
		},
		"x.view(x.size(0), -1)": func(g *onnx.Graph) {
			g.Tensors["i"], g.Tensors["axes"], g.Tensors["rest"] = &onnx.Tensor{Name: "i", Ints: []int64{0}}, ints("axes", 0), ints("rest", -1)
			instead(g, node("Shape", "s", "y"), node("Gather", "n", "s", "i"), node("Unsqueeze", "u", "n", "axes"), node("Concat", "to", "u", "rest"), node("Reshape", "f", "y", "to"))
		},
		"x.view(x.shape[:1] + (c*h*w,))": func(g *onnx.Graph) {
			at := func(to string, start, end int64) onnx.Node {
				return with(with(node("Shape", to, "y"), "start", onnx.Attribute{Int: start}), "end", onnx.Attribute{Int: end})
			}
			instead(g, at("n", 0, 1), at("c", 1, 2), at("h", -2, -1), at("b", 3, 4), node("Mul", "cw", "c", "b"), node("Mul", "all", "cw", "h"), node("Concat", "to", "n", "all"), node("Reshape", "f", "y", "to"))
		},
		"slices": func(g *onnx.Graph) {
			g.Tensors["0"], g.Tensors["1"], g.Tensors["rest"] = ints("0", 0), ints("1", 1), ints("rest", -1)
			instead(g, node("Shape", "s", "y"), node("Slice", "n", "s", "0", "1"), node("Cast", "m", "n"), node("Concat", "to", "m", "rest"), node("Reshape", "f", "y", "to"))
		},
		"a shape that it has": func(g *onnx.Graph) {
			g.Tensors["own"] = ints("own", -1, 7, 5, 5)
			instead(g, node("Reshape", "same", "y", "own"), with(node("Cast", "f32", "same"), "to", onnx.Attribute{Int: 1}), node("Flatten", "f", "f32"))
		},
		"auto_pad VALID":              func(g *onnx.Graph) { g.Nodes[0].Attributes["auto_pad"] = onnx.Attribute{Text: "VALID"} },
		"auto_pad of a window of one": func(g *onnx.Graph) { g.Nodes[0].Attributes["auto_pad"] = onnx.Attribute{Text: "SAME_UPPER"} },
		"float16":                     func(g *onnx.Graph) { g.Tensors["w"].Type = "float16" },
		"a cast weight": func(g *onnx.Graph) {
			g.Tensors["half"] = g.Tensors["w"]
			delete(g.Tensors, "w")
			g.Nodes = slices.Insert(g.Nodes, 0, with(node("Cast", "w", "half"), "to", onnx.Attribute{Int: 1}))
		},
	} {
		g := onnxGraph()
		change(g)
		m, err := files.ModelOfONNX(g, "net.onnx")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if lowered(t, m, opt).Hash() != want {
			t.Errorf("%s: another network: %+v", name, m.Stages)
		}
		if wide := name == "float16"; err == nil && wide != (len(m.Notes) == 1 && strings.Contains(m.Notes[0], "float16 are widened")) {
			t.Errorf("%s: notes %q", name, m.Notes)
		}
	}
}

// TestONNXBias: a constant that is added to the output of a layer is its bias, in each shape that has a number per channel, and
// gives the layer its name where the weight does not.
func TestONNXBias(t *testing.T) {
	for _, shape := range [][]int{{7, 1, 1}, {1, 7, 1, 1}} {
		g := onnxGraph()
		addBias(g, shape...)
		g.Nodes = append(g.Nodes, onnx.Node{Op: "Add", Inputs: []string{"z", "fc.bias"}, Outputs: []string{"logits"}})
		g.Outputs[0].Name = "logits"
		g.Tensors["fc.bias"] = &onnx.Tensor{Name: "fc.bias", Shape: []int{1, 11}[2-min(2, len(shape)-2):], Floats: make([]float64, 11)}
		m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
		var names []string
		for _, p := range m.State() {
			names = append(names, fmt.Sprint(p.Name, p.Shape))
		}
		if got, want := strings.Join(names, " "), "conv.weight[7 3 1 1] conv.bias[7] fc.weight[11 175] fc.bias[11]"; got != want {
			t.Errorf("%v: parameters %s, want %s", shape, got, want)
		}
		if values := m.Stages[0].Params[1].Values; !slices.Equal(values, []float64{1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("bias %v", values)
		}
	}
}

// TestONNXPadding: of 7 rows and 10 columns, windows of 4 that are 3 apart are ⌈7/3⌉ = 3 and ⌈10/3⌉ = 4. They span (3 - 1)·3 + 4 = 10 rows,
// so that 3 are missing, and (4 - 1)·3 + 4 = 13 columns, 3 more. The greater part is below and to the right, or above and to the left.
func TestONNXPadding(t *testing.T) {
	for auto, want := range map[string]layers.Pads{"SAME_UPPER": {Top: 1, Left: 1, Bottom: 2, Right: 2}, "SAME_LOWER": {Top: 2, Left: 2, Bottom: 1, Right: 1}, "VALID": {}} {
		g := onnxGraph()
		g.Inputs[0].Shape = []int{0, 3, 7, 10}
		g.Tensors["conv.weight"] = &onnx.Tensor{Name: "conv.weight", Shape: []int{7, 3, 4, 4}, Floats: make([]float64, 7*3*16)}
		g.Nodes[0].Attributes["auto_pad"], g.Nodes[0].Attributes["strides"] = onnx.Attribute{Text: auto}, onnx.Attribute{Ints: []int64{3, 3}}
		g.Nodes = g.Nodes[:2]
		g.Nodes[1] = onnx.Node{Op: "Flatten", Inputs: []string{"y"}, Outputs: []string{"z"}}
		m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
		shape := []int{7, 3, 4}
		if auto == "VALID" {
			shape = []int{7, 2, 3}
		}
		if got := m.Stages[0].Layer.(layers.Conv2D).Pads; got != want || !slices.Equal(m.Stages[0].Out, shape) {
			t.Errorf("%s: pads %v and output %v, want %v and %v", auto, got, m.Stages[0].Out, want, shape)
		}
	}
}

// TestONNXWholeWindows: rounding up changes nothing where the last window ends with the image, as 5 windows of 1 do.
func TestONNXWholeWindows(t *testing.T) {
	g := onnxGraph()
	pool(g, 1, onnx.Attribute{Int: 1})
	m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
	if got := m.Stages[1].Out; !slices.Equal(got, []int{7, 5, 5}) {
		t.Errorf("output %v", got)
	}
}

// TestONNXNames: parameters keep the names of the file where dahl has a word of its own, or a name no layer may have.
func TestONNXNames(t *testing.T) {
	for _, of := range []string{"input", "0", "loss.head", "features.3"} {
		g := onnxGraph()
		g.Tensors[of+".weight"] = g.Tensors["w"]
		g.Nodes[2].Inputs[1] = of + ".weight"
		m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
		fitted := must.Get(m.For(m.Input, 11))(t)
		if got := fitted.State()[1].Name; got != of+".weight" {
			t.Errorf("the weight is %s, want %s.weight", got, of)
		}
		lowered(t, fitted, nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5, Lowering: nn.DefaultLowering(fitted, 3, 0, dag.Float32)})
	}
}

// TestONNXOtherNames: a name that no layer may have is said beside the one that its parameter has here.
func TestONNXOtherNames(t *testing.T) {
	g := onnxGraph()
	g.Tensors["a/b.weight"] = g.Tensors["w"]
	g.Nodes[2].Inputs[1] = "a/b.weight"
	m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
	if len(m.Notes) != 1 || !strings.HasSuffix(m.Notes[0], ": a/b.weight (fc1.weight)") {
		t.Errorf("notes %q", m.Notes)
	}
}

// TestONNXKeptApart: statistics that begin with the same numbers as a parameter, or as other statistics, are of each layer, as are scales and shifts
// of normalisations, and it is said.
func TestONNXKeptApart(t *testing.T) {
	g := onnxGraph()
	for _, name := range []string{"ones", "zeros"} {
		g.Tensors[name] = &onnx.Tensor{Name: name, Shape: []int{7}, Floats: make([]float64, 7)}
	}
	norm := func(from, to string) onnx.Node {
		return onnx.Node{Op: "BatchNormalization", Inputs: []string{from, "ones", "zeros", "zeros", "ones"}, Outputs: []string{to}, Attributes: map[string]onnx.Attribute{}}
	}
	g.Nodes = slices.Insert(g.Nodes, 1, norm("y", "n1"), norm("n1", "n2"))
	g.Nodes[3].Inputs[0] = "n2"
	m := must.Get(files.ModelOfONNX(g, "net.onnx"))(t)
	if got := len(m.SharedNames()); got != 0 {
		t.Errorf("%d parameters are shared, want none", got)
	}
	if len(m.Notes) != 1 || !strings.HasSuffix(m.Notes[0], "each of which has its own copy: ones, zeros") {
		t.Errorf("notes %q", m.Notes)
	}
	// One weight as it is and turned is not one parameter.
	g = onnxGraph()
	g.Tensors["w"] = &onnx.Tensor{Name: "w", Shape: []int{175, 175}, Floats: make([]float64, 175*175)}
	g.Nodes = append(g.Nodes, onnx.Node{Op: "MatMul", Inputs: []string{"z", "w"}, Outputs: []string{"last"}})
	g.Outputs[0].Name = "last"
	want := `net.onnx: operator MatMul (node ""): initializer "w" is the weight of layer fc1 and the weight of layer fc2, turned, which dahl does not train as one parameter; write it twice, under two names`
	if _, err := files.ModelOfONNX(g, "net.onnx"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
