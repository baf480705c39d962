package files

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"dahl/naming"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

// Files say the shape of a flatten in many ways, since programs compute it: view(x.size(0), -1) is a Shape, a Gather, an Unsqueeze
// and a Concat before the Reshape. What such operators give is computed here, with a number of its own for the batch.

// batchExtent stands for the number of samples, whatever it is.
const batchExtent = math.MinInt64

// constants notes the results of operators that need no sample: constants, their other names, and their other types.
func (r *onnxReader) constants() error {
	tensors := r.graph.Tensors
	for i := range r.graph.Nodes {
		n := &r.graph.Nodes[i]
		switch {
		case n.Op == "Constant" && len(n.Outputs) == 1:
			t, err := constantOf(n)
			if err != nil {
				return atOperator(n, err)
			}
			tensors[n.Outputs[0]] = t
		case (n.Op == "Identity" || n.Op == "Cast") && len(n.Inputs) == 1 && len(n.Outputs) == 1 && tensors[n.Inputs[0]] != nil:
			o := onnxNode{Node: n}
			if n.Op == "Cast" && tensors[n.Inputs[0]].Floats != nil {
				o.floats()
			}
			if o.err != nil {
				return atOperator(n, o.err)
			}
			tensors[n.Outputs[0]] = tensors[n.Inputs[0]]
		}
	}
	return nil
}

// constantOf is the value of a Constant, in whichever attribute it is.
func constantOf(n *onnx.Node) (*onnx.Tensor, error) {
	if len(n.Attributes) == 1 {
		for name, a := range n.Attributes {
			switch t := a.Tensor; {
			case name == "value" && t != nil:
				if t.Name == "" {
					t.Name = n.Outputs[0]
				}
				return t, nil
			case name == "value_int":
				return &onnx.Tensor{Name: n.Outputs[0], Type: "int64", Ints: []int64{a.Int}}, nil
			case name == "value_ints":
				return &onnx.Tensor{Name: n.Outputs[0], Type: "int64", Shape: []int{len(a.Ints)}, Ints: a.Ints}, nil
			case name == "value_float":
				return &onnx.Tensor{Name: n.Outputs[0], Type: "float32", Floats: []float64{a.Float}}, nil
			case name == "value_floats":
				return &onnx.Tensor{Name: n.Outputs[0], Type: "float32", Shape: []int{len(a.Floats)}, Floats: a.Floats}, nil
			}
		}
	}
	return nil, fmt.Errorf("its value is not a tensor, nor one or several numbers")
}

// withoutLayer reads an operator that is no layer: a constant, a sum that is the bias of the layer before it, or a part of a
// computation of a shape.
func (r *onnxReader) withoutLayer(n *onnx.Node) (done bool, err error) {
	if r.biases[n] {
		for _, name := range slices.Sorted(maps.Keys(n.Attributes)) { // as axis, before opset 7
			return false, fmt.Errorf("attribute %s: dahl does not know it", name)
		}
		made := n.Inputs[0]
		if _, isLayer := r.layerOf[made]; !isLayer {
			made = n.Inputs[1]
		}
		r.layerOf[n.Outputs[0]] = r.layerOf[made]
		return true, nil
	}
	compute, known := shapeOperators[n.Op]
	if len(n.Outputs) != 1 {
		return false, nil
	}
	if r.graph.Tensors[n.Outputs[0]] != nil {
		return true, nil
	}
	if !known {
		return false, nil
	}
	var in [][]int64
	for _, operand := range n.Inputs {
		v, isVector := r.vector(operand)
		if !isVector && (n.Op != "Shape" || r.layerOf[operand] == "") {
			return false, nil
		}
		in = append(in, v)
	}
	if len(in) == 0 {
		return false, nil
	}
	if n.Op == "Shape" {
		sample := r.shapes[r.layerOf[n.Inputs[0]]]
		if in[0] = []int64{batchExtent}; sample == nil {
			return false, fmt.Errorf("the shape of operand %q is not known", n.Inputs[0])
		}
		for _, extent := range sample {
			in[0] = append(in[0], int64(extent))
		}
	}
	o := onnxNode{Node: n, reader: r}
	v, ok := compute(&o, in)
	if !ok {
		return false, fmt.Errorf("dahl does not compute this shape; write a flatten")
	}
	r.vectors[n.Outputs[0]] = v
	return true, nil
}

// vector is whole numbers that are known: a constant, or part of a shape. A single number is a vector of one.
func (r *onnxReader) vector(operand string) ([]int64, bool) {
	if v, ok := r.vectors[operand]; ok {
		return v, true
	}
	if t := r.graph.Tensors[operand]; t != nil && t.Ints != nil && len(t.Shape) < 2 {
		return t.Ints, true
	}
	return nil, false
}

