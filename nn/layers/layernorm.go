package layers

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
)

// LayerNorm normalises the features of each position by their mean and their variance, as PyTorch's LayerNorm over the last dimension: y =
// w·(x - μ)/√(σ² + Eps) + b. kernels/layernorm.go has the equations.
type LayerNorm struct {
	Eps    float64 // Zero means 1e-5.
	NoBias bool
}

// RMSNorm divides the features of each position by their root mean square, as PyTorch's RMSNorm: y = w·x/√(mean x² + Eps).
type RMSNorm struct {
	Eps float64 // Zero means 1e-5.
}

// Kind implements [nn.Layer].
func (LayerNorm) Kind() string { return "layernorm" }

// Kind implements [nn.Layer].
func (RMSNorm) Kind() string { return "rmsnorm" }

// Prefix is how automatic names begin.
func (LayerNorm) Prefix() string { return "ln" }

// Prefix is how automatic names begin.
func (RMSNorm) Prefix() string { return "rms" }

// Traits says that tasks have all features of a position.
func (LayerNorm) Traits() nn.Traits { return nn.Traits{WholeSample: true, Takes: calls.Sum} }

// Traits says the same.
func (RMSNorm) Traits() nn.Traits { return nn.Traits{WholeSample: true, Takes: calls.Sum} }

// Output implements [nn.Layer].
func (l LayerNorm) Output(in [][]int) ([]int, error) { return rowNorm{eps: l.Eps}.output(in) }

// Output implements [nn.Layer].
func (l RMSNorm) Output(in [][]int) ([]int, error) { return rowNorm{eps: l.Eps}.output(in) }

// Params implements [nn.Learner].
func (l LayerNorm) Params(in [][]int) []nn.Parameter {
	features := []int{nn.Channels(in[0])}
	p := []nn.Parameter{{Name: "weight", Shape: features, First: 1}}
	if !l.NoBias {
		p = append(p, nn.Parameter{Name: "bias", Shape: features})
	}
	return p
}

// Params implements [nn.Learner].
func (RMSNorm) Params(in [][]int) []nn.Parameter {
	return []nn.Parameter{{Name: "weight", Shape: []int{nn.Channels(in[0])}, First: 1}}
}

// Flops implements [nn.Layer].
func (LayerNorm) Flops(_ [][]int, out []int) float64 { return 8 * float64(nn.Elems(out)) }

// Flops implements [nn.Layer].
func (RMSNorm) Flops(_ [][]int, out []int) float64 { return 8 * float64(nn.Elems(out)) }

// Forward implements [nn.Layer].
func (l LayerNorm) Forward(n *nn.Node) { rowNorm{l.Eps, true, !l.NoBias}.forward(n) }

// Forward implements [nn.Layer].
func (l RMSNorm) Forward(n *nn.Node) { rowNorm{l.Eps, false, false}.forward(n) }

// Backward implements [nn.Layer].
func (l LayerNorm) Backward(n *nn.Node) { rowNorm{l.Eps, true, !l.NoBias}.backward(n) }

// Backward implements [nn.Layer].
func (l RMSNorm) Backward(n *nn.Node) { rowNorm{l.Eps, false, false}.backward(n) }

// rowNorm is the common part of both layers.
type rowNorm struct {
	eps          float64
	center, bias bool
}

func (r rowNorm) output(in [][]int) ([]int, error) {
	shape, err := one(in)
	switch {
	case err != nil:
		return nil, err
	case len(shape) > 2:
		return nil, fmt.Errorf("the features of a vector or of a sequence T×C are normalised; a batch normalisation takes images")
	case !(r.eps >= 0 && r.eps <= 1):
		return nil, fmt.Errorf("eps %g; want a number from 0 to 1", r.eps)
	}
	return shape, nil
}

// scale is how each position is normalised: by the mean and the inverse of the root.
func (rowNorm) scale(n *nn.Node) nn.Operand {
	shape, axes := []int{n.Samples(), 2}, []dag.Dimension{dag.AlongSamples, nn.NoAxis}
	if len(n.Out) == 2 {
		shape, axes = []int{n.Samples(), n.Out[0], 2}, []dag.Dimension{dag.AlongSamples, dag.AlongRows, nn.NoAxis}
	}
	return n.Buffer(dag.Buffer{Name: n.Name + ".scale", Shape: shape, Type: n.Type()}, axes...)
}

func (r rowNorm) forward(n *nn.Node) {
	eps := r.eps
	if eps == 0 {
		eps = defaultEps
	}
	operands := []nn.Operand{n.Output(), r.scale(n), n.Input(0)}
	var with calls.Attributes
	if x, rest, adds := n.Summands(); adds {
		with, operands = calls.Sum, append(operands, x, rest)
	}
	operands = append(operands, n.Param(0))
	if r.bias {
		operands = append(operands, n.Param(1))
	}
	n.Tiles(kernels.Written("layernorm", with), dag.Params{nn.Flag("center", r.center), {Name: "eps", Value: eps}}, operands...)
}

func (r rowNorm) backward(n *nn.Node) {
	operands := []nn.Operand{n.ParamGrad(0), n.OutputGrad(), n.Input(0), r.scale(n)}
	if r.bias {
		operands = append(operands, n.ParamGrad(1))
	}
	n.Tiles("layernorm.dw", nil, operands...)
	if n.Needs(0) {
		operands := []nn.Operand{n.InputGrad(0), n.OutputGrad(), n.Input(0), r.scale(n), n.Param(0)}
		var with calls.Attributes
		if rest, takes := n.TakeRest(); takes {
			with, operands = calls.Sum, append(operands, rest)
		}
		n.Tiles(kernels.Written("layernorm.dx", with), dag.Params{nn.Flag("center", r.center)}, operands...)
	}
}
