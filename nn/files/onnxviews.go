package files

import (
	"slices"

	"dahl/naming"
	"dahl/nn/onnx"
)

// Reshape, Transpose, Split and their like compute nothing: they only give numbers other indices. A view has
// these indices. Programs spell a flatten and the heads of attention in many ways, and all of these have equal views.

// A factor is an extent of an axis of what is seen: neighbours lie a step apart along the axis.
type factor struct{ axis, extent, step int }

// The axes of a view.
const (
	batchAxis    = iota
	positionAxis // of a sequence, or rows of an image
	columnAxis
	featureAxis // or channels
	elementAxis // of a constant
	axes
)

// A view has dimensions. Each is the product of factors, the outermost first. A dimension of extent 1 has none.
type view struct {
	dims  [][]factor
	first [axes]int // the index along each axis where the view begins
}

// viewOf is a view of dimensions of one factor each.
func viewOf(factors ...factor) (v view) {
	for _, f := range factors {
		v.dims = append(v.dims, dimension(f))
	}
	return v
}

// dimension is a dimension of one factor, or of none.
func dimension(f factor) []factor {
	if f.extent == 1 {
		return nil
	}
	return []factor{f}
}

// viewOfConstant sees all of a tensor.
func viewOfConstant(t *onnx.Tensor) view {
	steps, factors := stepsOf(t.Shape), []factor(nil)
	for d, e := range t.Shape {
		factors = append(factors, factor{elementAxis, e, steps[d]})
	}
	return viewOf(factors...)
}

func extentOf(dim []factor) int {
	e := 1
	for _, f := range dim {
		e *= f.extent
	}
	return e
}

func (v view) shape() (shape []int) {
	for _, d := range v.dims {
		shape = append(shape, extentOf(d))
	}
	return shape
}

// factors lists the factors of some dimensions. Neighbours are one where they are one range of an axis.
func factors(dims [][]factor) (all []factor) {
	for _, f := range slices.Concat(dims...) {
		if n := len(all); n > 0 && all[n-1].axis == f.axis && all[n-1].step == f.extent*f.step {
			all[n-1].extent, all[n-1].step = all[n-1].extent*f.extent, f.step
		} else {
			all = append(all, f)
		}
	}
	return all
}

// element is the place along each axis that an index means.
func (v view) element(index []int) (at [axes]int) {
	at = v.first
	for d, dim := range v.dims {
		rest := index[d]
		for _, f := range slices.Backward(dim) {
			at[f.axis] += rest % f.extent * f.step
			rest /= f.extent
		}
	}
	return at
}

// reshaped has the same elements in the same order with other extents.
func (v view) reshaped(extents []int) (view, bool) {
	rest := factors(v.dims)
	w := view{first: v.first}
	for _, need := range extents {
		var dim []factor
		for need > 1 {
			if len(rest) == 0 {
				return w, false
			}
			f := rest[0]
			switch {
			case f.extent < 1:
				return w, false
			case need%f.extent == 0:
				dim, rest, need = append(dim, f), rest[1:], need/f.extent
			case f.extent%need == 0:
				inner := f.extent / need
				dim = append(dim, factor{f.axis, need, f.step * inner})
				rest = append([]factor{{f.axis, inner, f.step}}, rest[1:]...)
				need = 1
			default:
				return w, false
			}
		}
		w.dims = append(w.dims, dim)
	}
	return w, len(rest) == 0
}

// part is the view of a range of one dimension.
func (v view) part(d, lo, hi int) (view, bool) {
	if hi-lo == extentOf(v.dims[d]) {
		return v, true
	}
	w := view{slices.Clone(v.dims), v.first}
	dim := factors(v.dims[d : d+1])
	switch {
	case len(dim) == 1:
		f := dim[0]
		w.first[f.axis] += lo * f.step
		w.dims[d] = dimension(factor{f.axis, hi - lo, f.step})
	case hi-lo == 1:
		at := view{dims: [][]factor{dim}}.element([]int{lo})
		for axis := range at {
			w.first[axis] += at[axis]
		}
		w.dims[d] = nil
	default:
		return w, false
	}
	return w, true
}

