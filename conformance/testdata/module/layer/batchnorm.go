package main

import (
	"fmt"
	"math"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
)

// batchNorm is the batch normalisation of package nn without its fusions: y = γ·n + β for n = (x - μ)·r, with the mean μ and
// r = 1/√(σ² + eps) of a channel over a batch, or of the running statistics in an evaluation. With N values in a channel
//
//	dβ = Σ dy    dγ = Σ dy·n    dx = γ·r·(dy - dβ/N - n·dγ/N)
type batchNorm struct{}

const momentum = 0.1

func (batchNorm) Kind() string { return "norm" }

func (batchNorm) Traits() nn.Traits { return nn.Traits{WholeSample: true} }

func (batchNorm) Output(in [][]int) ([]int, error) {
	if len(in) != 1 || len(in[0]) != 3 {
		return nil, fmt.Errorf("a batch normalisation needs C×H×W")
	}
	return in[0], nil
}

func (batchNorm) Params(in [][]int) []nn.Parameter {
	channels := in[0][:1]
	return []nn.Parameter{{Name: "weight", Shape: channels, First: 1}, {Name: "bias", Shape: channels}}
}

func (batchNorm) Running(in [][]int) []nn.Parameter {
	channels := in[0][:1]
	return []nn.Parameter{{Name: "running_mean", Shape: channels}, {Name: "running_var", Shape: channels, First: 1}}
}

func (batchNorm) Flops(_ [][]int, out []int) float64 { return 8 * float64(out[0]*out[1]*out[2]) }

// channels is a buffer of two numbers per channel: μ and r, or dβ and dγ of the batch.
func (batchNorm) channels(n *nn.Node, name string) nn.Operand {
	return n.Buffer(dag.Buffer{Name: n.Name + "." + name, Shape: []int{2, n.Out[0]}, Type: n.Type()}, nn.NoAxis, dag.AlongOutputs)
}

func (b batchNorm) Forward(n *nn.Node) {
	k := b.channels(n, "moments")
	if n.Trains() {
		n.Step(".moments", "norm.moments", nil, k, n.Running(0), n.Running(1), n.Input(0))
	} else {
		n.Step(".moments", "norm.running", nil, k, n.Running(0), n.Running(1))
	}
	n.Tiles("norm", nil, n.Output(), n.Input(0), k, n.Param(0), n.Param(1))
}

func (b batchNorm) Backward(n *nn.Node) {
	k, s := b.channels(n, "moments"), b.channels(n, "grads")
	n.Tiles("norm.dw", nil, n.ParamGrad(0), n.ParamGrad(1), s, n.OutputGrad(), n.Input(0), k)
	if n.Needs(0) {
		values := float64(n.Samples() * n.Out[1] * n.Out[2])
		n.Tiles("norm.dx", dag.Params{{Name: "values", Value: values}}, n.InputGrad(0), n.OutputGrad(), n.Input(0), k, s, n.Param(0))
	}
}

const image = "n h w c"

func (batchNorm) Kernels() []kernels.Kernel {
	return []kernels.Kernel{
		{Op: "norm.moments", Whole: "n h w", PerPoint: 5, Variants: ref(moments[float32], moments[float64]), Operands: []kernels.Operand{
			writes("k", "2 c"), updates("mean", "c"), updates("variance", "c"), reads("x", image)}},
		{Op: "norm.running", PerPoint: 3, Variants: ref(running[float32], running[float64]), Operands: []kernels.Operand{
			writes("k", "2 c"), reads("mean", "c"), reads("variance", "c")}},
		{Op: "norm", PerPoint: 4, Variants: ref(norm[float32], norm[float64]), Operands: []kernels.Operand{
			writes("y", image), reads("x", image), reads("k", "2 c"), reads("weight", "c"), reads("bias", "c")}},
		{Op: "norm.dw", Whole: "n h w", PerPoint: 5, Variants: ref(normDw[float32], normDw[float64]), Operands: []kernels.Operand{
			sums("dw", "c"), sums("db", "c"), writes("s", "2 c"), reads("dy", image), reads("x", image), reads("k", "2 c")}},
		{Op: "norm.dx", PerPoint: 8, Params: []string{"values"}, Variants: ref(normDx[float32], normDx[float64]), Operands: []kernels.Operand{
			writes("dx", image), reads("dy", image), reads("x", image), reads("k", "2 c"), reads("s", "2 c"), reads("weight", "c")}},
	}
}

// pair is the two rows of an operand.
func pair[T calls.Float](a *calls.Arg) (first, second []T) {
	all := calls.Data[T](a)
	return all[:a.Shape[1]], all[a.Stride[0]:]
}

func moments[T calls.Float](c *calls.Call) {
	mean, inverse := pair[T](&c.Args[0])
	runningMean, runningVar := calls.Data[T](&c.Args[1]), calls.Data[T](&c.Args[2])
	values := 1.0
	sum, squares := make([]float64, len(mean)), make([]float64, len(mean))
	each := func(visit func(i int, v float64)) {
		eachRow(c, func(row func(int) []T) {
			for i, v := range row(3) {
				visit(i, float64(v))
			}
		}, 3)
	}
	each(func(i int, v float64) { sum[i] += v })
	for _, extent := range c.Args[3].Shape[:3] {
		values *= float64(extent)
	}
	each(func(i int, v float64) { squares[i] += (v - sum[i]/values) * (v - sum[i]/values) })
	for i := range mean {
		mean[i], inverse[i] = T(sum[i]/values), T(1/math.Sqrt(squares[i]/values+eps))
		runningMean[i] += momentum * (mean[i] - runningMean[i])
		runningVar[i] += momentum * (T(squares[i]/(values-1)) - runningVar[i])
	}
}

func running[T calls.Float](c *calls.Call) {
	mean, inverse := pair[T](&c.Args[0])
	copy(mean, calls.Data[T](&c.Args[1]))
	for i, v := range calls.Data[T](&c.Args[2]) {
		inverse[i] = T(1 / math.Sqrt(float64(v)+eps))
	}
}

func norm[T calls.Float](c *calls.Call) {
	mean, inverse := pair[T](&c.Args[2])
	weight, bias := calls.Data[T](&c.Args[3]), calls.Data[T](&c.Args[4])
	eachRow(c, func(row func(int) []T) {
		y, x := row(0), row(1)
		for i, v := range x {
			y[i] = (v-mean[i])*inverse[i]*weight[i] + bias[i]
		}
	}, 0, 1)
}

func normDw[T calls.Float](c *calls.Call) {
	sum, products := pair[T](&c.Args[2])
	mean, inverse := pair[T](&c.Args[5])
	clear(sum)
	clear(products)
	eachRow(c, func(row func(int) []T) {
		dy, x := row(3), row(4)
		for i, g := range dy {
			sum[i] += g
			products[i] += g * (x[i] - mean[i]) * inverse[i]
		}
	}, 3, 4)
	for arg, of := range [][]T{products, sum} {
		dst := begun[T](&c.Args[arg])
		for i := range dst {
			dst[i] += of[i]
		}
	}
}

func normDx[T calls.Float](c *calls.Call) {
	mean, inverse := pair[T](&c.Args[3])
	sum, products := pair[T](&c.Args[4])
	weight, values := calls.Data[T](&c.Args[5]), T(c.Params[0])
	eachRow(c, func(row func(int) []T) {
		dx, dy, x := row(0), row(1), row(2)
		for i, g := range dy {
			n := (x[i] - mean[i]) * inverse[i]
			dx[i] = weight[i] * inverse[i] * (g - (sum[i]+n*products[i])/values)
		}
	}, 0, 1, 2)
}
