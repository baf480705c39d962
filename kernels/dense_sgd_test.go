package kernels_test

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// TestDenseDwSGDIsTwoOperations: every variant of dense.dw.sgd changes weights, biases
// and velocities as the same variant of dense.dw and then sgd does, bit for bit, on
// operands that lie alike. So does dense.dw.sgd.nobias without biases, in regions. Parts of dw must be summed as the whole is: of 37 rows of 4127
// columns gradientBytes holds 1728 of float32, of 3 rows of 43691 it holds 21824.
func TestDenseDwSGDIsTwoOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	for _, e := range [][3]int{{1, 1, 1}, {7, 3, 5}, {3, 37, 4127}, {2, 3, 43691}, {67, 17, 31}, {257, 10, 43}} {
		for _, params := range []dag.Params{kerneltest.SGDParams(0, 0, 0), kerneltest.SGDParams(0, 0, 0.01), kerneltest.SGDParams(0.9, 0, 0.01), kerneltest.SGDParams(0.9, 1, 0.01)} {
			for _, real := range []dag.DType{dag.Float32, dag.Float64} {
				for margin := range 2 {
					n, out, in := e[0], e[1], e[2]
					k, _ := kernels.KernelByName("dense.dw.sgd")
					s := kerneltest.New(k, real, [][]int{{out, in}, {n, out}, {n, in}, {2}, {out}, {out, in}, {out}}, kerneltest.FirstModes(k), params, margin)
					s.Fill(rng)
					for v := range k.Variants {
						if k.Variants[v].RunsHere() {
							compareWithTwoOperations(t, s, v, margin)
						}
					}
				}
			}
		}
	}
}

// compareWithoutBias checks that a variant of the operation without a bias changes weights and velocities as that with one did.
func compareWithoutBias(t *testing.T, before, after *kerneltest.Case, variant int) {
	t.Helper()
	alone := before.WithoutBias()
	v := &alone.Kernel.Variants[variant]
	alone.Run(v)
	for _, name := range []string{"w", "vw"} {
		compareBits(t, v.Name+" "+alone.Kernel.Op+" "+alone.Spec.Key(), alone.Values(alone.Operand(name)), after.Values(after.Operand(name)))
	}
}

func compareWithTwoOperations(t *testing.T, s *kerneltest.Case, variant, margin int) {
	t.Helper()
	fused := s.Clone()
	fused.Run(&s.Kernel.Variants[variant])
	if margin > 0 {
		compareWithoutBias(t, s, fused, variant)
	}

	run := func(op string, params dag.Params, shapes [][]int, values ...[]float64) *kerneltest.Case {
		k, _ := kernels.KernelByName(op)
		c := kerneltest.New(k, s.Spec.Type, shapes, kerneltest.FirstModes(k), params, margin)
		for i, v := range values {
			if v != nil {
				c.Set(i, func(j int) float64 { return v[j] })
			}
		}
		c.Run(&k.Variants[variant])
		return c
	}
	shape := func(i int) []int { return s.Spec.Operands[i].Shape }
	grads := run("dense.dw", nil, [][]int{shape(0), shape(1), shape(2), shape(4)}, nil, s.Values(1), s.Values(2))
	name := s.Kernel.Variants[variant].Name + " " + s.Spec.Key()
	for _, c := range [][3]int{{0, 5, 0}, {4, 6, 3}} { // parameter, velocity, gradient
		stepped := run("sgd", s.Spec.Params, [][]int{shape(c[0]), shape(c[0]), {2}, shape(c[1])},
			s.Values(c[0]), grads.Values(c[2]), s.Values(3), s.Values(c[1]))
		compareBits(t, name, fused.Values(c[0]), stepped.Values(0))
		compareBits(t, name, fused.Values(c[1]), stepped.Values(3))
	}
}
