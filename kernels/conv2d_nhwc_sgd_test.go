package kernels_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// TestConvDwSGDIsThreeOperations: every variant changes weights, biases and velocities as the
// same variant of the gradient, then oihw and then sgd do, bit for bit, in whole buffers and
// in regions of larger ones. So do the operations without a bias. Filters are fewer than turnedFilters, as many, and no multiple of
// them; those of the first geometry share vectors.
func TestConvDwSGDIsThreeOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 47))
	steps := []dag.Params{
		kerneltest.SGDParams(0, 0, 0), kerneltest.SGDParams(0, 0, 0.01), kerneltest.SGDParams(0.9, 0, 0.01), kerneltest.SGDParams(0.9, 1, 0.01),
	}
	for i, g := range [][10]int{ // n, c, h, w, f, k, pad, stride, size, step
		{3, 1, 29, 31, 5, 5, 2, 1, 2, 2},
		{2, 7, 13, 11, 16, 3, 1, 1, 2, 2},
		{2, 5, 17, 19, 37, 3, 0, 2, 3, 2},
		{5, 41, 7, 3, 67, 1, 1, 1, 1, 2},
	} {
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for margin := range 2 {
				c := newFusedCase(g, real, false, 0)
				pytorch, bias := []int{g[4], g[1], g[5], g[5]}, []int{g[4]}
				for _, step := range []dag.Params{steps[i], steps[3-i]} {
					compareWithThree(t, rng, "conv2d.nhwc.dw", real, margin, c.conv, step, c.w, pytorch, bias, c.y, c.x)
					compareWithThree(t, rng, "conv2d.nhwc.pool.dw", real, margin, c.fused, step, c.w, pytorch, bias, c.pooled, c.pooled, c.x)
				}
			}
		}
	}
}

// compareWithThree compares op.sgd with op, oihw and sgd: dw is the shape of the gradient,
// pytorch that of the weights, and inputs are those of the operands that op reads.
func compareWithThree(t *testing.T, rng *rand.Rand, op string, real dag.DType, margin int, geometry, step dag.Params, dw, pytorch, bias []int, inputs ...[]int) {
	t.Helper()
	call := func(op string, params dag.Params, shapes [][]int, values ...[]float64) *kerneltest.Case {
		k, _ := kernels.KernelByName(op)
		s := kerneltest.New(k, real, shapes, kerneltest.FirstModes(k)[:len(shapes)], params, margin)
		if err := kernels.Validate(&s.Spec); err != nil {
			t.Fatal(err)
		}
		s.Fill(rng)
		for i, v := range values {
			if v != nil {
				s.Set(i, func(j int) float64 { return v[j] })
			}
		}
		return s
	}
	shapes := append(append([][]int{pytorch}, inputs...), []int{2}, bias, pytorch, bias)
	s := call(op+".sgd", append(geometry[:len(geometry):len(geometry)], step...), shapes)
	hyper := 1 + len(inputs)
	for v := range s.Kernel.Variants {
		if !s.Runs(&s.Kernel.Variants[v]) {
			continue
		}
		run := func(c *kerneltest.Case) *kerneltest.Case {
			c.Run(likeVariant(c.Kernel, s.Kernel.Variants[v].Name))
			return c
		}
		values := [][]float64{nil}
		for i := range inputs {
			values = append(values, s.Values(1+i))
		}
		fused := run(s.Clone())
		compareWithoutBias(t, s, fused, v)
		grads := run(call(op, geometry, append(append([][]int{dw}, inputs...), bias), values...))
		turned := run(call("oihw", nil, [][]int{pytorch, dw}, nil, grads.Values(0)))
		for i, g := range [][]float64{turned.Values(0), grads.Values(1 + len(inputs))} {
			parameter, velocity := []int{0, hyper + 1}[i], hyper+2+i
			shape := s.Spec.Operands[parameter].Shape
			stepped := run(call("sgd", step, [][]int{shape, shape, {2}, shape}, s.Values(parameter), g, s.Values(hyper), s.Values(velocity)))
			name := s.Kernel.Variants[v].Name + " " + op + " " + s.Spec.Key()
			compareBits(t, name, fused.Values(parameter), stepped.Values(0))
			compareBits(t, name, fused.Values(velocity), stepped.Values(3))
		}
	}
}

// likeVariant is the variant of a name, or the one of its level where an operation has no other.
func likeVariant(k *kernels.Kernel, name string) *kernels.Variant {
	v, ok := k.Variant(name)
	if !ok {
		v, _ = k.Variant(strings.TrimPrefix(name, "winograd-"))
	}
	return v
}

// TestHWIOGivesBoth: hwio with a second result gives what hwio and hwoi give.
func TestHWIOGivesBoth(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 59))
	both, _ := kernels.KernelByName("hwio")
	turned, _ := kernels.KernelByName("hwoi")
	for _, e := range [][3]int{{1, 1, 1}, {5, 3, 2}, {37, 17, 3}, {67, 3, 5}} { // filters, channels, window
		w, hwio, hwoi := []int{e[0], e[1], e[2], e[2]}, []int{e[2], e[2], e[1], e[0]}, []int{e[2], e[2], e[0], e[1]}
		for margin := range 2 {
			s := kerneltest.New(both, dag.Float32, [][]int{hwio, w, hwoi}, kerneltest.FirstModes(both), nil, margin)
			s.Fill(rng)
			weights := s.Values(1)
			for v := range both.Variants {
				if !both.Variants[v].RunsHere() {
					continue
				}
				one := kerneltest.New(both, dag.Float32, [][]int{hwio, w}, kerneltest.FirstModes(both)[:2], nil, margin)
				other := kerneltest.New(turned, dag.Float32, [][]int{hwoi, w}, kerneltest.FirstModes(turned), nil, margin)
				for _, c := range []*kerneltest.Case{one, other} {
					c.Set(1, func(j int) float64 { return weights[j] })
				}
				s.Run(&both.Variants[v])
				one.Run(&both.Variants[v])
				other.Run(&turned.Variants[v])
				compareBits(t, both.Variants[v].Name, s.Values(0), one.Values(0))
				compareBits(t, both.Variants[v].Name, s.Values(2), other.Values(0))
			}
		}
	}
}
