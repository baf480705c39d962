package nn

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn/onnx"
)

const exportedFile = "testdata/exchange.onnx"

// TestONNX reads networks that PyTorch exported. Each is that of the fixture of the same name, whose
// values are compared with PyTorch's: it lowers to the same graph, and its parameters begin with
// the same numbers.
func TestONNX(t *testing.T) {
	for _, f := range readFixtures(t).Layers {
		if f.Name == "exchange" || f.Name == "windows" || f.Name == "normalised" {
			t.Run(f.Name, func(t *testing.T) { checkExported(t, &f) })
		}
	}
}

func checkExported(t *testing.T, f *layerFixture) {
	m, err := LoadModel("testdata/" + f.Name + ".onnx")
	if err != nil {
		t.Fatal(err)
	}
	opt := LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 11, Lowering: dag.Lowering{Fused: true, Layout: dag.NHWC}}
	got, want := mustLower(t, m, opt), mustLower(t, f.model(t), opt)
	if !reflect.DeepEqual(got.Tasks, want.Tasks) || !reflect.DeepEqual(got.Buffers, want.Buffers) {
		t.Error("the network is another than that of the fixture")
	}
	fitted, err := m.For(m.Input, m.Classes())
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, p := range fitted.State() {
		if p.Counts {
			continue
		}
		known++
		values := make([]float64, p.Elems())
		p.Init(values, 7)
		if !slices.Equal(values, f.Params[p.Name]) {
			t.Errorf("%s begins with %v…, want %v…", p.Name, values[:2], f.Params[p.Name][:2])
		}
	}
	if n := len(f.Params); n != known {
		t.Errorf("%d parameters and running statistics, want %d", known, n)
	}
}

