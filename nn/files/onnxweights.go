package files

import (
	"cmp"
	"slices"

	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

// param is a parameter of a number of dimensions.
func (n *onnxNode) param(operand, kind string, dims int) *onnx.Tensor {
	t := n.constant(operand, dims)
	if t == nil {
		return &onnx.Tensor{Shape: make([]int, dims)}
	}
	n.params = append(n.params, onnxParam{operand, kind, t, t, false})
	return t
}

// constant is a constant of floating point of a number of dimensions. Nil means it is none.
func (n *onnxNode) constant(operand string, dims int) *onnx.Tensor {
	switch t := n.reader.graph.Tensors[operand]; {
	case t == nil || len(t.Shape) != dims:
		n.fail("operand %q is not a constant of %d dimensions", operand, dims)
	case len(t.Floats) == 0:
		n.fail("operand %q is of type %s and shape %v; write numbers of type float32", operand, t.Type, t.Shape)
	default:
		return t
	}
	return nil
}

// weighted takes the weight and the bias of a layer. The bias is an operand, or what a sum behind the operator adds.
func (n *onnxNode) weighted(dims int) (weight *onnx.Tensor, noBias bool) {
	if len(n.Inputs) < 2 || len(n.Inputs) > 3 {
		n.fail("%d operands; want two or three", len(n.Inputs))
		return &onnx.Tensor{Shape: make([]int, dims)}, true
	}
	n.operands = n.Inputs[:1]
	weight = n.param(n.Inputs[1], "weight", dims)
	if dims == 2 && n.useAttribute("transB", onnx.Attribute{}).Int == 0 {
		weight = n.turn()
	}
	if len(n.Inputs) == 3 && n.Inputs[2] != "" {
		n.bias(n.Inputs[2], weight.Shape)
		return weight, false
	}
	if len(n.reader.readers[n.Outputs[0]]) != 1 || slices.ContainsFunc(n.reader.graph.Outputs, func(v onnx.Value) bool { return v.Name == n.Outputs[0] }) {
		return weight, true
	}
	sum := n.reader.readers[n.Outputs[0]][0]
	if sum.Op != "Add" || len(sum.Inputs) != 2 || len(sum.Outputs) != 1 {
		return weight, true
	}
	other := sum.Inputs[0]
	if other == n.Outputs[0] {
		other = sum.Inputs[1]
	}
	if n.reader.graph.Tensors[other] == nil {
		return weight, true
	}
	n.bias(other, weight.Shape)
	n.reader.biases[sum] = true
	return weight, false
}

// bias is a constant with a number for each output. Its shape has to mean that where shapes are compared from their last
// dimension on: for a dense layer (outputs) or (1, outputs), and for the sum behind a convolution (outputs, 1, 1) likewise.
func (n *onnxNode) bias(operand string, weight []int) {
	outputs, isOperand := weight[0], len(n.Inputs) == 3
	full := []int{1, outputs, 1, 1}[:len(weight)]
	t := n.reader.graph.Tensors[operand]
	switch {
	case t == nil || t.Floats == nil:
		n.constant(operand, 1)
	case len(weight) == 4 && isOperand && slices.Equal(t.Shape, []int{outputs}):
	case len(t.Shape) > len(full) || len(weight) == 4 && isOperand || !slices.Equal(t.Shape, full[len(full)-len(t.Shape):]) || nn.Elems(t.Shape) != outputs:
		n.fail("constant %q of shape %v is added; dahl adds a bias, of shape %v", operand, t.Shape, full[1:])
	}
	if n.err == nil {
		flat := &onnx.Tensor{Name: t.Name, Type: t.Type, Shape: []int{outputs}, Floats: t.Floats}
		n.params = append(n.params, onnxParam{operand, "bias", flat, t, false})
	}
}

// turn gives a dense layer its weight as (outputs, inputs), which is (inputs, outputs) in the file.
func (n *onnxNode) turn() *onnx.Tensor {
	if n.err != nil {
		return &onnx.Tensor{Shape: make([]int, 2)}
	}
	p := &n.params[0]
	inputs, outputs := p.from.Shape[0], p.from.Shape[1]
	p.t = &onnx.Tensor{Name: p.from.Name, Type: p.from.Type, Shape: []int{outputs, inputs}, Floats: make([]float64, 0, inputs*outputs)}
	for o := range outputs {
		for i := range inputs {
			p.t.Floats = append(p.t.Floats, p.from.Floats[i*outputs+o])
		}
	}
	p.turned = true
	return p.t
}

func (n *onnxNode) conv() nn.Layer {
	w, noBias := n.weighted(4)
	c := layers.Conv2D{Filters: w.Shape[0], Kernel: w.Shape[2], Columns: layers.Columns{Size: w.Shape[3]}, NoBias: noBias}
	if k := n.numbers("kernel_shape", int64(w.Shape[2]), int64(w.Shape[3])); k[0] != w.Shape[2] || k[1] != w.Shape[3] {
		n.fail("kernel_shape are %v; the weight has %v", k, w.Shape[2:])
	}
	c.Stride, c.Columns.Stride = n.positive("strides", 1, 1)
	c.Dilation, c.Columns.Dilation = n.positive("dilations", 1, 1)
	c.Pads = n.pads(c.Windows())
	groups := n.useAttribute("group", onnx.Attribute{Int: 1}).Int
	if groups < 1 || groups > int64(w.Shape[0]) {
		n.fail("group is %d; want 1 to %d, the filters", groups, w.Shape[0])
	}
	c.Groups = int(groups)
	return c
}

// gemm is the dense layer of a Gemm or a MatMul.
func (n *onnxNode) gemm() nn.Layer {
	w, noBias := n.weighted(2)
	for _, name := range []string{"alpha", "beta"} {
		if n.useAttribute(name, onnx.Attribute{Float: 1}).Float != 1 {
			n.fail("%s is not 1", name)
		}
	}
	n.want("transA", n.useAttribute("transA", onnx.Attribute{}).Int, 0)
	return layers.Dense{Outputs: w.Shape[0], NoBias: noBias}
}

// window is the window of a pooling.
func (n *onnxNode) window() layers.MaxPool {
	for _, d := range n.numbers("dilations", 1, 1) {
		n.want("dilations", int64(d), 1)
	}
	n.want("storage_order", n.useAttribute("storage_order", onnx.Attribute{}).Int, 0)
	p := layers.MaxPool{}
	p.Size, p.Columns.Size = n.positive("kernel_shape", 0, 0)
	p.Stride, p.Columns.Stride = n.positive("strides", 1, 1)
	p.Pads = n.pads(p.Windows())
	if n.useAttribute("ceil_mode", onnx.Attribute{}).Int != 0 {
		n.wholeWindows(p.Windows())
	}
	return p
}

// wholeWindows refuses a pooling that would also have windows beyond the image.
func (n *onnxNode) wholeWindows(windows [2]layers.Window) {
	shape := n.shape()
	for i, w := range windows {
		if len(shape) != 3 || n.err != nil {
			return
		}
		if padded := shape[1+i] + w.Before + w.After; (padded-w.Size)%w.Stride != 0 {
			n.fail("ceil_mode is 1, and windows of %d with stride %d do not end with the %d %s; dahl has whole windows alone",
				w.Size, w.Stride, padded, []string{"rows", "columns"}[i])
		}
	}
}

// pads are the rows and columns of padding, given by the attribute pads or by auto_pad, which asks for ⌈extent/stride⌉
// windows. Where their number is odd, the last one is below and to the right (SAME_UPPER), or above and to the left.
func (n *onnxNode) pads(windows [2]layers.Window) layers.Pads {
	auto := n.text("auto_pad", "NOTSET")
	p := n.numbers("pads", 0, 0, 0, 0)
	shape := n.shape()
	switch {
	case cmp.Or(auto, "NOTSET") == "NOTSET":
		return layers.Pads{Top: p[0], Left: p[1], Bottom: p[2], Right: p[3]}
	case slices.Max(p) > 0:
		n.fail("auto_pad is %s and pads are %v; write one of them", auto, p)
	case auto == "VALID" || len(shape) != 3:
		return layers.Pads{}
	case auto != "SAME_UPPER" && auto != "SAME_LOWER":
		n.fail("auto_pad is %q; dahl has NOTSET, VALID, SAME_UPPER and SAME_LOWER", auto)
	}
	for i, w := range windows {
		extent, span := shape[1+i], (w.Size-1)*w.Dilation+1
		all := max(0, (extent-1)/w.Stride*w.Stride+span-extent)
		p[i], p[2+i] = all/2, all-all/2
		if auto == "SAME_LOWER" {
			p[i], p[2+i] = p[2+i], p[i]
		}
	}
	return layers.Pads{Top: p[0], Left: p[1], Bottom: p[2], Right: p[3]}
}
