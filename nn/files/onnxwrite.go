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

// WriteONNX writes a network with numbers for its parameters and running statistics, little-endian of a type, under the names of the
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

// newONNXWriter makes a graph that lacks the numbers of the parameters.
func newONNXWriter(m *nn.Model, t dag.DType) (*onnxWriter, error) {
	w := &onnxWriter{graph: &onnx.Graph{Tensors: map[string]*onnx.Tensor{}}, dtype: t}
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
	value := func(name string, sample []int) []onnx.Value {
		return []onnx.Value{{Name: name, Type: t.String(), Shape: append([]int{0}, sample...)}}
	}
	w.graph.Inputs, w.graph.Outputs = value(nn.InputName, m.Input), value(operandOf(last), m.Stages[last].Out)
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
			if len(shape) != 1 && len(shape) != 3 {
				w.fail("samples of %s; dahl writes ONNX files for images C×H×W and for features", naming.ShapeText(shape))
			}
		}
		if n.Op, n.Attributes = w.operator(s, &n); w.err != nil {
			return nil, fmt.Errorf("model %q: layer %q (%s): %w", m.Name, s.Name, s.Layer.Kind(), w.err)
		}
		w.graph.Nodes = append(w.graph.Nodes, n)
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
	switch l := s.Layer.(type) {
	case layers.Conv2D:
		attributes = windowAttributes(l.Windows())
		attributes["group"] = onnx.Attribute{Int: int64(max(1, l.Groups))}
		return "Conv", attributes
	case layers.Dense:
		return "Gemm", map[string]onnx.Attribute{"transB": {Int: 1}}
	case layers.ReLU:
		return "Relu", nil
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
	case layers.Dropout:
		n.Inputs = append(n.Inputs, w.ratio(s.Name, l.P))
		return "Dropout", nil
	case layers.Flatten:
		return "Flatten", map[string]onnx.Attribute{"axis": {Int: 1}}
	case layers.Add:
		if len(n.Inputs) > 2 {
			return "Sum", nil
		}
		return "Add", nil
	case layers.Concat:
		return "Concat", map[string]onnx.Attribute{"axis": {Int: 1}}
	case layers.Activation:
		switch op = onnxFunctions[l.Function]; l.Function {
		case "gelu_tanh":
			attributes = map[string]onnx.Attribute{"approximate": {Text: "tanh"}}
		case "leaky_relu":
			attributes = map[string]onnx.Attribute{"alpha": w.number("slope", l.Setting)}
		}
	}
	if op == "" {
		w.fail("dahl writes no ONNX operator for it; save the weights as an .npz file")
	}
	return op, attributes
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