// TestONNXClasses: weights of a file have its number of classes.
func TestONNXClasses(t *testing.T) {
	m, err := LoadModel(exportedFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.For(m.Input, m.Classes()+2); err == nil || !strings.Contains(err.Error(), `parameter "fc3.weight" of the file has shape [17 19], and [19 19] is wanted`) {
		t.Errorf("another number of classes: %v", err)
	}
}

// onnxGraph is a graph of one convolution 3×5×5 → 7×5×5, a flatten and a dense layer.
func onnxGraph() *onnx.Graph {
	tensor := func(name string, shape ...int) *onnx.Tensor {
		return &onnx.Tensor{Name: name, Shape: shape, Floats: make([]float64, elems(shape))}
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

// TestONNXErrors: what dahl has no layer for is refused in one line that names the operator.
func TestONNXErrors(t *testing.T) {
	if m, err := modelOfONNX(onnxGraph(), "net.onnx"); err != nil || m.Stages[0].Name != "conv" || m.Stages[2].Name != "fc1" || m.Name != "net" {
		t.Fatalf("the graph itself: %+v, %v", m, err)
	}
	for want, change := range map[string]func(g *onnx.Graph){
		`operator Erf (node "the Conv"): dahl has no layer for it; it reads Add, AveragePool, `:                     func(g *onnx.Graph) { g.Nodes[0].Op = "Erf" },
		`operator Conv (node "the Conv"): pads are [1 2]; want 4 numbers of at least 0`:                             func(g *onnx.Graph) { g.Nodes[0].Attributes["pads"] = onnx.Attribute{Ints: []int64{1, 2}} },
		`operator Conv (node "the Conv"): strides are [0 2]; want at least 1`:                                       func(g *onnx.Graph) { g.Nodes[0].Attributes["strides"] = onnx.Attribute{Ints: []int64{0, 2}} },
		`operator Conv (node "the Conv"): kernel_shape are [1 3]; the weight has [1 1]`:                             func(g *onnx.Graph) { g.Nodes[0].Attributes["kernel_shape"] = onnx.Attribute{Ints: []int64{1, 3}} },
		`operator Conv (node "the Conv"): group is 8; want 1 to 7, the filters`:                                     func(g *onnx.Graph) { g.Nodes[0].Attributes["group"] = onnx.Attribute{Int: 8} },
		`model "net": layer "conv" (conv2d) of input 3×5×5: 7 groups; want a divisor of the 3 ch`:                   func(g *onnx.Graph) { g.Nodes[0].Attributes["group"] = onnx.Attribute{Int: 7} },
		`operator Conv (node "the Conv"): attribute magic: dahl does not know it`:                                   func(g *onnx.Graph) { g.Nodes[0].Attributes["magic"] = onnx.Attribute{} },
		`operator Conv (node "the Conv"): operand "y" is not a constant of 4 dimensions`:                            func(g *onnx.Graph) { g.Nodes[0].Inputs[1] = "y" },
		`operator Reshape (node "the Reshape"): dahl has only the shape of a flatten, (batch, -1)`:                  func(g *onnx.Graph) { g.Tensors["shape"].Ints = []int64{5, 35} },
		`operator Reshape (node "the Reshape"): it has 175 features and the file 35; dahl keeps the batch as it is`: func(g *onnx.Graph) { g.Tensors["shape"].Ints[1] = 35 },
		`operator Gemm (node "the Gemm"): alpha is not 1`:                                                           func(g *onnx.Graph) { g.Nodes[2].Attributes["alpha"] = onnx.Attribute{Float: 2} },
		`operator Gemm (node "the Gemm"): operand "q" is not the output of an operator before it`:                   func(g *onnx.Graph) { g.Nodes[2].Inputs[0] = "q" },
		`parameter "conv.weight" is to have shape [7 3 1 1], and the file has [7 2 1 1]`:                            func(g *onnx.Graph) { g.Tensors["conv.weight"].Shape[1] = 2 },
		`the output is not that of the last operator alone`:                                                         func(g *onnx.Graph) { g.Outputs[0].Name = "y" },
		`it has several inputs; want one, images or features`:                                                       func(g *onnx.Graph) { g.Inputs = append(g.Inputs, g.Inputs[0]) },
		`it has no input`: func(g *onnx.Graph) { g.Inputs = nil },
		`input "x" has shape [0 3 0 5]; want a batch of C×H×W or of features, whose extents are known`: func(g *onnx.Graph) { g.Inputs[0].Shape[2] = 0 },
		`model "net": layer "flatten1": no layer reads its output; write its name into the input of a later layer, or le`: func(g *onnx.Graph) {
			g.Nodes[2].Inputs[0] = "x2"
			g.Nodes = slices.Insert(g.Nodes, 2, onnx.Node{Op: "Flatten", Inputs: []string{"y"}, Outputs: []string{"x2"}})
		},
	} {
		g := onnxGraph()
		change(g)
		if _, err := modelOfONNX(g, "net.onnx"); err == nil || !strings.HasPrefix(err.Error(), "net.onnx: "+want) || strings.Contains(err.Error(), "\n") {
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
	m, err := modelOfONNX(g, "net.onnx")
	if err != nil {
		t.Fatal(err)
	}
	p := m.Stages[2].Params[0]
	values := make([]float64, p.Elems())
	p.Init(values, 1)
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
		m, err := modelOfONNX(g, "net.onnx")
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Stages[2].Layer.(Dropout).P; got != want {
			t.Errorf("p is %g, want %g", got, want)
		}
	}
}

// FuzzONNX: no file panics, and a model that is read lowers.
func FuzzONNX(f *testing.F) {
	file, err := os.ReadFile(exportedFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	for i := 0; i < len(file); i += 997 {
		f.Add(file[:i])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := ParseONNX(file, "fuzz.onnx")
		if err != nil {
			return
		}
		for _, s := range m.Stages {
			if s.inElems() > 1<<20 || elems(s.Out) > 1<<20 {
				return // fine, but slow to lower
			}
		}
		for _, p := range m.Parameters() {
			if p.Elems() > 1<<20 {
				return
			}
			p.Init(make([]float64, p.Elems()), 1)
		}
		if _, err := m.Lower(LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5}); err != nil {
			t.Errorf("a model that is read does not lower: %v", err)
		}
	})
}
