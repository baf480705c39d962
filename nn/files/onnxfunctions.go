package files

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dahl/kernels"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/onnx"
)

// Programs spell a GELU or a normalisation in many ways, of operators on single numbers and of means. All spellings have equal values at
// some places, and are found by these.

// onnxFunction is a function of the features of a position that operators compute.
type onnxFunction struct {
	values       [len(onnxPlaces)]float64 // for features onnxPlaces
	node         *onnx.Node               // that computes it
	weight, bias string                   // constants: factors of a normalisation, and what is added then
}

// onnxPlaces are where functions are compared.
var onnxPlaces = [...]float64{-7.3, -4.1, -3.1, -2.3, -1.9, -1.3, -0.7, -0.37, -0.11, 0.05, 0.17, 0.43, 0.83, 1.1, 1.7, 2.3, 2.9, 3.7, 4.7, 7.9}

// functionLayer makes a layer of a function, or else of its last operator.
func (r *onnxReader) functionLayer(v *onnxValue) error {
	n := v.function.node
	if v.function.weight != "" {
		made, err := r.normLayer(v)
		if err == nil {
			*v = *made
		}
		return err
	}
	for _, f := range kernels.Functions() {
		if f.Setting == "" && v.function.is(func(x float64) float64 { return f.Value(x, 0) }) {
			of := nn.Named{Layer: layers.Activation{Function: f.Name}, Inputs: []string{v.layer}}
			made := r.add(of, [][]int{r.shapes[v.layer]})
			v.layer, v.function = made.layer, nil
			return nil
		}
	}
	made, err := r.lastOperator(v)
	if made != nil || err != nil {
		return err
	}
	var known []string
	for _, f := range kernels.Functions() {
		known = append(known, f.Name)
	}
	return fmt.Errorf("what operators up to %s (node %q) compute of each element is no function that dahl has: %s", n.Op, n.Name, strings.Join(known, ", "))
}

// lastOperator makes a layer of the last operator of a function, behind layers of what it reads. Nil means that there is none.
func (r *onnxReader) lastOperator(v *onnxValue) (made *onnxValue, err error) {
	n := v.function.node
	switch before := r.values[n.Inputs[0]]; {
	case n.Op == "Add" || n.Op == "Mul":
		o := onnxNode{Node: n, reader: r, operands: n.Inputs}
		made, err = r.layer(&o, onnxOperators()[n.Op](&o))
	case onnxUnary[n.Op] != nil && before.function != nil:
		if _, _, err = r.layerOf(n.Inputs[0]); err == nil {
			_, err = r.function(n)
		}
		if made = r.values[n.Outputs[0]]; err == nil {
			err = r.functionLayer(made)
		}
	}
	if made != nil && err == nil {
		*v = *made
	}
	return made, err
}

// is compares a function with another one, whose constants may be rounded to float32.
func (f *onnxFunction) is(g func(float64) float64) bool {
	for i, x := range onnxPlaces {
		want := g(x)
		if !(math.Abs(f.values[i]-want) <= 2e-7*max(1, math.Abs(x))) {
			return false
		}
	}
	return true
}

// scale is the number that the function multiplies elements by.
func (f *onnxFunction) scale() (float64, bool) {
	if f == nil {
		return 1, true
	}
	by := f.values[len(onnxPlaces)-1] / onnxPlaces[len(onnxPlaces)-1]
	return by, f.is(func(x float64) float64 { return by * x })
}

// function reads an operator that computes a number of each element of one layer, or a mean.
func (r *onnxReader) function(n *onnx.Node) (done bool, err error) {
	unary, binary := onnxUnary[n.Op], onnxBinary[n.Op]
	switch {
	case n.Op == "ReduceMean":
		return r.mean(n)
	case unary == nil && binary == nil, unary != nil && len(n.Inputs) != 1, binary != nil && len(n.Inputs) != 2, len(n.Attributes) > 0:
		return false, nil
	}
	if done, err := r.scaled(n); done || err != nil {
		return done, err
	}
	var of *onnxValue
	var in [2][len(onnxPlaces)]float64
	plain := binary != nil
	for i, operand := range n.Inputs {
		if c, known := r.number(operand); known {
			for j := range in[i] {
				in[i][j] = c
			}
			plain = false
			continue
		}
		v := r.values[operand]
		if v == nil || v.scores != nil || of != nil && (v.layer != of.layer || v.first != of.first || !sameDims(v.dims, of.dims)) {
			return false, nil
		}
		if of, in[i] = v, onnxPlaces; v.function != nil {
			in[i], plain = v.function.values, false
		}
	}
	if of == nil || plain && n.Op == "Add" { // a value that is added to itself
		return false, nil
	}
	f := &onnxFunction{node: n}
	for i := range f.values {
		if unary != nil {
			f.values[i] = unary(in[0][i])
		} else {
			f.values[i] = binary(in[0][i], in[1][i])
		}
	}
	r.values[n.Outputs[0]] = &onnxValue{layer: of.layer, view: of.view, function: f}
	return true, nil
}

