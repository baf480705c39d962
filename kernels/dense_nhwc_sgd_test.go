package kernels_test

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// TestDenseNHWCDwSGDIsThreeOperations: every variant changes weights, biases and velocities as
// the same variant of dense.dw over the flattened map, then nchw and then sgd do, bit for bit. So does
// dense.nhwc.dw.sgd.nobias without biases.
func TestDenseNHWCDwSGDIsThreeOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(67, 71))
	for _, e := range [][5]int{{1, 1, 1, 1, 1}, {7, 3, 5, 2, 11}, {67, 10, 13, 11, 4}, {31, 17, 3, 5, 37}} { // n, o, h, w, c
		n, o, h, w, c := e[0], e[1], e[2], e[3], e[4]
		weight, flat, bias := []int{o, c, h, w}, []int{o, h * w * c}, []int{o}
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for _, step := range []dag.Params{kerneltest.SGDParams(0, 0, 0.01), kerneltest.SGDParams(0.9, 0, 0), kerneltest.SGDParams(0.9, 1, 0.01)} {
				call := func(op string, params dag.Params, shapes [][]int, values ...[]float64) *kerneltest.Case {
					k, _ := kernels.KernelByName(op)
					s := kerneltest.New(k, real, shapes, kerneltest.FirstModes(k), params, 0)
					s.Fill(rng)
					for i, v := range values {
						if v != nil {
							s.Set(i, func(j int) float64 { return v[j] })
						}
					}
					return s
				}
				s := call("dense.nhwc.dw.sgd", step, [][]int{weight, {n, o}, {n, h, w, c}, {2}, bias, weight, bias})
				for v := range s.Kernel.Variants {
					if !s.Kernel.Variants[v].RunsHere() {
						continue
					}
					run := func(c *kerneltest.Case) *kerneltest.Case {
						c.Run(&c.Kernel.Variants[v])
						return c
					}
					fused := run(s.Clone())
					compareWithoutBias(t, s, fused, v)
					grads := run(call("dense.dw", nil, [][]int{flat, {n, o}, {n, h * w * c}, bias}, nil, s.Values(1), s.Values(2)))
					turned := run(call("nchw", nil, [][]int{weight, {o, h, w, c}}, nil, grads.Values(0)))
					for i, g := range [][]float64{turned.Values(0), grads.Values(3)} {
						parameter := []int{0, 4}[i]
						shape := s.Spec.Operands[parameter].Shape
						stepped := run(call("sgd", step, [][]int{shape, shape, {2}, shape}, s.Values(parameter), g, s.Values(3), s.Values(5+i)))
						name := s.Kernel.Variants[v].Name + " " + s.Spec.Key()
						compareBits(t, name, fused.Values(parameter), stepped.Values(0))
						compareBits(t, name, fused.Values(5+i), stepped.Values(3))
					}
				}
			}
		}
	}
}
