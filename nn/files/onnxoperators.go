package files

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

// onnxOperators is the table of operators. Each function takes the settings of its layer from a node.
// Operators of single elements are in onnxUnary and onnxBinary, and those that compute nothing in onnxMoves.
func onnxOperators() map[string]func(*onnxNode) nn.Layer {
	return map[string]func(*onnxNode) nn.Layer{
		"Conv":   (*onnxNode).conv,
		"Gemm":   (*onnxNode).gemm,
		"MatMul": (*onnxNode).gemm,
		"Relu":   func(*onnxNode) nn.Layer { return layers.ReLU{} },
		"Gelu": func(n *onnxNode) nn.Layer {
			switch how := n.text("approximate", "none"); how {
			case "tanh":
				return layers.Activation{Function: "gelu_tanh"}
			case "none":
			default:
				n.fail("approximate is %q; dahl has none and tanh", how)
			}
			return layers.Activation{Function: "gelu"}
		},
		"LeakyRelu": func(n *onnxNode) nn.Layer {
			return layers.Activation{Function: "leaky_relu", Setting: decimal(n.useAttribute("alpha", onnx.Attribute{Float: 0.01}).Float)}
		},
		"MaxPool": func(n *onnxNode) nn.Layer { return n.window() },
		"AveragePool": func(n *onnxNode) nn.Layer {
			included, w := n.useAttribute("count_include_pad", onnx.Attribute{}).Int, n.window()
			if w.Pads != (layers.Pads{}) {
				n.want("count_include_pad", included, 1)
			}
			return layers.AvgPool(w)
		},
		"BatchNormalization": (*onnxNode).batchNorm,
		"Dropout":            (*onnxNode).dropout,
		"GlobalAveragePool":  func(*onnxNode) nn.Layer { return layers.GlobalAvgPool{} },
		"Gather":             (*onnxNode).embedding,
		"LayerNormalization": (*onnxNode).layerNorm,
		"RMSNormalization":   (*onnxNode).layerNorm,
		"Add":                (*onnxNode).sum,
		"Mul":                func(*onnxNode) nn.Layer { return layers.Multiply{} },
		"Sum":                func(*onnxNode) nn.Layer { return layers.Add{} },
		"Concat":             (*onnxNode).concat,
	}
}

// onnxNode is an operator while its layer is made. The first mistake is kept.
type onnxNode struct {
	*onnx.Node
	reader   *onnxReader
	operands []string // those that layers make
	params   []onnxParam
	err      error
}

// onnxParam is a parameter of a layer.
type onnxParam struct {
	name    string       // of the operand
	kind    string       // as "weight"
	t, from *onnx.Tensor // in the layer's shape, and in the file
	turned  bool         // t is from with rows for columns
}

func (n *onnxNode) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf(format, args...)
	}
}

// finish refuses what no one has used.
func (n *onnxNode) finish() {
	for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
		n.fail("attribute %s: dahl does not know it", name)
	}
}

// useAttribute uses an attribute up.
func (n *onnxNode) useAttribute(name string, otherwise onnx.Attribute) onnx.Attribute {
	a, given := n.Attributes[name]
	if !given {
		return otherwise
	}
	delete(n.Attributes, name)
	return a
}

func (n *onnxNode) text(name, otherwise string) string {
	return n.useAttribute(name, onnx.Attribute{Text: otherwise}).Text
}

// want refuses a value other than the one that the layer has.
func (n *onnxNode) want(name string, got, want int64) {
	if got != want {
		n.fail("%s is %d; dahl has %d", name, got, want)
	}
}

// channels takes the attribute axis, and refuses all but the axis of channels or features. A negative one counts from the last.
func (n *onnxNode) channels(otherwise int64) {
	axis, want := n.useAttribute("axis", onnx.Attribute{Int: otherwise}).Int, int64(1)
	if shape := n.shape(); shape != nil {
		if axis < 0 {
			axis += int64(len(shape) + 1)
		}
		if len(shape) == 2 {
			want = 2
		}
	}
	n.want("axis", axis, want)
}

