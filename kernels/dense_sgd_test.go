package kernels

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
)

// TestDenseDwSGDIsTwoOperations: every variant of dense.dw.sgd changes weights, biases
// and velocities as the same variant of dense.dw and then sgd does, bit for bit, on
// operands that lie alike. Parts of dw must be summed as the whole is: of 37 rows of 4127
// columns gradientBytes holds 1728 of float32, of 3 rows of 43691 it holds 21824.
func TestDenseDwSGDIsTwoOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	for _, e := range [][3]int{{1, 1, 1}, {7, 3, 5}, {3, 37, 4127}, {2, 3, 43691}, {67, 17, 31}, {257, 10, 43}} {
		for _, params := range []dag.Params{sgdParams(0, 0, 0), sgdParams(0, 0, 0.01), sgdParams(0.9, 0, 0.01), sgdParams(0.9, 1, 0.01)} {
			for _, real := range []dag.DType{dag.Float32, dag.Float64} {
				for margin := range 2 {
					n, out, in := e[0], e[1], e[2]
					k, _ := Lookup("dense.dw.sgd")
					s := newSample(k, real, [][]int{{out, in}, {out}, {n, out}, {n, in}, {2}, {out, in}, {out}}, firstModes(k), params, margin)
					s.fill(rng)
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

func compareWithTwoOperations(t *testing.T, s *sample, variant, margin int) {
	t.Helper()
	fused := s.clone()
	runVariant(fused, &s.kernel.Variants[variant])

	run := func(op string, params dag.Params, shapes [][]int, values ...[]float64) *sample {
		k, _ := Lookup(op)
		c := newSample(k, s.spec.Type, shapes, firstModes(k), params, margin)
		for i, v := range values {
			if v != nil {
				c.set(i, func(j int) float64 { return v[j] })
			}
		}
		runVariant(c, &k.Variants[variant])
		return c
	}
	shape := func(i int) []int { return s.spec.Operands[i].Shape }
	grads := run("dense.dw", nil, [][]int{shape(0), shape(2), shape(3), shape(1)}, nil, s.values(2), s.values(3))
	name := s.kernel.Variants[variant].Name + " " + s.spec.Key()
	for _, c := range [][3]int{{0, 5, 0}, {1, 6, 3}} { // parameter, velocity, gradient
		stepped := run("sgd", s.spec.Params, [][]int{shape(c[0]), shape(c[0]), {2}, shape(c[1])},
			s.values(c[0]), grads.values(c[2]), s.values(4), s.values(c[1]))
		compareBits(t, name, fused.values(c[0]), stepped.values(0))
		compareBits(t, name, fused.values(c[1]), stepped.values(3))
	}
}
