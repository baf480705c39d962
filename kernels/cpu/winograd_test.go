package cpu_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// winogradPass is a pass of a 3×3 convolution with a padding of 1, and where its result and its factors are.
type winogradPass struct {
	op     string
	shapes func(n, h, w, c, f int) [][]int
	params dag.Params
}

var winogradPasses = []winogradPass{
	{"conv2d.nhwc", func(n, h, w, c, f int) [][]int {
		return [][]int{{n, h, w, f}, {n, h, w, c}, {3, 3, c, f}}
	}, kerneltest.ConvReLUParams(1, 1, 0)},
	{"conv2d.nhwc.dx", func(n, h, w, c, f int) [][]int {
		return [][]int{{n, h, w, c}, {n, h, w, f}, {3, 3, f, c}}
	}, kerneltest.ConvParams(1, 1)},
	{"conv2d.nhwc.dw", func(n, h, w, c, f int) [][]int {
		return [][]int{{3, 3, c, f}, {n, h, w, f}, {n, h, w, c}}
	}, kerneltest.ConvParams(1, 1)},
}

// call builds a call with normally distributed numbers, as float32 has them.
func (p *winogradPass) call(real dag.DType, rng *rand.Rand, shapes [][]int) *kerneltest.Case {
	k, _ := kernels.KernelByName(p.op)
	s := kerneltest.New(k, real, shapes, kerneltest.FirstModes(k)[:len(shapes)], p.params, 0)
	for i := 1; i < len(shapes); i++ {
		s.Set(i, func(int) float64 { return float64(float32(rng.NormFloat64())) })
	}
	return s
}

// TestWinogradErrors: against float64 each pass errs at most 2.5 times as much as the direct variant of the level in the
// root of the mean square, and at most 4 times in the maximum.
func TestWinogradErrors(t *testing.T) {
	for _, channels := range []int{32, 64} {
		for i := range winogradPasses {
			p := &winogradPasses[i]
			shapes := p.shapes(2, 16, 16, channels, channels)
			exact := p.call(dag.Float64, rand.New(rand.NewPCG(5, 7)), shapes)
			exact.Run(exact.Kernel.Default())
			want := exact.Values(0)
			errorsOf := func(name string) (rms, most float64, ok bool) {
				got := p.call(dag.Float32, rand.New(rand.NewPCG(5, 7)), shapes)
				v, _ := got.Kernel.Variant(name)
				if !got.Runs(v) {
					return 0, 0, false
				}
				got.Run(v)
				for j, g := range got.Values(0) {
					rms, most = rms+(g-want[j])*(g-want[j]), max(most, math.Abs(g-want[j]))
				}
				return math.Sqrt(rms), most, true
			}
			for _, level := range []string{"avx2", "avx512"} {
				rms, most, ok := errorsOf(level)
				winogradRMS, winogradMost, _ := errorsOf("winograd-" + level)
				if !ok {
					continue
				}
				t.Logf("%s, %d channels, %s: %.2f times in the root of the mean square, %.2f in the maximum", p.op, channels, level, winogradRMS/rms, winogradMost/most)
				if winogradRMS > 2.5*rms || winogradMost > 4*most {
					t.Errorf("%s, %d channels, %s: errors %g and %g, those of the direct variant %g and %g", p.op, channels, level, winogradRMS, winogradMost, rms, most)
				}
			}
		}
	}
}

// TestWinogradSpreads: an infinite pixel makes no number of any result that depends on it, and changes nothing in tiles that
// do not read it. In a gradient of filters it reaches its own channel.
func TestWinogradSpreads(t *testing.T) {
	const n, h, w, c, f = 2, 13, 11, 3, 5
	for i := range winogradPasses {
		p := &winogradPasses[i]
		whole := p.call(dag.Float32, rand.New(rand.NewPCG(11, 13)), p.shapes(n, h, w, c, f))
		source := 1 // an operand of pixels that is read
		if p.op == "conv2d.nhwc.dw" {
			source = 2
		}
		shape := whole.Spec.Operands[source].Shape
		const sample, row, column, channel = 1, 6, 5, 2
		hit := ((sample*shape[1]+row)*shape[2]+column)*shape[3] + channel
		values := whole.Values(source)
		values[hit] = math.Inf(1)
		spoilt := whole.Clone()
		spoilt.Set(source, func(j int) float64 { return values[j] })
		for v := range whole.Kernel.Variants {
			variant := &whole.Kernel.Variants[v]
			if !variant.Transforms || !whole.Runs(variant) {
				continue
			}
			before, after := whole.Clone(), spoilt.Clone()
			before.Run(variant)
			after.Run(variant)
			old := before.Values(0)
			to := whole.Spec.Operands[0].Shape
			for j, got := range after.Values(0) {
				at := []int{j / (to[3] * to[2] * to[1]), j / (to[3] * to[2]) % to[1], j / to[3] % to[2], j / to[3] % to[2]}
				depends, reads := false, false
				if p.op == "conv2d.nhwc.dw" {
					depends, reads = at[2] == channel, at[2] == channel
				} else if at[0] == sample {
					u, v := at[1], at[2]
					depends = slices.Max([]int{u - row, row - u, v - column, column - v}) <= 1
					reads = inTile(u, row) && inTile(v, column)
				}
				finite := !math.IsInf(got, 0) && !math.IsNaN(got)
				if depends && finite || !reads && got != old[j] {
					t.Fatalf("%s %s: result %v is %g beside an infinite pixel, and %g without", p.op, variant.Name, at, got, old[j])
				}
			}
		}
	}
}

// inTile reports whether the tile of result u reads a pixel, along one dimension, with a padding of 1.
func inTile(u, pixel int) bool { first := u/4*4 - 1; return pixel >= first && pixel < first+6 }
