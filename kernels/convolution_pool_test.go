package kernels_test

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/kernels/simd"
	"dahl/must"
)

// fusedCases are convolutions with pooling: n, c, h, w, f, k, pad, stride, size, step.
// Some have maps beyond the block that is pooled at a time, some several samples in it.
var fusedCases = [][10]int{
	{2, 3, 29, 41, 5, 3, 1, 1, 2, 2},
	{3, 5, 13, 11, 33, 3, 0, 1, 2, 2},
	{2, 3, 41, 37, 17, 5, 2, 1, 2, 2},
	{2, 1, 28, 28, 6, 5, 2, 1, 2, 2},
	{7, 2, 11, 13, 5, 3, 1, 2, 3, 2},
	{2, 2, 61, 53, 23, 3, 1, 1, 3, 2},
	{2, 3, 17, 19, 7, 2, 0, 1, 2, 3},
}

// fusedCase is the shapes and parameters of a fused case.
type fusedCase struct {
	x, y, w, pooled   []int
	conv, pool, fused dag.Params
}

func newFusedCase(g [10]int) *fusedCase {
	n, c, h, w, f, k, pad, stride, size, step := g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9]
	oh, ow := calls.Windows(h, k, pad, stride), calls.Windows(w, k, pad, stride)
	return &fusedCase{
		x: []int{n, h, w, c}, y: []int{n, oh, ow, f}, w: []int{k, k, c, f},
		pooled: []int{n, calls.Windows(oh, size, 0, step), calls.Windows(ow, size, 0, step), f},
		conv:   kerneltest.ConvParams(float64(pad), float64(stride)),
		pool:   kerneltest.PoolParams(float64(size), float64(step)),
		fused:  kerneltest.ConvPoolParams(float64(pad), float64(stride), float64(size), float64(step)),
	}
}

// TestPoolingIsItsParts compares the references of conv2d.nhwc.pool and its gradient with those of the operations that
// they replace, and then the other variants with the references. The inputs are small integers, whose sums are exact. So all
// results must be equal, but for positions of maxima that are not positive.
func TestPoolingIsItsParts(t *testing.T) {
	for _, g := range fusedCases {
		c, rng := newFusedCase(g), rand.New(rand.NewPCG(uint64(g[0]*g[2]), 37))
		call := func(op string, params dag.Params, shapes ...[]int) *kerneltest.Case {
			k, _ := kernels.KernelByName(op)
			s := kerneltest.New(k, dag.Float32, shapes, kerneltest.FirstModes(k), params, 0)
			must.Do(t, kernels.Validate(&s.Spec))
			s.Fill(rng)
			return s
		}
		bias := c.y[3:]
		fused := call("conv2d.nhwc.pool", c.fused, c.pooled, c.pooled, c.x, c.w, bias)
		conv := call("conv2d.nhwc", append(c.conv, dag.Param{Name: "relu", Value: 1}), c.y, c.x, c.w, bias)
		copyTo(conv, fused, "x", "w", "b")
		pooling := call("maxpool.nhwc", c.pool, c.pooled, c.pooled, c.y)
		compareVariants(t, fused, 1)
		runReference(fused, conv)
		pooling.Set(2, value(conv, 0))
		runReference(pooling)
		y, index, at := pooling.Values(0), fused.Values(1), pooling.Values(1)
		compareBits(t, "y of "+fused.Spec.Key(), fused.Values(0), y)
		for j := range at {
			if y[j] == 0 {
				at[j] = simd.NoMaximum
			}
		}
		compareBits(t, "index of "+fused.Spec.Key(), index, at)

		gradient := call("conv2d.nhwc.pool.dw", c.fused, c.w, c.pooled, c.pooled, c.x, bias)
		copyTo(gradient, fused, "index", "x")
		spread := call("maxpool.nhwc.dx", c.pool, c.y, c.pooled, c.pooled)
		copyTo(spread, gradient, "dy", "index")
		plain := call("conv2d.nhwc.dw", c.conv, c.w, c.y, c.x, bias)
		copyTo(plain, gradient, "x")
		compareVariants(t, gradient, 1)
		runReference(gradient, spread)
		plain.Set(1, value(spread, 0))
		runReference(plain)
		compareBits(t, "dw of "+gradient.Spec.Key(), gradient.Values(0), plain.Values(0))
		compareBits(t, "db of "+gradient.Spec.Key(), gradient.Values(4), plain.Values(3))
	}
}

func runReference(all ...*kerneltest.Case) {
	for _, s := range all {
		s.Run(&s.Kernel.Variants[0])
	}
}

// copyTo gives named operands of a call the values of those of another.
func copyTo(to, from *kerneltest.Case, names ...string) {
	for _, name := range names {
		to.Set(to.Operand(name), value(from, from.Operand(name)))
	}
}

// value is the elements of an operand, in order.
func value(c *kerneltest.Case, operand int) func(j int) float64 {
	values := c.Values(operand)
	return func(j int) float64 { return values[j] }
}
