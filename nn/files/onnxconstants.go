package files

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"dahl/nn"
	"dahl/nn/onnx"
)

// Files say shapes, positions and masks in many ways, since programs compute them: view(x.size(0), -1) is a Shape, a Gather, an Unsqueeze
// and a Concat before the Reshape. What operators make of constants and of shapes is computed here, and is a constant itself.

// openBatch is the number of samples where a file leaves it open. It is prime and greater than all other extents, so that it is found again in products.
const openBatch = 1<<31 - 1

// maxComputed bounds the elements of a constant that is computed. All of these are kept, and maxAllComputed bounds their elements together: they take at most
// as many bytes as a file.
const (
	maxComputed    = 1 << 24
	maxAllComputed = maxONNXBytes / 8
)

// batchSize is the number of samples as shapes have it.
func (r *onnxReader) batchSize() int {
	if r.batch == 0 {
		return openBatch
	}
	return r.batch
}

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

// withoutLayer reads an operator that is no layer: a constant, a sum that is the bias of the layer before it, or a computation of constants.
func (r *onnxReader) withoutLayer(n *onnx.Node) (done bool, err error) {
	if r.biases[n] {
		for _, name := range slices.Sorted(maps.Keys(n.Attributes)) { // as axis, before opset 7
			return false, fmt.Errorf("attribute %s: dahl does not know it", name)
		}
		made := n.Inputs[0]
		if r.values[made] == nil {
			made = n.Inputs[1]
		}
		r.values[n.Outputs[0]] = r.values[made]
		return true, nil
	}
	if len(n.Outputs) != 1 {
		return false, nil
	}
	if r.graph.Tensors[n.Outputs[0]] != nil {
		return true, nil
	}
	compute, known := constantOperators()[n.Op]
	if !known || len(n.Inputs) == 0 {
		return false, nil
	}
	var in []*onnx.Tensor
	for i, operand := range n.Inputs {
		t := r.graph.Tensors[operand]
		if v := r.values[operand]; n.Op == "Shape" && v != nil {
			t = wholeNumbers(v.shape())
		}
		if operand == "" && i > 0 {
			continue // an operand that is left out
		}
		if t == nil || t.Ints == nil && t.Floats == nil && n.Op != "Shape" {
			return false, nil
		}
		in = append(in, t)
	}
	o := onnxNode{Node: n, reader: r}
	t := compute(&o, in)
	if o.err == nil && t == nil {
		o.fail("dahl does not compute this of constants and shapes")
	}
	if o.err == nil {
		if r.computed += len(t.Floats) + len(t.Ints); r.computed > maxAllComputed {
			o.fail("more than %d numbers are computed of constants and shapes; write them into the file as initializers", maxAllComputed)
		}
	}
	if o.err != nil {
		return false, o.err
	}
	if t.Name == "" {
		t.Name = n.Outputs[0]
	}
	r.graph.Tensors[n.Outputs[0]] = t
	return true, nil
}

// vector is whole numbers that are known: a constant, or part of a shape. A single number is a vector of one.
func (r *onnxReader) vector(operand string) ([]int64, bool) {
	if t := r.graph.Tensors[operand]; t != nil && t.Ints != nil && len(t.Shape) < 2 {
		return t.Ints, true
	}
	return nil, false
}

// number is a constant of one element.
func (r *onnxReader) number(operand string) (float64, bool) {
	if t := r.graph.Tensors[operand]; t != nil && nn.Elems(t.Shape) == 1 && len(t.Floats)+len(t.Ints) == 1 {
		return numbersOf(t)[0], true
	}
	return 0, false
}

func wholeNumbers(shape []int) *onnx.Tensor {
	t := &onnx.Tensor{Type: "int64", Shape: []int{len(shape)}, Ints: []int64{}}
	for _, e := range shape {
		t.Ints = append(t.Ints, int64(e))
	}
	return t
}

// numbersOf is the elements of a tensor. Whole numbers above 2⁵³ only stand for the end of a dimension.
func numbersOf(t *onnx.Tensor) []float64 {
	if t.Floats != nil {
		return t.Floats
	}
	all := make([]float64, len(t.Ints))
	for i, v := range t.Ints {
		all[i] = float64(v)
	}
	return all
}

// tensorLike is a tensor of elements of the type of another one.
func tensorLike(of *onnx.Tensor, shape []int, elements []float64) *onnx.Tensor {
	t := &onnx.Tensor{Name: of.Name, Type: of.Type, Shape: shape}
	if of.Floats != nil {
		t.Floats = elements
		return t
	}
	t.Ints = make([]int64, len(elements))
	for i, v := range elements {
		t.Ints[i] = int64(max(min(v, math.MaxInt64-1024), math.MinInt64))
	}
	return t
}

// picked is a tensor of a shape with elements of another one. A function gives their places there for their indices.
func picked(of *onnx.Tensor, shape []int, place func(index []int) int) *onnx.Tensor {
	n := 1
	for _, e := range shape {
		if n *= e; n > maxComputed {
			return nil
		}
	}
	from, elements := numbersOf(of), make([]float64, n)
	index := make([]int, len(shape))
	for i := range elements {
		elements[i] = from[place(index)]
		for d := len(shape) - 1; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return tensorLike(of, shape, elements)
}

// stepsOf is how far apart neighbours of each dimension lie.
func stepsOf(shape []int) []int {
	steps, step := make([]int, len(shape)), 1
	for d := len(shape) - 1; d >= 0; d-- {
		steps[d], step = step, step*shape[d]
	}
	return steps
}

// broadcast is the shape of an operation of two shapes, compared from their last dimension on. Nil means that they do not fit.
func broadcast(a, b []int) []int {
	out := make([]int, max(len(a), len(b)))
	for i := 1; i <= len(out); i++ {
		e := 1
		for _, shape := range [][]int{a, b} {
			if i > len(shape) || shape[len(shape)-i] == 1 {
				continue
			}
			if e != 1 && e != shape[len(shape)-i] {
				return nil
			}
			e = shape[len(shape)-i]
		}
		out[len(out)-i] = e
	}
	return out
}

// spread is a tensor with its elements repeated to a shape.
func spread(t *onnx.Tensor, shape []int) *onnx.Tensor {
	if !slices.Equal(broadcast(t.Shape, shape), shape) {
		return nil
	}
	steps, missing := stepsOf(t.Shape), len(shape)-len(t.Shape)
	return picked(t, shape, func(index []int) (at int) {
		for d, step := range steps {
			if t.Shape[d] > 1 {
				at += step * index[missing+d]
			}
		}
		return at
	})
}
