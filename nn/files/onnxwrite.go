package files

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

// WriteONNX writes a network with numbers for its parameters and running statistics, little-endian of a type (float32 for bfloat16), under the names of the
// network. The output is the logits: the loss is not part of the file. ParseONNX reads the same network back, but that the names of layers without
// parameters are automatic ones, and counts of batches begin anew.
func WriteONNX(out io.Writer, m *nn.Model, t dag.DType, bytesOf func(name string) []byte) error {
	w, err := newONNXWriter(m, t)
	if err != nil {
		return err
	}
	for name, tensor := range w.graph.Tensors {
		if tensor.Raw == nil {
			tensor.Raw = bytesOf(name)
		}
	}
	return onnx.Encode(out, w.graph, m.Name)
}

// CheckONNX refuses a network that WriteONNX cannot write.
func CheckONNX(m *nn.Model, t dag.DType) error {
	_, err := newONNXWriter(m, t)
	return err
}

// onnxWriter is a graph while layers become its operators. The first mistake is kept.
type onnxWriter struct {
	graph *onnx.Graph
	dtype dag.DType
	err   error
}

// newONNXWriter makes a graph that lacks the numbers of the parameters. Weights are kept in the type of the arithmetic.
func newONNXWriter(m *nn.Model, t dag.DType) (*onnxWriter, error) {
	t = t.Arithmetic()
	w := &onnxWriter{graph: &onnx.Graph{Tensors: map[string]*onnx.Tensor{}, Opset: onnx.GeluOpset}, dtype: t}
	last := len(m.Stages) - 1
	operandOf := func(stage int) string {
		switch stage {
		case nn.ModelInput:
			return nn.InputName
		case last:
			return "output"
		}
		return m.Stages[stage].Name + "/output" // which is no name of a layer or a parameter
	}
	value := func(name, kind string, sample []int) []onnx.Value {
		return []onnx.Value{{Name: name, Type: kind, Shape: append([]int{0}, sample...)}}
	}
	input := t.String()
	if m.Vocabulary() > 0 {
		input = "int64"
	}
	w.graph.Inputs, w.graph.Outputs = value(nn.InputName, input, m.Input), value(operandOf(last), t.String(), m.Stages[last].Out)
	for i := range m.Stages {
		s := &m.Stages[i]
		n := onnx.Node{Name: s.Name, Outputs: []string{operandOf(i)}}
		for _, from := range s.Inputs {
			n.Inputs = append(n.Inputs, operandOf(from))
		}
		for _, p := range s.Params {
			n.Inputs = append(n.Inputs, w.parameter(&p))
		}
		for _, shape := range append(slices.Clone(s.In), s.Out) {
			if _, flattens := s.Layer.(layers.Flatten); len(shape) > 3 || len(shape) == 2 && shape[0] > 1 && flattens {
				w.fail("samples of %s; dahl writes ONNX files for images C×H×W, for sequences T×C without a flatten of several positions, and for features", naming.ShapeText(shape))
			}
		}
		n.Op, n.Attributes = w.operator(s, &n)
		if w.graph.Nodes = append(w.graph.Nodes, w.operators(s, n)...); w.err != nil {
			return nil, fmt.Errorf("model %q: layer %q (%s): %w", m.Name, s.Name, s.Layer.Kind(), w.err)
		}
	}
	return w, nil
}

// parameter adds a parameter, which layers may share.
func (w *onnxWriter) parameter(p *nn.Parameter) (name string) {
	name = cmp.Or(p.Of, p.Name)
	w.graph.Tensors[name] = &onnx.Tensor{Name: name, Type: w.dtype.String(), Shape: p.Shape}
	return name
}

func (w *onnxWriter) fail(format string, args ...any) {
	w.err = cmp.Or(w.err, fmt.Errorf(format, args...))
}

