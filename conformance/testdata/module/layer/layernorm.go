package main

import (
	"fmt"
	"math"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
)

// layerNorm normalises each row of a sample of T×D (Ba, Kiros and Hinton, "Layer normalization", arXiv:1607.06450, 2016): with
// the mean μ and the variance σ² of its D numbers, y = γ·n + β for n = (x - μ)·r and r = 1/√(σ² + eps). With g = γ·dy the gradient is
//
//	dβ = Σ dy    dγ = Σ dy·n    dx = r·(g - mean(g) - n·mean(g·n))
type layerNorm struct{}

const eps = 1e-5

func (layerNorm) Kind() string { return "layernorm" }

func (layerNorm) Output(in [][]int) ([]int, error) {
	if len(in) != 1 || len(in[0]) != 2 {
		return nil, fmt.Errorf("a layer normalisation needs T×D")
	}
	return in[0], nil
}

func (layerNorm) Params(in [][]int) []nn.Parameter {
	width := in[0][1:]
	return []nn.Parameter{{Name: "weight", Shape: width, First: 1}, {Name: "bias", Shape: width}}
}

func (layerNorm) Flops(_ [][]int, out []int) float64 { return 8 * float64(out[0]*out[1]) }

// moments are μ and r of each row.
func (layerNorm) moments(n *nn.Node) nn.Operand {
	return n.Buffer(dag.Buffer{Name: n.Name + ".moments", Shape: []int{n.Samples(), n.Out[0], 2}, Type: n.Type()})
}

func (l layerNorm) Forward(n *nn.Node) {
	n.Tiles("own.layernorm", nil, n.Output(), l.moments(n), n.Input(0), n.Param(0), n.Param(1))
}

func (l layerNorm) Backward(n *nn.Node) {
	n.Tiles("own.layernorm.dw", nil, n.ParamGrad(0), n.ParamGrad(1), n.OutputGrad(), n.Input(0), l.moments(n))
	if n.Needs(0) {
		n.Tiles("own.layernorm.dx", nil, n.InputGrad(0), n.OutputGrad(), n.Input(0), l.moments(n), n.Param(0))
	}
}

func (layerNorm) Kernels() []kernels.Kernel {
	return []kernels.Kernel{
		{Op: "own.layernorm", Whole: "d", PerPoint: 8, Variants: ref(normalise[float32], normalise[float64]), Operands: []kernels.Operand{
			writes("y", "n t d"), writes("k", "n t 2"), reads("x", "n t d"), reads("weight", "d"), reads("bias", "d")}},
		{Op: "own.layernorm.dw", PerPoint: 5, Variants: ref(normaliseDw[float32], normaliseDw[float64]), Operands: []kernels.Operand{
			sums("dw", "d"), sums("db", "d"), reads("dy", "n t d"), reads("x", "n t d"), reads("k", "n t 2")}},
		{Op: "own.layernorm.dx", Whole: "d", PerPoint: 8, Variants: ref(normaliseDx[float32], normaliseDx[float64]), Operands: []kernels.Operand{
			writes("dx", "n t d"), reads("dy", "n t d"), reads("x", "n t d"), reads("k", "n t 2"), reads("weight", "d")}},
	}
}

func normalise[T calls.Float](c *calls.Call) {
	weight, bias := calls.Data[T](&c.Args[3]), calls.Data[T](&c.Args[4])
	eachRow(c, func(row func(arg int) []T) {
		y, k, x := row(0), row(1), row(2)
		var sum, squares float64
		for _, v := range x {
			sum += float64(v)
		}
		mean := sum / float64(len(x))
		for _, v := range x {
			squares += (float64(v) - mean) * (float64(v) - mean)
		}
		inverse := 1 / math.Sqrt(squares/float64(len(x))+eps)
		k[0], k[1] = T(mean), T(inverse)
		for i, v := range x {
			y[i] = T((float64(v)-mean)*inverse)*weight[i] + bias[i]
		}
	}, 0, 1, 2)
}

func normaliseDw[T calls.Float](c *calls.Call) {
	dw, db := begun[T](&c.Args[0]), begun[T](&c.Args[1])
	eachRow(c, func(row func(arg int) []T) {
		dy, x, k := row(2), row(3), row(4)
		for i := range dy {
			dw[i] += dy[i] * (x[i] - k[0]) * k[1]
			db[i] += dy[i]
		}
	}, 2, 3, 4)
}

func normaliseDx[T calls.Float](c *calls.Call) {
	weight := calls.Data[T](&c.Args[4])
	eachRow(c, func(row func(arg int) []T) {
		dx, dy, x, k := row(0), row(1), row(2), row(3)
		var sum, products T
		for i := range dx {
			g := weight[i] * dy[i]
			sum += g
			products += g * (x[i] - k[0]) * k[1]
		}
		for i := range dx {
			dx[i] = k[1] * (weight[i]*dy[i] - (sum+(x[i]-k[0])*k[1]*products)/T(len(dx)))
		}
	}, 0, 1, 2, 3)
}