// floats takes the type of a cast, which has to be one of floating point.
func (n *onnxNode) floats() {
	if to := n.useAttribute("to", onnx.Attribute{}).Int; !slices.Contains([]int64{1, 10, 11, 16}, to) {
		n.fail("to is %d; dahl casts to float32, float64, float16 and bfloat16, which changes nothing", to)
	}
	n.useAttribute("saturate", onnx.Attribute{})
}

// shape is the shape of the samples of the first operand. Nil means that it is not known.
func (n *onnxNode) shape() []int {
	if v := n.reader.values[n.Inputs[0]]; v != nil {
		return n.reader.shapes[v.layer]
	}
	return nil
}

// numbers is an attribute with as many numbers as its default.
func (n *onnxNode) numbers(name string, otherwise ...int64) []int {
	given := n.useAttribute(name, onnx.Attribute{Ints: otherwise}).Ints
	if len(given) != len(otherwise) || slices.Min(given) < 0 || slices.Max(given) > layers.MaxExtent {
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

// batchNorm has the defaults of the format. Further results, in files for training, are part of the layer.
func (n *onnxNode) batchNorm() nn.Layer {
	if len(n.Inputs) != 5 {
		n.fail("%d operands; want five", len(n.Inputs))
		return layers.BatchNorm{}
	}
	for i, name := range []string{"weight", "bias", "running_mean", "running_var"} {
		n.param(n.Inputs[1+i], name, 1)
	}
	n.operands = n.Inputs[:1]
	n.useAttribute("training_mode", onnx.Attribute{})
	n.want("spatial", n.useAttribute("spatial", onnx.Attribute{Int: 1}).Int, 1)
	b := layers.BatchNorm{Eps: decimal(n.useAttribute("epsilon", onnx.Attribute{Float: 1e-5}).Float), Momentum: decimal(1 - n.useAttribute("momentum", onnx.Attribute{Float: 0.9}).Float)}
	if b.Eps == 0 || b.Momentum == 0 {
		n.fail("epsilon %g and momentum %g; want more than 0 and less than 1", b.Eps, 1-b.Momentum)
	}
	return b
}

// decimal is the decimal number of six digits that a float32 was rounded from.
func decimal(v float64) float64 {
	d, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v // of no finite number
	}
	return d
}

// dropout has its probability as an operand, or in older files as an attribute.
func (n *onnxNode) dropout() nn.Layer {
	p := n.useAttribute("ratio", onnx.Attribute{Float: layers.DefaultP}).Float
	n.useAttribute("seed", onnx.Attribute{})
	if len(n.Inputs) > 1 && n.Inputs[1] != "" {
		t := n.reader.graph.Tensors[n.Inputs[1]]
		if t == nil || len(t.Floats) != 1 {
			n.fail("operand %q is not a constant number", n.Inputs[1])
			return layers.Dropout{}
		}
		p = t.Floats[0]
	}
	n.operands = n.Inputs[:min(len(n.Inputs), 1)]
	return layers.Dropout{P: decimal(p)}
}

// embedding takes rows of a table that is a constant.
func (n *onnxNode) embedding() nn.Layer {
	if len(n.Inputs) != 2 {
		n.fail("%d operands; want two", len(n.Inputs))
		return layers.Embedding{}
	}
	n.want("axis", n.useAttribute("axis", onnx.Attribute{}).Int, 0)
	table := n.param(n.Inputs[0], "weight", 2)
	n.operands = n.Inputs[1:]
	return layers.Embedding{Tokens: table.Shape[0], Width: table.Shape[1]}
}

// layerNorm normalises the last dimension.
func (n *onnxNode) layerNorm() nn.Layer {
	n.operands = n.Inputs[:1]
	rank := int64(len(n.shape()))
	if axis := n.useAttribute("axis", onnx.Attribute{Int: -1}).Int; axis != -1 && axis != rank {
		n.fail("axis is %d; dahl normalises the last dimension", axis)
	}
	n.useAttribute("stash_type", onnx.Attribute{})
	eps := decimal(n.useAttribute("epsilon", onnx.Attribute{Float: 1e-5}).Float)
	if len(n.Inputs) < 2 || len(n.Inputs) > 3 || n.Op == "RMSNormalization" && len(n.Inputs) > 2 {
		n.fail("%d operands; dahl has a weight, and a bias in a LayerNormalization", len(n.Inputs))
		return layers.LayerNorm{}
	}
	n.param(n.Inputs[1], "weight", 1)
	if n.Op == "RMSNormalization" {
		return layers.RMSNorm{Eps: eps}
	}
	noBias := len(n.Inputs) < 3 || n.Inputs[2] == ""
	if !noBias {
		n.param(n.Inputs[2], "bias", 1)
	}
	return layers.LayerNorm{Eps: eps, NoBias: noBias}
}

// concat puts channels behind each other, or a constant before the positions of a sequence.
func (n *onnxNode) concat() nn.Layer {
	t := n.reader.graph.Tensors[n.Inputs[0]]
	if len(n.Inputs) != 2 || t == nil {
		n.channels(0)
		return layers.Concat{}
	}
	n.operands = n.Inputs[1:]
	if _, _, err := n.reader.layerOf(n.Inputs[1]); err != nil { // images become sequences
		n.err = err
		return layers.ClassToken{}
	}
	v := n.reader.values[n.Inputs[1]]
	axis := n.useAttribute("axis", onnx.Attribute{}).Int
	sample := n.reader.shapes[v.layer]
	if axis < 0 {
		axis += int64(len(v.dims))
	}
	if sample == nil {
		return layers.ClassToken{} // New says what is wrong before it
	}
	if len(sample) != 2 || axis != 1 || !sameDims(v.dims, n.reader.samplesOf(sample).dims) || len(t.Shape) == 0 || len(t.Floats) != sample[1] || t.Shape[len(t.Shape)-1] != sample[1] {
		n.fail("constant %q of shape %v is put before samples of %v along axis %d; dahl puts one position before the positions of a sequence, a class token", t.Name, t.Shape, v.shape(), axis)
		return layers.ClassToken{}
	}
	if n.param(n.Inputs[0], "weight", len(t.Shape)); n.err == nil {
		n.params[0].name, n.params[0].t = t.Name, &onnx.Tensor{Name: t.Name, Type: t.Type, Shape: []int{1, sample[1]}, Floats: t.Floats}
	}
	return layers.ClassToken{}
}

// sum is a sum of layers, or adds a constant to each position.
func (n *onnxNode) sum() nn.Layer {
	for i, operand := range n.Inputs[:min(len(n.Inputs), 2)] {
		other := n.Inputs[len(n.Inputs)-1-i]
		v, t := n.reader.values[other], n.reader.graph.Tensors[operand]
		if v == nil || t == nil || len(n.Inputs) != 2 {
			continue
		}
		if _, _, err := n.reader.layerOf(other); err != nil {
			n.err = err
			return layers.Add{}
		}
		sample, lead := n.reader.shapes[v.layer], v.shape()
		for d, dim := range v.dims {
			if len(dim) == 1 && dim[0].axis == batchAxis {
				lead[d] = 1
			}
		}
		if n.reader.batch == 1 && len(lead) > 0 {
			lead[0] = 1
		}
		if len(sample) != 2 || nn.Elems(t.Shape) != nn.Elems(sample) || !slices.Equal(broadcast(t.Shape, lead), lead) {
			return layers.Add{}
		}
		n.operands = []string{other}
		if n.param(operand, "weight", len(t.Shape)); n.err == nil {
			p := &n.params[0]
			p.t = &onnx.Tensor{Name: t.Name, Type: t.Type, Shape: sample, Floats: t.Floats}
		}
		return layers.Positions{}
	}
	return layers.Add{}
}
