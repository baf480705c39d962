package nn

import (
	"fmt"
	"slices"
	"strconv"

	"dahl/nn/onnx"
)

// onnxOperators is the table of operators: what each takes from its node, and the layer that it is.
// A nil layer is none, such as that of a constant.
func onnxOperators() map[string]func(*onnxNode) Layer {
	function := func(name string) func(*onnxNode) Layer {
		return func(*onnxNode) Layer { return Activation{Function: name} }
	}
	return map[string]func(*onnxNode) Layer{
		"Conv":    (*onnxNode).conv,
		"Gemm":    (*onnxNode).gemm,
		"MatMul":  (*onnxNode).gemm,
		"Relu":    func(*onnxNode) Layer { return ReLU{} },
		"Tanh":    function("tanh"),
		"Sigmoid": function("sigmoid"),
		"Gelu": func(n *onnxNode) Layer {
			if n.text("approximate", "none") == "tanh" {
				return Activation{Function: "gelu_tanh"}
			}
			return Activation{Function: "gelu"}
		},
		"LeakyRelu": func(n *onnxNode) Layer {
			return Activation{Function: "leaky_relu", Setting: n.take("alpha", onnx.Attribute{Float: 0.01}).Float}
		},
		"MaxPool": func(n *onnxNode) Layer { return n.window() },
		"AveragePool": func(n *onnxNode) Layer {
			included, w := n.take("count_include_pad", onnx.Attribute{}).Int, n.window()
			if w.Pads != (Pads{}) {
				n.want("count_include_pad", included, 1)
			}
			return AvgPool(w)
		},
		"BatchNormalization": (*onnxNode).batchNorm,
		"Dropout":            (*onnxNode).dropout,
		"GlobalAveragePool":  func(*onnxNode) Layer { return GlobalAvgPool{} },
		"Flatten": func(n *onnxNode) Layer {
			n.want("axis", n.take("axis", onnx.Attribute{Int: 1}).Int, 1)
			return Flatten{}
		},
		"Reshape": (*onnxNode).reshape,
		"Add":     func(*onnxNode) Layer { return Add{} },
		"Concat": func(n *onnxNode) Layer {
			n.want("axis", n.take("axis", onnx.Attribute{}).Int, 1)
			return Concat{}
		},
		"Constant": func(n *onnxNode) Layer {
			t := n.take("value", onnx.Attribute{}).Tensor
			if t == nil {
				n.fail("its value is not a tensor")
			}
			n.reader.graph.Tensors[n.Outputs[0]] = t
			return nil
		},
		"Identity": func(n *onnxNode) Layer {
			if from, made := n.reader.layerOf[n.Inputs[0]]; made {
				n.reader.layerOf[n.Outputs[0]] = from
			} else {
				n.reader.graph.Tensors[n.Outputs[0]] = n.reader.graph.Tensors[n.Inputs[0]]
			}
			return nil
		},
	}
}

// onnxNode is an operator while its layer is made. The first mistake is kept.
type onnxNode struct {
	*onnx.Node
	reader   *onnxReader
	operands []string                // those that layers make
	weight   string                  // the file's name of the weight
	params   map[string]*onnx.Tensor // "weight" and "bias"
	features int                     // of a flatten, if the file says them
	err      error
}

func (n *onnxNode) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf(format, args...)
	}
}

// take uses an attribute up.
func (n *onnxNode) take(name string, otherwise onnx.Attribute) onnx.Attribute {
	a, given := n.Attributes[name]
	if !given {
		return otherwise
	}
	delete(n.Attributes, name)
	return a
}

func (n *onnxNode) text(name, otherwise string) string {
	return n.take(name, onnx.Attribute{Text: otherwise}).Text
}

// want refuses a value other than the one that the layer has.
func (n *onnxNode) want(name string, got, want int64) {
	if got != want {
		n.fail("%s is %d; dahl has %d", name, got, want)
	}
}

// numbers is an attribute of so many numbers.
func (n *onnxNode) numbers(name string, otherwise ...int64) []int {
	given := n.take(name, onnx.Attribute{Ints: otherwise}).Ints
	if len(given) != len(otherwise) || slices.Min(given) < 0 || slices.Max(given) > maxExtent {
		n.fail("%s are %v; want %d numbers of at least 0", name, given, len(otherwise))
		given = otherwise
	}
	var all []int
	for _, v := range given {
		all = append(all, int(v))
	}
	return all
}

// positive is an attribute of two numbers, of rows and columns, each at least 1.
func (n *onnxNode) positive(name string, rows, columns int) (int, int) {
	p := n.numbers(name, int64(rows), int64(columns))
	if min(p[0], p[1]) < 1 {
		n.fail("%s are %v; want at least 1", name, p)
	}
	return p[0], p[1]
}

// pads are the rows and columns beside the image.
func (n *onnxNode) pads() Pads {
	if n.text("auto_pad", "NOTSET") != "NOTSET" {
		n.fail("auto_pad; write the padding")
	}
	p := n.numbers("pads", 0, 0, 0, 0)
	return Pads{p[0], p[1], p[2], p[3]}
}

// param is a weight or a bias, of a number of dimensions.
func (n *onnxNode) param(operand int, name string, dims int) *onnx.Tensor {
	t := n.reader.graph.Tensors[n.Inputs[operand]]
	if t == nil || len(t.Shape) != dims || len(t.Floats) == 0 {
		n.fail("operand %q is not a constant of %d dimensions", n.Inputs[operand], dims)
		return &onnx.Tensor{Shape: make([]int, dims)}
	}
	n.params[name] = t
	return t
}

