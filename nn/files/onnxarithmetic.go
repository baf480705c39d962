package files

import (
	"math"
	"slices"

	"dahl/nn"
	"dahl/nn/onnx"
)

// onnxUnary are the operators of one number.
var onnxUnary = map[string]func(float64) float64{
	"Erf":        math.Erf,
	"Exp":        math.Exp,
	"Neg":        func(v float64) float64 { return -v },
	"Reciprocal": func(v float64) float64 { return 1 / v },
	"Sigmoid":    func(v float64) float64 { return 1 / (1 + math.Exp(-v)) },
	"Sqrt":       math.Sqrt,
	"Tanh":       math.Tanh,
}

// onnxBinary are the operators of two numbers.
var onnxBinary = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b },
	"Div": func(a, b float64) float64 { return a / b },
	"Mod": func(a, b float64) float64 { return a - b*math.Floor(a/b) },
	"Mul": func(a, b float64) float64 { return a * b },
	"Pow": math.Pow,
	"Sub": func(a, b float64) float64 { return a - b },
}

// onnxComparisons are the operators of two numbers with results true or false, which are 1 or 0 here.
var onnxComparisons = map[string]func(a, b float64) bool{
	"And":            func(a, b float64) bool { return a != 0 && b != 0 },
	"Equal":          func(a, b float64) bool { return a == b },
	"Greater":        func(a, b float64) bool { return a > b },
	"GreaterOrEqual": func(a, b float64) bool { return a >= b },
	"Less":           func(a, b float64) bool { return a < b },
	"LessOrEqual":    func(a, b float64) bool { return a <= b },
	"Or":             func(a, b float64) bool { return a != 0 || b != 0 },
}