// onnxMoves are the operators that only change the view of their first operand.
func onnxMoves() map[string]func(n *onnxNode, v view) (view, bool) {
	return map[string]func(n *onnxNode, v view) (view, bool){
		"Reshape":   (*onnxNode).reshaped,
		"Transpose": (*onnxNode).transposed,
		"Slice":     (*onnxNode).sliced,
		"Squeeze":   (*onnxNode).squeezed,
		"Unsqueeze": (*onnxNode).unsqueezed,
		"Gather":    (*onnxNode).gathered,
		"Expand":    (*onnxNode).expanded,
		"Flatten": func(n *onnxNode, v view) (view, bool) {
			d := n.useAttribute("axis", onnx.Attribute{Int: 1}).Int
			if d < 0 {
				d += int64(len(v.dims))
			}
			if d < 0 || d > int64(len(v.dims)) {
				return v, false
			}
			return v.reshaped([]int{extentOf(factors(v.dims[:d])), extentOf(factors(v.dims[d:]))})
		},
		"Identity": func(_ *onnxNode, v view) (view, bool) { return v, true },
		"Cast": func(n *onnxNode, v view) (view, bool) {
			n.floats()
			return v, true
		},
	}
}

// axis is the attribute axis as the number of a dimension.
func (n *onnxNode) axis(rank int, otherwise int64) int {
	return n.dimension(n.useAttribute("axis", onnx.Attribute{Int: otherwise}).Int, rank)
}

// dimension is the number of a dimension, where negative ones count from the end.
func (n *onnxNode) dimension(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	if axis < 0 || axis >= int64(rank) {
		n.fail("axis %d of %d dimensions", axis, rank)
		return 0
	}
	return int(axis)
}

// axes is the attribute axes, or the second operand. Nil means that there is none.
func (n *onnxNode) axes(rank int) (all []int) {
	given := n.useAttribute("axes", onnx.Attribute{}).Ints
	if len(n.Inputs) > 1 {
		var known bool
		if given, known = n.reader.vector(n.Inputs[1]); !known {
			n.fail("operand %q is not a constant", n.Inputs[1])
		}
	}
	for _, a := range given {
		all = append(all, n.dimension(a, rank))
	}
	slices.Sort(all)
	return all
}

func (n *onnxNode) reshaped(v view) (view, bool) {
	zeroCopies := n.useAttribute("allowzero", onnx.Attribute{}).Int != 1
	var to []int64
	if len(n.Inputs) == 2 {
		to, _ = n.reader.vector(n.Inputs[1])
	}
	var extents []int
	all, open, has := 1, -1, extentOf(factors(v.dims))
	for i, e := range to {
		switch {
		case e == 0 && zeroCopies && i < len(v.dims):
			e = int64(extentOf(v.dims[i]))
		case e == -1 && open < 0:
			open, e = i, 1
		}
		if e < 1 || e > int64(has)/int64(all) {
			n.failShape(to)
			return v, false
		}
		all *= int(e)
		extents = append(extents, int(e))
	}
	if open >= 0 {
		extents[open] = has / all
	}
	w, ok := v.reshaped(extents)
	if !ok {
		n.failShape(to)
	}
	return w, ok
}

// failShape says that samples cannot have a shape.
func (n *onnxNode) failShape(shape []int64) {
	if sample := n.shape(); sample != nil {
		n.fail("samples of %s do not have shape %v; dahl keeps the samples apart", naming.ShapeText(sample), shape)
	}
}

