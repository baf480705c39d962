package files

import (
	"math"
	"slices"

	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

// onnxScores are q·kᵀ of attention on their way to its output.
type onnxScores struct {
	queries, keys *onnxValue // N×heads×T×D, whatever their dimensions are called
	scale         float64
	causal        bool
	shares        bool // a softmax has been taken
}

// attention reads an operator of attention. Every other operator on scores is refused.
func (r *onnxReader) attention(n *onnx.Node) (done bool, err error) {
	o := onnxNode{Node: n, reader: r}
	var v *onnxValue
	if n.Op == "Attention" {
		v = o.wholeAttention()
	} else {
		var scores []*onnxValue
		for _, operand := range n.Inputs {
			if of := r.values[operand]; of != nil && of.scores != nil {
				scores = append(scores, of)
			}
		}
		isProduct := n.Op == "MatMul" && len(n.Inputs) == 2 && r.values[n.Inputs[0]] != nil && r.values[n.Inputs[1]] != nil
		switch {
		case len(scores) == 0 && isProduct:
			v = o.scoresOf(r.values[n.Inputs[0]], r.values[n.Inputs[1]].turned())
		case len(scores) == 0:
			return false, nil
		case isProduct && r.values[n.Inputs[0]] == scores[0] && len(scores) == 1 && scores[0].scores.shares:
			v = o.attended(*scores[0].scores, r.values[n.Inputs[1]])
		case len(scores) == 1 && !scores[0].scores.shares:
			v = o.changedScores(*scores[0].scores)
		default:
			o.fail("of scores of attention dahl has only softmax(q·kᵀ/√D)·v, with a causal mask or none")
		}
	}
	if o.finish(); o.err != nil {
		return true, o.err
	}
	r.values[n.Outputs[0]] = v
	return true, nil
}

// turned is a value with its last two dimensions in the other order.
func (v *onnxValue) turned() *onnxValue {
	w := *v
	if n := len(v.dims); n > 1 {
		w.dims = slices.Clone(v.dims)
		w.dims[n-2], w.dims[n-1] = w.dims[n-1], w.dims[n-2]
	}
	return &w
}

// headsOf are the heads that a value has as N×heads×T×D, and how many heads of queries share each.
func (r *onnxReader) headsOf(v *onnxValue) (heads, group, width int, ok bool) {
	sample, n := r.shapes[v.layer], len(v.dims)
	if len(sample) != 2 || n < 3 || v.first[batchAxis] != 0 || v.first[positionAxis] != 0 || !slices.Equal(v.dims[n-2], dimension(factor{positionAxis, sample[0], 1})) {
		return 0, 0, 0, false
	}
	heads, group, width = 1, 1, extentOf(v.dims[n-1])
	if !slices.Equal(factors(v.dims[n-1:]), dimension(factor{featureAxis, width, 1})) {
		return 0, 0, 0, false
	}
	rest := factors(v.dims[:n-2])
	if batch := dimension(factor{batchAxis, r.batchSize(), 1}); len(batch) > 0 {
		if len(rest) == 0 || rest[0] != batch[0] {
			return 0, 0, 0, false
		}
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].axis == featureAxis && rest[0].step == width {
		heads, rest = rest[0].extent, rest[1:]
	}
	if len(rest) > 0 && rest[0].axis == featureAxis && rest[0].step == 0 {
		group, rest = rest[0].extent, rest[1:]
	}
	return heads, group, width, len(rest) == 0
}

// scoresOf is the product of queries and of keys that were turned. Both may have been multiplied by numbers.
func (n *onnxNode) scoresOf(queries, keys *onnxValue) *onnxValue {
	a, ok := queries.function.scale()
	b, too := keys.function.scale()
	_, _, _, isQueries := n.reader.headsOf(queries)
	_, _, _, isKeys := n.reader.headsOf(keys)
	if !ok || !too || !isQueries || !isKeys {
		n.fail("it multiplies samples of %v and %v; dahl multiplies samples by a weight, and queries of attention N×heads×T×D by keys N×heads×D×T", queries.shape(), keys.turned().shape())
	}
	return &onnxValue{scores: &onnxScores{queries: queries, keys: keys, scale: a * b}}
}

// changedScores are scores times a number, with a mask, or their softmax.
func (n *onnxNode) changedScores(s onnxScores) *onnxValue {
	v := &onnxValue{scores: &s}
	other := n.Inputs[len(n.Inputs)-1]
	isFirst := n.reader.values[n.Inputs[0]] != nil
	if !isFirst {
		other = n.Inputs[0]
	}
	number, isNumber := n.reader.number(other)
	switch t := n.reader.graph.Tensors; {
	case n.Op == "Mul" && isNumber:
		s.scale *= number
	case n.Op == "Div" && isNumber && isFirst:
		s.scale /= number
	case n.Op == "Add" && t[other] != nil:
		n.mask(&s, t[other], func(v float64) (seen, ok bool) { return v == 0, v == 0 || v < -1e4 })
	case n.Op == "Where" && len(n.Inputs) == 3 && t[n.Inputs[0]] != nil:
		seenIf := 1.0 // where the condition is true, the second operand is taken
		least, known := n.reader.number(n.Inputs[2])
		if n.reader.values[n.Inputs[1]] == nil {
			seenIf = 0
			least, known = n.reader.number(n.Inputs[1])
		}
		if !known || least > -1e4 {
			n.fail("its third operand is not what hides a score, -inf")
		}
		n.mask(&s, t[n.Inputs[0]], func(v float64) (seen, ok bool) { return v == seenIf, true })
	case n.Op == "Softmax":
		if axis := n.useAttribute("axis", onnx.Attribute{Int: -1}).Int; axis != -1 && axis != int64(len(s.queries.dims)-1) {
			n.fail("axis is %d; attention of dahl has the last one", axis)
		}
		s.shares = true
	case n.Op == "Identity" || n.Op == "Cast":
		n.floats()
	default:
		n.fail("of scores of attention dahl has only softmax(q·kᵀ/√D)·v, with a causal mask or none")
	}
	return v
}

// mask reads a mask by a function of its elements. Each position sees all of them, or itself and those before it.
func (n *onnxNode) mask(s *onnxScores, t *onnx.Tensor, see func(float64) (seen, ok bool)) {
	positions := n.reader.shapes[s.queries.layer][0]
	full := spread(t, []int{positions, positions})
	if len(t.Shape) > 2 && nn.Elems(t.Shape) == positions*positions {
		full = t
	}
	if full == nil || positions != n.reader.shapes[s.keys.layer][0] {
		n.fail("its mask has shape %v; dahl reads one for all samples and heads, of %d×%d", t.Shape, positions, positions)
		return
	}
	all, causal, known := true, true, true
	for i, v := range numbersOf(full) {
		seen, ok := see(v)
		known = known && ok
		all = all && seen
		causal = causal && seen == (i%positions <= i/positions)
	}
	if !known || !all && !causal {
		n.fail("its mask %q is neither causal nor of ones; dahl reads no other one", t.Name)
	}
	s.causal = s.causal || causal
}

// attended is the output of attention: a layer of queries, keys and values, or of a concatenation of these.
func (n *onnxNode) attended(s onnxScores, values *onnxValue) *onnxValue {
	r := n.reader
	heads, one, width, _ := r.headsOf(s.queries)
	parts, groups := []*onnxValue{s.queries, s.keys, values}, [3]int{}
	keyHeads := 0
	for i, v := range parts {
		h, group, w, ok := r.headsOf(v)
		scale, plain := v.function.scale()
		if groups[i] = h * group; !ok || w != width || len(v.dims) != len(s.queries.dims) || i == 2 && (!plain || scale != 1) {
			n.fail("values are %v; dahl has N×heads×T×D, with D as of queries and keys", v.shape())
			return nil
		}
		if i == 1 {
			keyHeads = h
		} else if i == 2 && h != keyHeads {
			n.fail("%d heads of keys and %d of values; want as many", keyHeads, h)
			return nil
		}
	}
	if one != 1 || heads%keyHeads > 0 || groups[1] != heads && groups[1] != keyHeads || groups[2] != groups[1] {
		n.fail("%d heads of queries, %d of keys and %d of values; want for each head of keys as many of queries", heads, groups[1], groups[2])
		return nil
	}
	if want := 1 / math.Sqrt(float64(width)); math.Abs(s.scale-want) > 1e-5*want {
		n.fail("scores are multiplied by %g; dahl multiplies by %g, one by the root of the %d features of a head", s.scale, want, width)
		return nil
	}
	of, sample := n.joined(parts, []int{heads * width, keyHeads * width, keyHeads * width})
	if n.err != nil {
		return nil
	}
	a := layers.Attention{Heads: heads, Causal: s.causal}
	if keyHeads != heads {
		a.KeyHeads = keyHeads
	}
	made := r.add(nn.Named{Layer: a, Inputs: []string{of}}, [][]int{sample})
	dims := slices.Clone(s.queries.dims)
	dims[len(dims)-1] = dimension(factor{featureAxis, width, 1})
	made.view = view{dims: dims}
	return made
}

// joined is the layer that has queries, keys and values behind each other.
func (n *onnxNode) joined(parts []*onnxValue, sizes []int) (layer string, sample []int) {
	r, first := n.reader, 0
	together, apart := true, true
	var in [][]int
	of := nn.Named{Layer: layers.Concat{}}
	for i, v := range parts {
		shape := r.shapes[v.layer]
		at := v.first[featureAxis]
		together = together && v.layer == parts[0].layer && at == first && shape[1] == sizes[0]+sizes[1]+sizes[2]
		apart = apart && at == 0 && shape[1] == sizes[i] && v.layer != nn.InputName
		first += sizes[i]
		of.Inputs, in = append(of.Inputs, v.layer), append(in, shape)
	}
	if together {
		return parts[0].layer, in[0]
	}
	if !apart {
		n.fail("queries, keys and values of all heads are neither three layers nor parts of one in this order")
		return "", nil
	}
	made := r.add(of, in)
	return made.layer, r.shapes[made.layer]
}

// wholeAttention reads the operator that is all of attention.
func (n *onnxNode) wholeAttention() *onnxValue {
	var in []*onnxValue
	for i, operand := range n.Inputs {
		if v := n.reader.values[operand]; i < 3 && v != nil && v.scores == nil {
			in = append(in, v)
		}
	}
	heads := []int64{n.useAttribute("q_num_heads", onnx.Attribute{}).Int, n.useAttribute("kv_num_heads", onnx.Attribute{}).Int}
	causal := n.useAttribute("is_causal", onnx.Attribute{}).Int == 1
	scale := n.useAttribute("scale", onnx.Attribute{}).Float
	n.useAttribute("softmax_precision", onnx.Attribute{})
	n.useAttribute("qk_matmul_output_mode", onnx.Attribute{})
	if softcap := n.useAttribute("softcap", onnx.Attribute{}).Float; softcap != 0 || len(in) != 3 || len(n.Outputs) != 1 || len(n.Inputs) > 4 {
		n.fail("dahl has attention of queries, keys and values, with no mask but one for all samples, and with one result")
		return nil
	}
	flat := len(in[0].dims) == 3
	for i, v := range in {
		if count := heads[min(i, 1)]; flat {
			w := *v
			e := w.shape()
			var ok bool
			if count < 1 || len(e) != 3 || e[2]%int(count) != 0 {
				n.fail("%d heads of %v", count, e)
				return nil
			}
			if w.view, ok = w.reshaped([]int{e[0], e[1], int(count), e[2] / int(count)}); !ok {
				n.fail("%d heads of %v", count, e)
				return nil
			}
			w.dims[1], w.dims[2] = w.dims[2], w.dims[1]
			in[i] = &w
		}
	}
	v := n.scoresOf(in[0], in[1])
	if n.err != nil {
		return nil
	}
	if v.scores.causal = causal; scale != 0 {
		v.scores.scale *= scale
	} else {
		v.scores.scale /= math.Sqrt(float64(extentOf(in[0].dims[len(in[0].dims)-1])))
	}
	if len(n.Inputs) == 4 && n.Inputs[3] != "" {
		n.operatorMask(v.scores)
	}
	if v = n.attended(*v.scores, in[2]); v != nil && flat {
		v.dims[1], v.dims[2] = v.dims[2], v.dims[1]
		e := v.shape()
		v.view, _ = v.reshaped([]int{e[0], e[1], e[2] * e[3]})
	}
	return v
}

// operatorMask reads the mask of the whole operator. It is true, or 0, where a position is seen.
func (n *onnxNode) operatorMask(s *onnxScores) {
	t := n.reader.graph.Tensors[n.Inputs[3]]
	switch {
	case t == nil:
		n.fail("its mask %q is not a constant", n.Inputs[3])
	case t.Type == "bool":
		n.mask(s, t, func(v float64) (seen, ok bool) { return v != 0, true })
	default:
		n.mask(s, t, func(v float64) (seen, ok bool) { return v == 0, v == 0 || v < -1e4 })
	}
}