// onnxComputation computes an operator on constants. A nil result means that dahl does not compute it.
type onnxComputation = func(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor

// constantOperators is the table of operators on constants.
func constantOperators() map[string]onnxComputation {
	all := map[string]onnxComputation{
		"Shape": shapeConstant, "Gather": gatherConstant, "Concat": concatConstants, "Cast": castConstant, "Range": rangeConstant,
		"Where": chosenConstants, "Expand": expandConstant, "Trilu": trilu, "ConstantOfShape": constantOfShape,
		"Not": func(_ *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
			return computed(in[:1], "bool", func(a, _ float64) float64 { return 1 - a })
		},
	}
	for op, f := range onnxUnary {
		all[op] = func(_ *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
			return computed(in[:1], in[0].Type, func(a, _ float64) float64 { return f(a) })
		}
	}
	for op, f := range onnxBinary {
		all[op] = func(_ *onnxNode, in []*onnx.Tensor) *onnx.Tensor { return computed(in, in[0].Type, f) }
	}
	for op, f := range onnxComparisons {
		all[op] = func(_ *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
			return computed(in, "bool", func(a, b float64) float64 {
				if f(a, b) {
					return 1
				}
				return 0
			})
		}
	}
	for op, move := range onnxMoves() {
		if all[op] == nil {
			all[op] = func(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor { return n.moved(in[0], move) }
		}
	}
	return all
}

// moved is a tensor with other indices.
func (n *onnxNode) moved(t *onnx.Tensor, move func(*onnxNode, view) (view, bool)) *onnx.Tensor {
	v, ok := move(n, viewOfConstant(t))
	if !ok {
		return nil
	}
	return picked(t, v.shape(), func(index []int) int { return v.element(index)[elementAxis] })
}

func shapeConstant(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	t := in[0]
	if n.reader.values[n.Inputs[0]] == nil { // else the shape is here already
		t = wholeNumbers(t.Shape)
	}
	lo, hi := between(len(t.Ints), n.useAttribute("start", onnx.Attribute{}).Int, n.useAttribute("end", onnx.Attribute{Int: int64(len(t.Ints))}).Int)
	return &onnx.Tensor{Type: "int64", Shape: []int{hi - lo}, Ints: t.Ints[lo:hi]}
}

func castConstant(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	types := map[int64]string{1: "float32", 6: "int32", 7: "int64", 9: "bool", 10: "float32", 11: "float64", 16: "float32"}
	to := &onnx.Tensor{Name: in[0].Name, Type: types[n.useAttribute("to", onnx.Attribute{}).Int]}
	if to.Type == "float32" || to.Type == "float64" {
		to.Floats = []float64{}
	}
	elements := slices.Clone(numbersOf(in[0]))
	for i, v := range elements {
		if to.Type == "bool" && v != 0 {
			elements[i] = 1
		}
	}
	n.useAttribute("saturate", onnx.Attribute{})
	return tensorLike(to, in[0].Shape, elements)
}

func rangeConstant(_ *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	var limits [3]float64
	for i, t := range in {
		if len(in) != 3 || nn.Elems(t.Shape) != 1 {
			return nil
		}
		limits[i] = numbersOf(t)[0]
	}
	count := math.Ceil((limits[1] - limits[0]) / limits[2])
	if !(count >= 0 && count <= maxComputed) {
		return nil
	}
	elements := make([]float64, int(count))
	for i := range elements {
		elements[i] = limits[0] + float64(i)*limits[2]
	}
	return tensorLike(&onnx.Tensor{Type: in[0].Type, Floats: in[0].Floats}, []int{len(elements)}, elements)
}

// chosenConstants are elements of the second operand where the first one is true, and else of the third.
func chosenConstants(_ *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	if len(in) != 3 {
		return nil
	}
	shape := broadcast(in[0].Shape, broadcast(in[1].Shape, in[2].Shape))
	var parts [3][]float64
	for i, t := range in {
		s := spread(t, shape)
		if shape == nil || s == nil {
			return nil
		}
		parts[i] = numbersOf(s)
	}
	elements := parts[2]
	for i, v := range parts[0] {
		if v != 0 {
			elements[i] = parts[1][i]
		}
	}
	return tensorLike(in[1], shape, elements)
}

// expandConstant repeats elements. What it repeats for each sample alone, as a class token, stays a constant of one sample.
func expandConstant(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	to, ok := n.reader.vector(n.Inputs[len(n.Inputs)-1])
	shape := in[0].Shape
	if len(shape) == len(to) && len(shape) > 1 && shape[0] == 1 {
		shape = shape[1:]
	}
	if ok && len(in) == 2 && len(to) == len(shape)+1 && to[0] == int64(n.reader.batchSize()) && slices.Equal(broadcast(shape, intsOf(to[1:])), shape) {
		return in[0]
	}
	return n.moved(in[0], (*onnxNode).expanded)
}

func intsOf(values []int64) (all []int) {
	for _, v := range values {
		all = append(all, int(v))
	}
	return all
}

// computed is a function of the elements of one or two tensors.
func computed(in []*onnx.Tensor, kind string, f func(a, b float64) float64) *onnx.Tensor {
	a, b := in[0], in[len(in)-1]
	shape := broadcast(a.Shape, b.Shape)
	if len(in) > 2 || shape == nil {
		return nil
	}
	x, y := spread(a, shape), spread(b, shape)
	if x == nil || y == nil {
		return nil
	}
	whole := a.Floats == nil && b.Floats == nil
	elements, of := slices.Clone(numbersOf(x)), numbersOf(y)
	for i := range elements {
		if elements[i] = f(elements[i], of[i]); whole {
			elements[i] = math.Trunc(elements[i])
		}
		if math.IsNaN(elements[i]) && whole { // a division by 0
			return nil
		}
	}
	like := &onnx.Tensor{Type: kind, Floats: a.Floats}
	if kind == "bool" {
		like.Floats = nil
	}
	return tensorLike(like, shape, elements)
}

// trilu keeps a triangle of matrices, and writes 0 elsewhere.
func trilu(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	t, k := in[0], 0
	upper := n.useAttribute("upper", onnx.Attribute{Int: 1}).Int == 1
	if len(in) > 1 {
		if nn.Elems(in[1].Shape) != 1 {
			return nil
		}
		k = int(numbersOf(in[1])[0])
	}
	if len(t.Shape) < 2 {
		return nil
	}
	rows, columns := t.Shape[len(t.Shape)-2], t.Shape[len(t.Shape)-1]
	elements := slices.Clone(numbersOf(t))
	for i := range elements {
		if right := i%columns - i/columns%rows; upper && right < k || !upper && right > k {
			elements[i] = 0
		}
	}
	return tensorLike(t, t.Shape, elements)
}

func constantOfShape(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	value := n.useAttribute("value", onnx.Attribute{}).Tensor
	if value == nil {
		value = &onnx.Tensor{Type: "float32", Shape: []int{1}, Floats: []float64{0}}
	}
	shape, ok := shapeFrom(in)
	if !ok || nn.Elems(value.Shape) != 1 || len(value.Floats)+len(value.Ints) != 1 {
		return nil
	}
	one := tensorLike(&onnx.Tensor{Type: value.Type, Floats: value.Floats}, nil, numbersOf(value))
	return spread(one, shape)
}

// gatherConstant takes elements along a dimension by their indices.
func gatherConstant(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	of := in[0]
	d := n.axis(len(of.Shape), 0)
	if n.err != nil || len(in) != 2 || in[1].Floats != nil {
		return nil
	}
	index, rank := in[1], len(in[1].Shape)
	for _, i := range index.Ints {
		if i < -int64(of.Shape[d]) || i >= int64(of.Shape[d]) {
			return nil
		}
	}
	steps, within := stepsOf(of.Shape), stepsOf(index.Shape)
	return picked(of, slices.Concat(of.Shape[:d], index.Shape, of.Shape[d+1:]), func(at []int) (place int) {
		k := 0
		for i, step := range within {
			k += step * at[d+i]
		}
		along := int(index.Ints[k])
		if along < 0 {
			along += of.Shape[d]
		}
		for i := range of.Shape {
			switch {
			case i < d:
				place += steps[i] * at[i]
			case i == d:
				place += steps[i] * along
			default:
				place += steps[i] * at[i+rank-1]
			}
		}
		return place
	})
}

// concatConstants puts vectors behind each other.
func concatConstants(n *onnxNode, in []*onnx.Tensor) *onnx.Tensor {
	var elements []float64
	for _, t := range in {
		if len(t.Shape) != 1 {
			return nil
		}
		if t.Shape[0] > maxComputed-len(elements) {
			return nil
		}
		elements = append(elements, numbersOf(t)...)
	}
	n.want("axis", int64(n.axis(1, 0)), 0)
	return tensorLike(&onnx.Tensor{Type: in[0].Type, Floats: in[0].Floats}, []int{len(elements)}, elements)
}

// shapeFrom is a shape that is the only operand, of no more elements than are computed.
func shapeFrom(in []*onnx.Tensor) (shape []int, ok bool) {
	if len(in) != 1 || in[0] == nil || len(in[0].Shape) != 1 || in[0].Floats != nil {
		return nil, false
	}
	elems := int64(1)
	for _, e := range in[0].Ints {
		if e < 0 || e > maxComputed || elems*e > maxComputed {
			return nil, false
		}
		elems *= e
		shape = append(shape, int(e))
	}
	return shape, true
}

// between is the places from one to before another of a dimension. Negative ones count from the end.
func between(n int, from, to int64) (lo, hi int) {
	place := func(i int64) int {
		if i < 0 {
			i += int64(n)
		}
		return int(min(max(i, 0), int64(n)))
	}
	lo, hi = place(from), place(to)
	return lo, max(lo, hi)
}