// onnxFunctions are the operators of functions of single elements.
var onnxFunctions = map[string]string{"tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "Gelu", "gelu_tanh": "Gelu", "leaky_relu": "LeakyRelu"}

// operator is the operator of a layer with its attributes. It adds operands of the file behind the inputs and parameters.
func (w *onnxWriter) operator(s *nn.Stage, n *onnx.Node) (op string, attributes map[string]onnx.Attribute) {
	for _, of := range []func(*nn.Stage, *onnx.Node) (string, map[string]onnx.Attribute){w.imageOperator, w.sequenceOperator, w.plainOperator} {
		if op, attributes = of(s, n); op != "" {
			return op, attributes
		}
	}
	w.fail("dahl writes no ONNX operator for it; save the weights as an .npz file")
	return "", nil
}

// imageOperator is the operator of a layer of images. An empty name means that it is none.
func (w *onnxWriter) imageOperator(s *nn.Stage, n *onnx.Node) (op string, attributes map[string]onnx.Attribute) {
	switch l := s.Layer.(type) {
	case layers.Conv2D:
		attributes = windowAttributes(l.Windows())
		attributes["group"] = onnx.Attribute{Int: int64(max(1, l.Groups))}
		return "Conv", attributes
	case layers.BatchNorm:
		for _, p := range s.Running[:2] {
			n.Inputs = append(n.Inputs, w.parameter(&p))
		}
		eps, momentum := l.Numbers()
		return "BatchNormalization", map[string]onnx.Attribute{"epsilon": w.number("eps", eps), "momentum": {Float: 1 - momentum}}
	case layers.MaxPool:
		return "MaxPool", poolAttributes(l.Windows())
	case layers.AvgPool:
		attributes = poolAttributes(layers.MaxPool(l).Windows())
		attributes["count_include_pad"] = onnx.Attribute{Int: 1}
		return "AveragePool", attributes
	case layers.GlobalAvgPool:
		return "GlobalAveragePool", nil
	case layers.Flatten:
		return "Flatten", map[string]onnx.Attribute{"axis": {Int: 1}}
	case layers.Pixels:
		return "Reshape", nil // with a Transpose
	}
	return "", nil
}

// sequenceOperator is the same for sequences.
func (w *onnxWriter) sequenceOperator(s *nn.Stage, n *onnx.Node) (op string, attributes map[string]onnx.Attribute) {
	switch l := s.Layer.(type) {
	case layers.Embedding:
		slices.Reverse(n.Inputs)
		return "Gather", map[string]onnx.Attribute{"axis": {}}
	case layers.Positions:
		return "Add", nil
	case layers.ClassToken:
		return "Concat", map[string]onnx.Attribute{"axis": {Int: 1}}
	case layers.Select:
		n.Inputs = append(n.Inputs, w.integers(s.Name+"/position", l.Position))
		return "Gather", map[string]onnx.Attribute{"axis": {Int: 1}}
	case layers.LayerNorm:
		return "LayerNormalization", w.normAttributes(l.Eps)
	case layers.RMSNorm:
		w.graph.Opset = onnx.AttentionOpset
		return "RMSNormalization", w.normAttributes(l.Eps)
	case layers.Attention:
		w.graph.Opset = onnx.AttentionOpset
		if l.Dropout > 0 {
			w.fail("attention_dropout %g; dahl writes attention without, as evaluations have it", l.Dropout)
		}
		if l.Window > 0 {
			w.fail("a window of %d positions; dahl writes attention to all positions, or to all before", l.Window)
		}
		return "Attention", map[string]onnx.Attribute{
			"q_num_heads": {Int: int64(l.Heads)}, "kv_num_heads": {Int: int64(cmp.Or(l.KeyHeads, l.Heads))}, "is_causal": {Int: map[bool]int64{true: 1}[l.Causal]},
		}
	}
	return "", nil
}

// plainOperator is the same for layers of any samples.
func (w *onnxWriter) plainOperator(s *nn.Stage, n *onnx.Node) (op string, attributes map[string]onnx.Attribute) {
	switch l := s.Layer.(type) {
	case layers.Dense:
		return "Gemm", map[string]onnx.Attribute{"transB": {Int: 1}}
	case layers.ReLU:
		return "Relu", nil
	case layers.Dropout:
		n.Inputs = append(n.Inputs, w.ratio(s.Name, l.P))
		return "Dropout", nil
	case layers.Add:
		if len(n.Inputs) > 2 {
			return "Sum", nil
		}
		return "Add", nil
	case layers.Concat:
		axis := int64(1)
		if len(s.Out) == 2 {
			axis = 2
		}
		return "Concat", map[string]onnx.Attribute{"axis": {Int: axis}}
	case layers.Multiply:
		return "Mul", nil
	case layers.Activation:
		switch op = onnxFunctions[l.Function]; l.Function {
		case "gelu_tanh":
			attributes = map[string]onnx.Attribute{"approximate": {Text: "tanh"}}
		case "silu":
			op = "Mul" // with a Sigmoid
		case "leaky_relu":
			attributes = map[string]onnx.Attribute{"alpha": w.number("slope", l.Setting)}
		}
	}
	return op, attributes
}

// operators are the operators of a layer, around its main one: a Gemm has no sequences, a class token is to be repeated, Attention has three operands, and there is none for SiLU.
func (w *onnxWriter) operators(s *nn.Stage, n onnx.Node) []onnx.Node {
	own := func(part string) string { return s.Name + "/" + part }
	switch l := s.Layer.(type) {
	case layers.Pixels:
		turn := onnx.Node{Name: own("turn"), Op: "Transpose", Inputs: []string{own("between")}, Outputs: n.Outputs, Attributes: map[string]onnx.Attribute{"perm": {Ints: []int64{0, 2, 1}}}}
		if len(s.In[0]) == 2 {
			turn.Inputs, turn.Outputs = n.Inputs, []string{own("between")}
			n.Inputs = []string{own("between"), w.integers(own("shape"), -1, s.Out[0], s.Out[1], 1)}
			return []onnx.Node{turn, n}
		}
		n.Inputs, n.Outputs = append(n.Inputs, w.integers(own("shape"), -1, s.Out[1], s.Out[0])), []string{own("between")}
		return []onnx.Node{n, turn}
	case layers.Dense:
		if len(s.Out) != 2 {
			break
		}
		rows := onnx.Node{Name: own("in"), Op: "Reshape", Inputs: []string{n.Inputs[0], w.integers(own("rows"), -1, s.In[0][1])}, Outputs: []string{own("in")}}
		back := onnx.Node{Name: own("out"), Op: "Reshape", Inputs: []string{own("product"), w.integers(own("shape"), -1, s.Out[0], s.Out[1])}, Outputs: n.Outputs}
		n.Inputs[0], n.Outputs = own("in"), []string{own("product")}
		return []onnx.Node{rows, n, back}
	case layers.ClassToken: // as often as there are samples
		samples := onnx.Node{Name: own("samples"), Op: "Shape", Inputs: n.Inputs[:1], Outputs: []string{own("samples")}, Attributes: map[string]onnx.Attribute{"start": {}, "end": {Int: 1}}}
		shape := onnx.Node{Name: own("shape"), Op: "Concat", Inputs: []string{own("samples"), w.integers(own("sample"), 1, s.Out[1])}, Outputs: []string{own("shape")}, Attributes: map[string]onnx.Attribute{"axis": {}}}
		token := onnx.Node{Name: own("token"), Op: "Expand", Inputs: []string{n.Inputs[1], own("shape")}, Outputs: []string{own("token")}}
		n.Inputs = []string{own("token"), n.Inputs[0]}
		return []onnx.Node{samples, shape, token, n}
	case layers.Attention:
		width := s.Out[1] / l.Heads * cmp.Or(l.KeyHeads, l.Heads)
		parts := []string{own("queries"), own("keys"), own("values")}
		split := onnx.Node{Name: own("split"), Op: "Split", Inputs: []string{n.Inputs[0], w.integers(own("widths"), s.Out[1], width, width)}, Outputs: parts, Attributes: map[string]onnx.Attribute{"axis": {Int: 2}}}
		n.Inputs = parts
		return []onnx.Node{split, n}
	case layers.Activation:
		if l.Function == "silu" {
			gate := onnx.Node{Name: own("gate"), Op: "Sigmoid", Inputs: n.Inputs, Outputs: []string{own("gate")}}
			n.Inputs = []string{n.Inputs[0], own("gate")}
			return []onnx.Node{gate, n}
		}
	}
	return []onnx.Node{n}
}

// integers adds a constant of whole numbers.
func (w *onnxWriter) integers(name string, values ...int) string {
	t := &onnx.Tensor{Name: name, Type: "int64", Shape: []int{len(values)}}
	for _, v := range values {
		t.Raw = binary.LittleEndian.AppendUint64(t.Raw, uint64(v))
	}
	w.graph.Tensors[name] = t
	return name
}

func (w *onnxWriter) normAttributes(eps float64) map[string]onnx.Attribute {
	return map[string]onnx.Attribute{"axis": {Int: -1}, "epsilon": w.number("eps", cmp.Or(eps, 1e-5))}
}

// number is a setting, which the format keeps as a float32.
func (w *onnxWriter) number(name string, v float64) onnx.Attribute {
	if decimal(float64(float32(v))) != v {
		w.fail("%s is %v, and an ONNX file keeps six digits; train with fewer digits", name, v)
	}
	return onnx.Attribute{Float: v}
}

// ratio adds the probability of a dropout.
func (w *onnxWriter) ratio(layer string, p float64) (name string) {
	name = layer + "/ratio"
	w.graph.Tensors[name] = &onnx.Tensor{Name: name, Type: "float32", Shape: []int{}, Raw: binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(p)))}
	return name
}

func windowAttributes(windows [2]layers.Window) map[string]onnx.Attribute {
	rows, columns := windows[0], windows[1]
	ints := func(all ...int) (a onnx.Attribute) {
		for _, v := range all {
			a.Ints = append(a.Ints, int64(v))
		}
		return a
	}
	return map[string]onnx.Attribute{
		"kernel_shape": ints(rows.Size, columns.Size), "strides": ints(rows.Stride, columns.Stride), "dilations": ints(rows.Dilation, columns.Dilation),
		"pads": ints(rows.Before, columns.Before, rows.After, columns.After),
	}
}

// poolAttributes are the attributes of a window without gaps.
func poolAttributes(windows [2]layers.Window) map[string]onnx.Attribute {
	a := windowAttributes(windows)
	delete(a, "dilations")
	return a
}
