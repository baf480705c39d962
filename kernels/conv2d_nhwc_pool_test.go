package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
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
	x, y, w, pooled     []int
	conv, pool, fused   dag.Params
	real                dag.DType
	exact               bool // small integers
	variant             int
	rng                 *rand.Rand
	products, additions int // of one element of y, and of dw
}

func newFusedCase(g [10]int, real dag.DType, exact bool, variant int) *fusedCase {
	n, c, h, w, f, k, pad, stride, size, step := g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9]
	oh, ow := kernels.Windows(h, k, pad, stride), kernels.Windows(w, k, pad, stride)
	return &fusedCase{
		x: []int{n, h, w, c}, y: []int{n, oh, ow, f}, w: []int{k, k, c, f},
		pooled: []int{n, kernels.Windows(oh, size, 0, step), kernels.Windows(ow, size, 0, step), f},
		conv:   kerneltest.ConvParams(float64(pad), float64(stride)),
		pool:   kerneltest.PoolParams(float64(size), float64(step)),
		fused:  kerneltest.ConvPoolParams(float64(pad), float64(stride), float64(size), float64(step)),
		real:   real, exact: exact, variant: variant, rng: rand.New(rand.NewPCG(uint64(n*h), 37)),
		products: k*k*c + 2, additions: n*oh*ow + size*size + 2,
	}
}

// call builds a call. Its inputs are small integers, or numbers from low to 1.
func (c *fusedCase) call(t *testing.T, op string, params dag.Params, low float64, shapes ...[]int) *kerneltest.Case {
	k, _ := kernels.KernelByName(op)
	s := kerneltest.New(k, c.real, shapes, kerneltest.FirstModes(k), params, 0)
	if err := kernels.Validate(&s.Spec); err != nil {
		t.Fatal(err)
	}
	s.Fill(c.rng)
	for i, o := range k.Operands {
		if o.Kind == kernels.Real {
			s.Set(i, func(int) float64 {
				if c.exact {
					return float64(c.rng.IntN(9) - 4)
				}
				return low + (1-low)*c.rng.Float64()
			})
		}
	}
	return s
}

// copyTo gives operand name of s the values of operand fromName of from.
func copyTo(s *kerneltest.Case, name string, from *kerneltest.Case, fromName string) {
	values := from.Values(from.Operand(fromName))
	s.Set(s.Operand(name), func(j int) float64 { return values[j] })
}

func (c *fusedCase) run(samples ...*kerneltest.Case) {
	for _, s := range samples {
		s.Run(&s.Kernel.Variants[c.variant])
	}
}

// compare checks operand name of a fused call against that of another, whose sums of
// absolute values are in scale.
func (c *fusedCase) compare(t *testing.T, terms int, name string, fused *kerneltest.Case, want, limit []float64) {
	t.Helper()
	nu := float64(terms) * kerneltest.UnitRoundoff(c.real)
	for j, got := range fused.Values(fused.Operand(name)) {
		bound := 2 * 1.01 * nu / (1 - nu) * limit[j]
		if c.exact {
			bound = 0
		}
		if !(math.Abs(got-want[j]) <= bound) {
			t.Fatalf("%s %s %v, %s[%d] is %g, in two steps %g, bound %g",
				fused.Spec.Key(), fused.Kernel.Variants[c.variant].Name, c.real, name, j, got, want[j], bound)
		}
	}
}

// TestFusedPooling compares conv2d.nhwc.pool and its gradient with the operations that
// they replace, at every level.
//
// Each element of y is the maximum over a window of sums of N products and a bias, and
// the maxima of two sets of numbers that differ by at most d differ by at most d. So
// the bound is 2γ·Σ|a||b| of TestVariantsAgainstReference, with the largest such sum in
// the window, which pooling the absolute values gives. On small integers all sums are
// exact: maxima and positions must be equal, but for positions of maxima that are not
// positive. Given one index, the gradients are sums of the same products in other orders;
// dy is positive, so that what meets in one pixel does not cancel.
func TestFusedPooling(t *testing.T) {
	k, _ := kernels.KernelByName("conv2d.nhwc.pool")
	for _, g := range fusedCases {
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for _, exact := range []bool{true, false} {
				for v := range k.Variants {
					if k.Variants[v].RunsHere() && k.Variants[v].Takes == nil { // others are not exact
						c := newFusedCase(g, real, exact, v)
						c.backward(t, c.forward(t))
					}
				}
			}
		}
	}
}

func (c *fusedCase) forward(t *testing.T) (fused *kerneltest.Case) {
	bias := []int{c.y[3]}
	fused = c.call(t, "conv2d.nhwc.pool", c.fused, -1, c.pooled, c.pooled, c.x, c.w, bias)
	conv := c.call(t, "conv2d.nhwc", append(c.conv, dag.Param{Name: "relu", Value: 1}), -1, c.y, c.x, c.w, bias)
	for _, name := range []string{"x", "w", "b"} {
		copyTo(conv, name, fused, name)
	}
	scale := fused.Magnitudes()
	scale.Run(&scale.Kernel.Variants[0])
	c.run(fused, conv)
	pooling := c.call(t, "maxpool.nhwc", c.pool, -1, c.pooled, c.pooled, c.y)
	copyTo(pooling, "x", conv, "y")
	c.run(pooling)
	y := pooling.Values(0)
	c.compare(t, c.products, "y", fused, y, scale.Values(0))
	index := fused.Values(1)
	for j, at := range pooling.Values(1) {
		if c.exact && index[j] != at && !(y[j] == 0 && index[j] == kernels.NoMaximum) {
			t.Fatalf("%s %s: index[%d] is %g, pooled %g", fused.Spec.Key(), fused.Kernel.Variants[c.variant].Name, j, index[j], at)
		}
	}
	return fused
}

func (c *fusedCase) backward(t *testing.T, forward *kerneltest.Case) {
	bias := []int{c.y[3]}
	fused := c.call(t, "conv2d.nhwc.pool.dw", c.fused, 0, c.w, c.pooled, c.pooled, c.x, bias)
	copyTo(fused, "index", forward, "index")
	copyTo(fused, "x", forward, "x")
	spread := c.call(t, "maxpool.nhwc.dx", c.pool, 0, c.y, c.pooled, c.pooled)
	copyTo(spread, "dy", fused, "dy")
	copyTo(spread, "index", fused, "index")
	c.run(spread)
	plain := c.call(t, "conv2d.nhwc.dw", c.conv, 0, c.w, c.y, c.x, bias)
	copyTo(plain, "dy", spread, "dx")
	copyTo(plain, "x", fused, "x")
	scale := plain.Magnitudes()
	scale.Run(&scale.Kernel.Variants[0])
	c.run(plain, fused)
	c.compare(t, c.additions, "dw", fused, plain.Values(0), scale.Values(0))
	c.compare(t, c.additions, "db", fused, plain.Values(3), scale.Values(3))
}