// shapeOperators computes operators on vectors. All axes are 0, the only one.
var shapeOperators = map[string]func(n *onnxNode, in [][]int64) ([]int64, bool){
	"Shape": func(n *onnxNode, in [][]int64) ([]int64, bool) {
		end := int64(len(in[0]))
		return between(in[0], n.useAttribute("start", onnx.Attribute{}).Int, n.useAttribute("end", onnx.Attribute{Int: end}).Int)
	},
	"Gather": func(n *onnxNode, in [][]int64) (out []int64, ok bool) {
		for _, i := range in[len(in)-1] {
			if i < 0 {
				i += int64(len(in[0]))
			}
			if len(in) != 2 || i < 0 || i >= int64(len(in[0])) {
				return nil, false
			}
			out = append(out, in[0][i])
		}
		return out, true
	},
	"Slice": func(n *onnxNode, in [][]int64) ([]int64, bool) {
		starts, ends := n.useAttribute("starts", onnx.Attribute{}).Ints, n.useAttribute("ends", onnx.Attribute{}).Ints
		if len(in) > 2 {
			starts, ends = in[1], in[2]
		}
		if len(starts) != 1 || len(ends) != 1 || len(in) > 4 && !slices.Equal(in[4], []int64{1}) {
			return nil, false
		}
		return between(in[0], starts[0], ends[0])
	},
	"Concat":    func(_ *onnxNode, in [][]int64) ([]int64, bool) { return slices.Concat(in...), true },
	"Unsqueeze": same,
	"Squeeze":   same,
	"Cast":      same,
	"Identity":  same,
	"Mul": func(_ *onnxNode, in [][]int64) (out []int64, ok bool) {
		if len(in) != 2 || len(in[0]) != 1 || len(in[1]) != 1 {
			return nil, false
		}
		a, b := in[0][0], in[1][0]
		switch {
		case a == 1 || b == 1:
			return []int64{a * b}, true
		case min(a, b) < 0 || max(a, b) > layers.MaxExtent: // so that products stay within 64 bits
			return nil, false
		}
		return []int64{a * b}, true
	},
}

func same(_ *onnxNode, in [][]int64) ([]int64, bool) { return in[0], true }

// between is the numbers of a vector from one to before another. Negative ones count from the end.
func between(v []int64, from, to int64) ([]int64, bool) {
	n := int64(len(v))
	place := func(i int64) int64 {
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	from, to = place(from), place(to)
	return v[from:max(from, to)], true
}

// reshape is a flatten where it keeps the batch and joins the rest. A reshape of samples to the shape that they have is no
// layer.
func (n *onnxNode) reshape() nn.Layer {
	copies := n.useAttribute("allowzero", onnx.Attribute{}).Int != 1 // an extent of 0 means the extent of the input
	shape := n.shape()
	var to []int64
	if len(n.Inputs) == 2 {
		to, _ = n.reader.vector(n.Inputs[1])
	}
	n.operands = n.Inputs[:1]
	if shape == nil && to != nil {
		return layers.Flatten{} // New says what is wrong before it
	}
	if want := n.extents(to, shape, copies); want != nil {
		if len(want) == len(shape) && slices.Equal(want, shape) {
			return nil
		}
		if features := nn.Elems(shape); len(want) == 1 {
			if want[0] != features {
				n.fail("it has %d features and the file %d; dahl keeps the batch as it is", features, want[0])
			}
			return layers.Flatten{}
		}
	}
	n.fail("dahl has only the shape of a flatten, (batch, -1)")
	return nil
}

// extents are the extents of a sample after a reshape. Nil means that the first extent of the new shape is not the batch.
func (n *onnxNode) extents(to []int64, shape []int, copies bool) (want []int) {
	if len(to) < 2 {
		return nil
	}
	first, open := to[0], slices.Index(to[1:], -1)
	isBatch := first == batchExtent || first == -1 && open < 0 || first == 0 && copies || first > 0 && first == int64(n.reader.batch)
	if !isBatch {
		return nil
	}
	known := 1
	for i, e := range to[1:] {
		if e == 0 && copies && i < len(shape) {
			e = int64(shape[i])
		}
		if e == -1 && i == open {
			e = 1
		} else if e < 1 || e > nn.MaxSampleElems || known > nn.MaxSampleElems/int(e) {
			return nil
		} else {
			known *= int(e)
		}
		want = append(want, int(e))
	}
	if open >= 0 {
		if nn.Elems(shape)%known != 0 {
			return nil
		}
		want[open] = nn.Elems(shape) / known
	}
	return want
}

// squeeze is a flatten where the image has one pixel.
func (n *onnxNode) squeeze() nn.Layer {
	axes := n.useAttribute("axes", onnx.Attribute{}).Ints
	if len(n.Inputs) == 2 {
		axes, _ = n.reader.vector(n.Inputs[1])
	}
	n.operands = n.Inputs[:1]
	shape := n.shape()
	axes = slices.Clone(axes)
	for i := range axes {
		if axes[i] < 0 {
			axes[i] += int64(len(shape)) + 1
		}
	}
	slices.Sort(axes)
	if shape != nil && !(len(shape) == 3 && shape[1] == 1 && shape[2] == 1 && slices.Equal(axes, []int64{2, 3})) {
		n.fail("axes %v of samples of %s; dahl has only the shape of a flatten, (batch, -1)", axes, naming.ShapeText(shape))
	}
	return layers.Flatten{}
}
