package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
)

// TestZones checks that the zones of a lattice are its pixels in order, and that a tap
// lies in the source exactly if the pixel's zone has it.
func TestZones(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	for range 2000 {
		l := lattice{
			pixels: rng.IntN(20), taps: 1 + rng.IntN(7),
			from: rng.IntN(17) - 8, stride: 1 + rng.IntN(4), extent: 1 + rng.IntN(20),
		}
		for u := 0; u < l.pixels; {
			end, lo, hi := l.zone(u)
			if end <= u || end > l.pixels {
				t.Fatalf("%+v: the zone of pixel %d ends at %d", l, u, end)
			}
			for ; u < end; u++ {
				for tap := range l.taps {
					at := l.from + u*l.stride + tap
					if inside := at >= 0 && at < l.extent; inside != (tap >= lo && tap < hi) {
						t.Fatalf("%+v: tap %d of pixel %d is at %d, its zone has taps %d to %d", l, tap, u, at, lo, hi)
					}
				}
			}
		}
	}
}

// TestSharedPixels computes by hand how many pixels of a row share vectors.
func TestSharedPixels(t *testing.T) {
	for _, c := range []struct{ lanes, pixels, filters, taps, stride, want int }{
		// One vector of 32 or two of 16 lanes are full: nothing to gain.
		{16, 28, 32, 3, 1, 1},
		// 6 filters, 5 taps, alone 28·5 = 140. Two pixels in a vector: 14·6 = 84. Five in two
		// vectors: 5·2·9 + 3·5 = 105.
		{16, 28, 6, 5, 1, 2},
		// 4 filters, 3 taps, 26 pixels, alone 78. Four pixels in a vector: 6·6 + 2·3 = 42; three:
		// 8·5 + 2·3 = 46; two: 13·4 = 52.
		{16, 26, 4, 3, 1, 4},
		// Windows of one tap gain nothing: two pixels take two steps.
		{16, 28, 4, 1, 1, 1},
		// No vectors.
		{0, 28, 4, 3, 1, 1},
	} {
		if g := sharedPixels(c.lanes, c.pixels, c.filters, c.taps, c.stride); g != c.want {
			t.Errorf("%+v: %d pixels share vectors", c, g)
		}
	}
}

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
	oh, ow := windows(h, k, pad, stride), windows(w, k, pad, stride)
	return &fusedCase{
		x: []int{n, h, w, c}, y: []int{n, oh, ow, f}, w: []int{k, k, c, f},
		pooled: []int{n, windows(oh, size, 0, step), windows(ow, size, 0, step), f},
		conv:   convParams(float64(pad), float64(stride)),
		pool:   pool(float64(size), float64(step)),
		fused:  append(convParams(float64(pad), float64(stride)), pool2(float64(size), float64(step))...),
		real:   real, exact: exact, variant: variant, rng: rand.New(rand.NewPCG(uint64(n*h), 37)),
		products: k*k*c + 2, additions: n*oh*ow + size*size + 2,
	}
}

// call builds a call. Its inputs are small integers, or numbers from low to 1.
func (c *fusedCase) call(t *testing.T, k *Kernel, params dag.Params, low float64, shapes ...[]int) *sample {
	s := newSample(k, c.real, shapes, firstModes(k), params, 0)
	if err := Validate(&s.spec); err != nil {
		t.Fatal(err)
	}
	s.fill(c.rng)
	for i, o := range k.Operands {
		if o.Kind == Real {
			s.set(i, func(int) float64 {
				if c.exact {
					return float64(c.rng.IntN(9) - 4)
				}
				return low + (1-low)*c.rng.Float64()
			})
		}
	}
	return s
}

// then gives operand name of s the values of operand fromName of from.
func (s *sample) then(name string, from *sample, fromName string) {
	values := from.values(from.kernel.operand(fromName))
	s.set(s.kernel.operand(name), func(j int) float64 { return values[j] })
}

func (c *fusedCase) run(samples ...*sample) {
	for _, s := range samples {
		runVariant(s, &s.kernel.Variants[c.variant])
	}
}

// compare checks operand name of a fused call against that of another, whose sums of
// absolute values are in scale.
func (c *fusedCase) compare(t *testing.T, terms int, name string, fused *sample, want, limit []float64) {
	t.Helper()
	nu := float64(terms) * unitRoundoff(c.real)
	for j, got := range fused.values(fused.kernel.operand(name)) {
		bound := 2 * 1.01 * nu / (1 - nu) * limit[j]
		if c.exact {
			bound = 0
		}
		if !(math.Abs(got-want[j]) <= bound) {
			t.Fatalf("%s %s %v, %s[%d] is %g, in two steps %g, bound %g",
				fused.spec.Key(), fused.kernel.Variants[c.variant].Name, c.real, name, j, got, want[j], bound)
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
	for _, g := range fusedCases {
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for _, exact := range []bool{true, false} {
				for v := range conv2dNHWCPool.Variants {
					if conv2dNHWCPool.Variants[v].RunsHere() {
						c := newFusedCase(g, real, exact, v)
						c.backward(t, c.forward(t))
					}
				}
			}
		}
	}
}

func (c *fusedCase) forward(t *testing.T) (fused *sample) {
	bias := []int{c.y[3]}
	fused = c.call(t, &conv2dNHWCPool, c.fused, -1, c.pooled, c.pooled, c.x, c.w, bias)
	conv := c.call(t, &conv2dNHWC, append(c.conv, dag.Param{Name: "relu", Value: 1}), -1, c.y, c.x, c.w, bias)
	for _, name := range []string{"x", "w", "b"} {
		conv.then(name, fused, name)
	}
	scale := fused.magnitudes()
	runVariant(scale, &conv2dNHWCPool.Variants[0])
	c.run(fused, conv)
	pooling := c.call(t, &maxpoolNHWC, c.pool, -1, c.pooled, c.pooled, c.y)
	pooling.then("x", conv, "y")
	c.run(pooling)
	y := pooling.values(0)
	c.compare(t, c.products, "y", fused, y, scale.values(0))
	index := fused.values(1)
	for j, at := range pooling.values(1) {
		if c.exact && index[j] != at && !(y[j] == 0 && index[j] == noMaximum) {
			t.Fatalf("%s %s: index[%d] is %g, pooled %g", fused.spec.Key(), fused.kernel.Variants[c.variant].Name, j, index[j], at)
		}
	}
	return fused
}

func (c *fusedCase) backward(t *testing.T, forward *sample) {
	bias := []int{c.y[3]}
	fused := c.call(t, &conv2dNHWCPoolDw, c.fused, 0, c.w, c.pooled, c.pooled, c.x, bias)
	fused.then("index", forward, "index")
	fused.then("x", forward, "x")
	spread := c.call(t, &maxpoolNHWCDx, c.pool, 0, c.y, c.pooled, c.pooled)
	spread.then("dy", fused, "dy")
	spread.then("index", fused, "index")
	c.run(spread)
	plain := c.call(t, &conv2dNHWCDw, c.conv, 0, c.w, c.y, c.x, bias)
	plain.then("dy", spread, "dx")
	plain.then("x", fused, "x")
	scale := plain.magnitudes()
	runVariant(scale, &conv2dNHWCDw.Variants[0])
	c.run(plain, fused)
	c.compare(t, c.additions, "dw", fused, plain.values(0), scale.values(0))
	c.compare(t, c.additions, "db", fused, plain.values(3), scale.values(3))
}