// weighted takes the weight and, if there is one, the bias.
func (n *onnxNode) weighted(dims int) (weight *onnx.Tensor, noBias bool) {
	if len(n.Inputs) < 2 || len(n.Inputs) > 3 {
		n.fail("%d operands; want two or three", len(n.Inputs))
		return &onnx.Tensor{Shape: make([]int, dims)}, true
	}
	noBias = len(n.Inputs) == 2 || n.Inputs[2] == ""
	if !noBias {
		n.param(2, "bias", 1)
	}
	n.operands, n.weight = n.Inputs[:1], n.Inputs[1]
	return n.param(1, "weight", dims), noBias
}

func (n *onnxNode) conv() Layer {
	w, noBias := n.weighted(4)
	c := Conv2D{Filters: w.Shape[0], Kernel: w.Shape[2], Columns: Columns{Size: w.Shape[3]}, Pads: n.pads(), NoBias: noBias}
	if k := n.numbers("kernel_shape", int64(w.Shape[2]), int64(w.Shape[3])); k[0] != w.Shape[2] || k[1] != w.Shape[3] {
		n.fail("kernel_shape are %v; the weight has %v", k, w.Shape[2:])
	}
	c.Stride, c.Columns.Stride = n.positive("strides", 1, 1)
	c.Dilation, c.Columns.Dilation = n.positive("dilations", 1, 1)
	groups := n.take("group", onnx.Attribute{Int: 1}).Int
	if groups < 1 || groups > int64(w.Shape[0]) {
		n.fail("group is %d; want 1 to %d, the filters", groups, w.Shape[0])
	}
	c.Groups = int(groups)
	return c
}

// gemm is a dense layer, that of a MatMul without a bias. Without transB the weight is (inputs, outputs), and is turned.
func (n *onnxNode) gemm() Layer {
	w, noBias := n.weighted(2)
	for _, name := range []string{"alpha", "beta"} {
		if n.take(name, onnx.Attribute{Float: 1}).Float != 1 {
			n.fail("%s is not 1", name)
		}
	}
	n.want("transA", n.take("transA", onnx.Attribute{}).Int, 0)
	if n.take("transB", onnx.Attribute{}).Int == 0 {
		turned := &onnx.Tensor{Name: w.Name, Shape: []int{w.Shape[1], w.Shape[0]}}
		for o := range w.Shape[1] {
			for i := range w.Shape[0] {
				turned.Floats = append(turned.Floats, w.Floats[i*w.Shape[1]+o])
			}
		}
		w = turned
		n.params["weight"] = w
	}
	return Dense{Outputs: w.Shape[0], NoBias: noBias}
}

// batchNorm has the defaults of the format. What it gives beside its output, in files for training, is in the layer.
func (n *onnxNode) batchNorm() Layer {
	if len(n.Inputs) != 5 {
		n.fail("%d operands; want five", len(n.Inputs))
		return BatchNorm{}
	}
	for i, name := range []string{"weight", "bias", "running_mean", "running_var"} {
		n.param(1+i, name, 1)
	}
	n.operands, n.weight = n.Inputs[:1], n.Inputs[1]
	n.take("training_mode", onnx.Attribute{})
	n.want("spatial", n.take("spatial", onnx.Attribute{Int: 1}).Int, 1)
	b := BatchNorm{Eps: decimal(n.take("epsilon", onnx.Attribute{Float: 1e-5}).Float), Momentum: decimal(1 - n.take("momentum", onnx.Attribute{Float: 0.9}).Float)}
	if b.Eps == 0 || b.Momentum == 0 {
		n.fail("epsilon %g and momentum %g; want more than 0 and less than 1", b.Eps, 1-b.Momentum)
	}
	return b
}

// decimal is what a float32 was before it was rounded, to six digits.
func decimal(v float64) float64 {
	d, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v // of no finite number
	}
	return d
}

// dropout has its probability as an operand, or in older files as an attribute.
func (n *onnxNode) dropout() Layer {
	p := n.take("ratio", onnx.Attribute{Float: defaultP}).Float
	n.take("seed", onnx.Attribute{})
	if len(n.Inputs) > 1 && n.Inputs[1] != "" {
		t := n.reader.graph.Tensors[n.Inputs[1]]
		if t == nil || len(t.Floats) != 1 {
			n.fail("operand %q is not a constant number", n.Inputs[1])
			return Dropout{}
		}
		p = t.Floats[0]
	}
	n.operands = n.Inputs[:min(len(n.Inputs), 1)]
	return Dropout{P: decimal(p)}
}

// window is the window of a pooling.
func (n *onnxNode) window() MaxPool {
	for _, d := range n.numbers("dilations", 1, 1) {
		n.want("dilations", int64(d), 1)
	}
	n.want("ceil_mode", n.take("ceil_mode", onnx.Attribute{}).Int, 0)
	n.want("storage_order", n.take("storage_order", onnx.Attribute{}).Int, 0)
	p := MaxPool{Pads: n.pads()}
	p.Size, p.Columns.Size = n.positive("kernel_shape", 0, 0)
	p.Stride, p.Columns.Stride = n.positive("strides", 1, 1)
	return p
}

// reshape is a flatten where it keeps the batch and joins the rest.
func (n *onnxNode) reshape() Layer {
	zeros := n.take("allowzero", onnx.Attribute{}).Int == 1 // an extent of 0 is no copy of the input's
	if len(n.Inputs) == 2 {
		t := n.reader.graph.Tensors[n.Inputs[1]]
		if t != nil && len(t.Ints) == 2 && (t.Ints[1] == -1 || t.Ints[0] == -1 || t.Ints[0] == 0 && !zeros) {
			n.operands, n.features = n.Inputs[:1], int(t.Ints[1])
			return Flatten{}
		}
	}
	n.fail("dahl has only the shape of a flatten, (batch, -1)")
	return nil
}