func (n *onnxNode) transposed(v view) (view, bool) {
	perm := n.useAttribute("perm", onnx.Attribute{}).Ints
	w := view{first: v.first}
	for i := range v.dims {
		from := int64(len(v.dims) - 1 - i)
		if perm != nil {
			if len(perm) != len(v.dims) || !slices.Contains(perm, int64(i)) {
				return v, false
			}
			from = perm[i]
		}
		if from < 0 || from >= int64(len(v.dims)) {
			return v, false
		}
		w.dims = append(w.dims, v.dims[from])
	}
	return w, true
}

func (n *onnxNode) sliced(v view) (view, bool) {
	var given [4][]int64 // starts, ends, axes, steps
	for i, name := range []string{"starts", "ends", "axes"} {
		given[i] = n.useAttribute(name, onnx.Attribute{}).Ints
	}
	for i, operand := range n.Inputs[1:] {
		if i < len(given) && operand != "" {
			given[i], _ = n.reader.vector(operand)
		}
	}
	if given[2] == nil {
		for i := range given[0] {
			given[2] = append(given[2], int64(i))
		}
	}
	if len(given[1]) != len(given[0]) || len(given[2]) != len(given[0]) || slices.ContainsFunc(given[3], func(step int64) bool { return step != 1 }) {
		return v, false
	}
	ok := true
	for i, a := range given[2] {
		d := n.dimension(a, len(v.dims))
		if n.err != nil || !ok {
			return v, false
		}
		lo, hi := between(extentOf(v.dims[d]), given[0][i], given[1][i])
		v, ok = v.part(d, lo, hi)
	}
	return v, ok
}

func (n *onnxNode) squeezed(v view) (view, bool) {
	drop := n.axes(len(v.dims))
	w := view{first: v.first}
	for d, dim := range v.dims {
		if drop == nil && len(dim) > 0 || drop != nil && !slices.Contains(drop, d) {
			w.dims = append(w.dims, dim)
		} else if len(dim) > 0 {
			return v, false
		}
	}
	return w, true
}

func (n *onnxNode) unsqueezed(v view) (view, bool) {
	count := len(n.Attributes["axes"].Ints)
	if len(n.Inputs) > 1 {
		given, _ := n.reader.vector(n.Inputs[1])
		count = len(given)
	}
	w := view{slices.Clone(v.dims), v.first}
	for _, d := range n.axes(len(v.dims) + count) {
		if d > len(w.dims) {
			return v, false
		}
		w.dims = slices.Insert(w.dims, d, nil)
	}
	return w, count > 0
}

// gathered sees one index of a dimension, or a range of them.
func (n *onnxNode) gathered(v view) (view, bool) {
	d := n.axis(len(v.dims), 0)
	index := n.reader.graph.Tensors[n.Inputs[len(n.Inputs)-1]]
	if n.err != nil || len(n.Inputs) != 2 || index == nil || len(index.Ints) == 0 || len(index.Shape) > 1 {
		return v, false
	}
	e := extentOf(v.dims[d])
	lo, _ := between(e, index.Ints[0], int64(e))
	for i, at := range index.Ints {
		if from, _ := between(e, at, int64(e)); from != lo+i || from >= e {
			return v, false
		}
	}
	w, ok := v.part(d, lo, lo+len(index.Ints))
	if ok && len(index.Shape) == 0 {
		w.dims = slices.Delete(slices.Clone(w.dims), d, d+1)
	}
	return w, ok
}

// expanded repeats dimensions of one element.
func (n *onnxNode) expanded(v view) (view, bool) {
	given, ok := n.reader.vector(n.Inputs[len(n.Inputs)-1])
	var shape []int
	for _, e := range given {
		ok = ok && e > 0 && e <= openBatch
		shape = append(shape, int(e))
	}
	to := broadcast(v.shape(), shape)
	if !ok || len(n.Inputs) != 2 || to == nil {
		return v, false
	}
	w := view{make([][]factor, len(to)-len(v.dims)), v.first}
	w.dims = append(w.dims, v.dims...)
	for d, e := range to {
		if len(w.dims[d]) == 0 {
			w.dims[d] = dimension(factor{featureAxis, e, 0})
		}
	}
	return w, true
}
