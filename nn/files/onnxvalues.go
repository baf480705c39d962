package files

import (
	"fmt"
	"slices"

	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

// onnxValue is an operand that depends on samples: a view of the output of a layer, or a function of its elements that is no layer yet.
type onnxValue struct {
	layer string // or "input"
	view
	function *onnxFunction // Nil means the elements themselves.
	scores   *onnxScores   // of attention, of which layer, view and function say nothing
}

// samplesOf is the view of all of the output of a layer.
func (r *onnxReader) samplesOf(sample []int) view {
	batch := factor{batchAxis, r.batchSize(), 1}
	switch len(sample) {
	case 0: // of a layer that is wrong
		return view{}
	case 1:
		return viewOf(batch, factor{featureAxis, sample[0], 1})
	case 2:
		return viewOf(batch, factor{positionAxis, sample[0], 1}, factor{featureAxis, sample[1], 1})
	}
	return viewOf(batch, factor{featureAxis, sample[0], 1}, factor{positionAxis, sample[1], 1}, factor{columnAxis, sample[2], 1})
}

// lead is the dimensions in front of the features, with all samples and positions. All features of the layer come last.
func (r *onnxReader) lead(v *onnxValue) (dims [][]factor, ok bool) {
	sample := r.shapes[v.layer]
	last := len(v.dims) - 1
	if len(sample) > 2 || last < 1 || v.first != [axes]int{} || !slices.Equal(v.dims[last], dimension(factor{featureAxis, sample[len(sample)-1], 1})) {
		return nil, false
	}
	want := factors(r.samplesOf(sample).dims[:len(sample)])
	have := factors(v.dims[:last])
	for _, f := range have {
		if !slices.Contains(want, f) {
			return nil, false
		}
	}
	return v.dims[:last], len(have) == len(want)
}

// lead is the dimensions in front of the last one.
func (v *onnxValue) lead() [][]factor { return v.dims[:max(0, len(v.dims)-1)] }

// layerOf is the layer whose output an operand is. It makes the layer of a function. Sequences may have their dimensions in
// another order, which lead says: layers take each position by itself.
func (r *onnxReader) layerOf(operand string) (name string, lead [][]factor, err error) {
	v := r.values[operand]
	switch {
	case v == nil && r.graph.Tensors[operand] != nil:
		return "", nil, fmt.Errorf("operand %q is a constant of the file; dahl reads a constant only as a weight, or in a sum as the bias of a Conv, Gemm or MatMul that has none and whose result nothing else reads", operand)
	case v == nil:
		return "", nil, fmt.Errorf("operand %q is not the output of an operator before it", operand)
	case v.scores != nil:
		return "", nil, fmt.Errorf("operand %q is scores of attention; dahl has none but softmax(q·kᵀ/√D)·v", operand)
	}
	if v.function != nil {
		if err := r.functionLayer(v); err != nil {
			return "", nil, err
		}
	}
	sample := r.shapes[v.layer]
	if sample == nil { // New says what is wrong before it
		return v.layer, nil, nil
	}
	if sameDims(v.dims, r.samplesOf(sample).dims) && v.first == [axes]int{} {
		if len(sample) == 3 {
			return v.layer, v.dims[:1], nil
		}
		return v.layer, v.dims[:len(sample)], nil
	}
	if lead, ok := r.lead(v); ok {
		return v.layer, lead, nil
	}
	if r.selects(v) {
		*v = *r.selected(v)
		return r.layerOf(operand)
	}
	if r.turnsPixels(v) {
		*v = *r.add(nn.Named{Layer: layers.Pixels{}, Inputs: []string{v.layer}}, [][]int{sample})
		return r.layerOf(operand)
	}
	return "", nil, fmt.Errorf("operand %q has samples in shape %v, which dahl reads only as images, as features, as sequences T×C, or as queries, keys and values of attention", operand, v.shape())
}

// sameDims compares dimensions.
func sameDims(a, b [][]factor) bool { return slices.EqualFunc(a, b, slices.Equal[[]factor]) }

// move reads an operator that only changes the view of a value.
func (r *onnxReader) move(n *onnx.Node) (done bool, err error) {
	v := r.values[n.Inputs[0]]
	move := onnxMoves()[n.Op]
	if v == nil || v.scores != nil || move == nil && n.Op != "Split" {
		return false, nil
	}
	if v.dims == nil { // New says what is wrong before it
		r.values[n.Outputs[0]] = v
		return true, nil
	}
	o := onnxNode{Node: n, reader: r}
	w, ok := []view{v.view}, false
	if n.Op == "Split" {
		w, ok = o.split(v.view)
	} else if w[0], ok = move(&o, v.view); len(n.Outputs) != 1 {
		o.fail("%d results; want one", len(n.Outputs))
	}
	for _, part := range w { // layers compute at least one element
		ok = ok && !slices.Contains(part.shape(), 0)
	}
	if o.finish(); o.err == nil && !ok {
		o.fail("dahl does not see samples of %v so", v.shape())
	}
	if o.err != nil {
		return true, o.err
	}
	if n.Op == "Identity" || n.Op == "Cast" {
		r.values[n.Outputs[0]] = v
		return true, nil
	}
	for i, output := range n.Outputs {
		r.values[output] = &onnxValue{layer: v.layer, view: w[i], function: v.function}
		if r.flattens(r.values[output], n.Op) {
			return true, r.flatten(r.values[output])
		}
	}
	return true, nil
}

// selects reports whether a value is one position of a sequence, as a sequence of one or as features.
func (r *onnxReader) selects(v *onnxValue) bool {
	sample := r.shapes[v.layer]
	if len(sample) != 2 {
		return false
	}
	all := r.samplesOf(sample)
	at := [axes]int{positionAxis: v.first[positionAxis]}
	return v.first == at && (sameDims(v.dims, [][]factor{all.dims[0], all.dims[2]}) || sameDims(v.dims, [][]factor{all.dims[0], nil, all.dims[2]}))
}

// selected makes the layers of such a value.
func (r *onnxReader) selected(v *onnxValue) *onnxValue {
	made := r.add(nn.Named{Layer: layers.Select{Position: v.first[positionAxis]}, Inputs: []string{v.layer}}, [][]int{r.shapes[v.layer]})
	if len(v.dims) == 2 {
		made = r.add(nn.Named{Layer: layers.Flatten{}, Inputs: []string{made.layer}}, [][]int{r.shapes[made.layer]})
	}
	return made
}

// turnsPixels reports whether a value is an image with its pixels as positions, or a sequence with its positions as the pixels of one column.
func (r *onnxReader) turnsPixels(v *onnxValue) bool {
	sample := r.shapes[v.layer]
	all := r.samplesOf(sample)
	switch {
	case v.first != [axes]int{} || len(v.dims) < 3 || !slices.Equal(v.dims[0], all.dims[0]):
		return false
	case len(sample) == 3:
		return len(v.dims) == 3 && slices.Equal(factors(v.dims[1:2]), factors(all.dims[2:])) && slices.Equal(v.dims[2], all.dims[1])
	}
	return len(sample) == 2 && len(v.dims) == 4 && slices.Equal(v.dims[1], all.dims[2]) && slices.Equal(v.dims[2], all.dims[1]) && len(v.dims[3]) == 0
}

// flattens reports whether a value is an image with its channels, rows and columns as features, or by a Flatten a sequence of one position.
func (r *onnxReader) flattens(v *onnxValue, op string) bool {
	sample := r.shapes[v.layer]
	all := r.samplesOf(sample)
	if op == "Flatten" && len(sample) == 2 && sample[0] == 1 {
		return v.first == [axes]int{} && sameDims(v.dims, [][]factor{all.dims[0], all.dims[2]})
	}
	return len(sample) == 3 && len(v.dims) == 2 && v.first == [axes]int{} &&
		slices.Equal(factors(v.dims[:1]), factors(all.dims[:1])) && slices.Equal(factors(v.dims[1:]), factors(all.dims[1:]))
}

// flatten makes the layer of a value that flattens.
func (r *onnxReader) flatten(v *onnxValue) error {
	if v.function != nil {
		if err := r.functionLayer(v); err != nil {
			return err
		}
	}
	*v = *r.add(nn.Named{Layer: layers.Flatten{}, Inputs: []string{v.layer}}, [][]int{r.shapes[v.layer]})
	return nil
}

// split sees parts of a dimension behind each other.
func (n *onnxNode) split(v view) (parts []view, ok bool) {
	d := n.axis(len(v.dims), 0)
	n.useAttribute("num_outputs", onnx.Attribute{})
	if n.err != nil {
		return nil, false
	}
	e, count := extentOf(v.dims[d]), len(n.Outputs)
	sizes := n.useAttribute("split", onnx.Attribute{}).Ints
	if len(n.Inputs) > 1 && n.Inputs[1] != "" {
		sizes, _ = n.reader.vector(n.Inputs[1])
	} else if sizes == nil {
		for i := range count {
			part := (e + count - 1) / count
			sizes = append(sizes, int64(min(part, e-i*part)))
		}
	}
	lo := 0
	for _, size := range sizes {
		if size < 1 || size > int64(e-lo) {
			return nil, false
		}
		part, ok := v.part(d, lo, lo+int(size))
		if !ok {
			return nil, false
		}
		parts, lo = append(parts, part), lo+int(size)
	}
	return parts, len(parts) == count && lo == e
}