// mean reads a mean of the features of each position, or of the positions.
func (r *onnxReader) mean(n *onnx.Node) (done bool, err error) {
	v := r.values[n.Inputs[0]]
	if v == nil || v.scores != nil {
		return false, nil
	}
	o := onnxNode{Node: n, reader: r}
	along := o.axes(len(v.dims))
	keeps := o.useAttribute("keepdims", onnx.Attribute{Int: 1}).Int == 1
	o.useAttribute("noop_with_empty_axes", onnx.Attribute{})
	if len(r.shapes[v.layer]) == 2 && v.function == nil && !keeps && slices.Equal(along, []int{1}) && sameDims(v.dims, r.samplesOf(r.shapes[v.layer]).dims) {
		o.finish()
		r.values[n.Outputs[0]] = r.meanPosition(v.layer)
		return true, o.err
	}
	if _, ok := r.lead(v); !ok || !keeps || !slices.Equal(along, []int{len(v.dims) - 1}) {
		o.fail("dahl takes means of the features of each position, as normalisations do")
	}
	if o.finish(); o.err != nil {
		return true, o.err
	}
	of := onnxPlaces
	if v.function != nil {
		of = v.function.values
	}
	f, sum := &onnxFunction{node: n}, 0.0
	for _, x := range of {
		sum += x
	}
	for i := range f.values {
		f.values[i] = sum / float64(len(of))
	}
	r.values[n.Outputs[0]] = &onnxValue{layer: v.layer, view: v.view, function: f}
	return true, nil
}

// meanPosition makes the layers that take the mean of all positions of a sequence.
func (r *onnxReader) meanPosition(layer string) *onnxValue {
	var v *onnxValue
	for _, l := range []nn.Layer{layers.Pixels{}, layers.GlobalAvgPool{}, layers.Flatten{}} {
		v = r.add(nn.Named{Layer: l, Inputs: []string{layer}}, [][]int{r.shapes[layer]})
		layer = v.layer
	}
	return v
}

// scaled reads the weight and the bias of a normalisation. What else reads one with a weight reads the output of its layer.
func (r *onnxReader) scaled(n *onnx.Node) (done bool, err error) {
	for i, operand := range n.Inputs {
		v := r.values[operand]
		if v == nil || v.function == nil {
			continue
		}
		f, other := *v.function, n.Inputs[len(n.Inputs)-1-i]
		t, sample := r.graph.Tensors[other], r.shapes[v.layer]
		isVector := t != nil && len(t.Shape) == 1 && len(sample) > 0 && t.Shape[0] == sample[len(sample)-1]
		_, _, isNorm := f.norm()
		switch {
		case n.Op == "Mul" && isVector && isNorm && f.weight == "":
			f.weight = other
		case n.Op == "Add" && isVector && f.weight != "" && f.bias == "":
			f.bias = other
		case f.weight != "":
			_, _, err := r.layerOf(operand)
			return false, err
		default:
			continue
		}
		f.node = n
		r.values[n.Outputs[0]] = &onnxValue{layer: v.layer, view: v.view, function: &f}
		return true, nil
	}
	return false, nil
}

// norm finds out whether the function is a normalisation by the mean square, less the mean before or not, and what it adds to the square.
func (f *onnxFunction) norm() (eps float64, centered, ok bool) {
	for _, centered := range []bool{true, false} {
		mean, square := 0.0, 0.0
		if centered {
			for _, x := range onnxPlaces {
				mean += x / float64(len(onnxPlaces))
			}
		}
		for _, x := range onnxPlaces {
			square += (x - mean) * (x - mean) / float64(len(onnxPlaces))
		}
		by := (onnxPlaces[0] - mean) / f.values[0]
		eps := decimal(by*by - square)
		if eps > 1e-13 && eps <= 1 && f.is(func(x float64) float64 { return (x - mean) / math.Sqrt(square+eps) }) {
			return eps, centered, true
		}
	}
	return 0, false, false
}

// normLayer makes the layer of a normalisation.
func (r *onnxReader) normLayer(v *onnxValue) (*onnxValue, error) {
	f := v.function
	eps, centered, _ := f.norm()
	o := onnxNode{Node: f.node, reader: r}
	o.param(f.weight, "weight", 1)
	if f.bias != "" {
		o.param(f.bias, "bias", 1)
	}
	var layer nn.Layer = layers.LayerNorm{Eps: eps, NoBias: f.bias == ""}
	if !centered {
		if layer = (layers.RMSNorm{Eps: eps}); f.bias != "" {
			o.fail("a bias behind a normalisation by the root mean square; dahl has none")
		}
	}
	return r.layerBehind(&o, layer, []*onnxValue{{layer: v.layer, view: v.view}})
}
