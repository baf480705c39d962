package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// TestSoftmaxChain compares softmax_xent with rowmax, exp_sub, rowsum, xent and
// softmax_xent.dx run one after the other.
//
// Both take the exact maximum and compute each exponential from the same rounded
// difference, so e and m are equal. The sums of c positive numbers differ by at most
// 2γ_c relative, however they are ordered. So p = e/s differs by (2γ_c+2u)·p, dz by
// (2γ_c+8u)·(p+1)/B with label smoothing, and the loss by 2γ_c + 4u·(log s + |z_y - m|), since a relative
// change of s is an absolute one of log s. Evaluation computes the loss as training does.
func TestSoftmaxChain(t *testing.T) {
	const n, c, batch = 5, 11, 13
	rng := rand.New(rand.NewPCG(13, 17))
	for i, real := range []dag.DType{dag.Float32, dag.Float64, dag.Float32, dag.Float64} {
		build := func(op string) *kerneltest.Case {
			k, _ := kernels.KernelByName(op)
			params := kerneltest.LossParams(batch, 0.25*float64(i/2))
			shapes := map[string][]int{"z": {n, c}, "dz": {n, c}, "e": {n, c}}
			var all [][]int
			for _, o := range k.Operands {
				if shape, ok := shapes[o.Name]; ok {
					all = append(all, shape)
				} else {
					all = append(all, []int{n})
				}
			}
			return kerneltest.New(k, real, all, kerneltest.FirstModes(k), params, 1)
		}
		fused := build("softmax_xent")
		fused.Fill(rng)
		fused.Set(3, func(int) float64 { return 20*rng.Float64() - 40 }) // all below 0
		values := map[string][]float64{"z": fused.Values(3), "y": fused.Values(4)}
		run := func(s *kerneltest.Case) {
			for i, o := range s.Kernel.Operands {
				if v, ok := values[o.Name]; ok && s.Spec.Operands[i].Mode == dag.Read {
					s.Set(i, func(j int) float64 { return v[j] })
				}
			}
			s.Run(&s.Kernel.Variants[0])
		}
		for _, op := range []string{"rowmax", "exp_sub", "rowsum", "xent", "softmax_xent.dx"} {
			s := build(op)
			run(s)
			for _, i := range s.Written() {
				values[s.Kernel.Operands[i].Name] = s.Values(i)
			}
		}
		run(fused)
		eval := build("softmax_xent.eval")
		run(eval)

		u := kerneltest.UnitRoundoff(real)
		gamma := c * u / (1 - c*u)
		for j, got := range fused.Values(0) {
			p := values["e"][j] / values["s"][j/c]
			if bound := (2*gamma + 8*u) * (p + 1) / batch; math.Abs(got-values["dz"][j]) > bound {
				t.Errorf("%v: dz[%d] is %g fused, %g as a chain, bound %g", real, j, got, values["dz"][j], bound)
			}
		}
		for j, got := range fused.Values(1) {
			z := values["z"][j*c+int(values["y"][j])]
			bound := 2*gamma + 4*u*(math.Log(values["s"][j])+math.Abs(z-values["m"][j]))
			if math.Abs(got-values["loss"][j]) > bound {
				t.Errorf("%v: loss[%d] is %g fused, %g as a chain, bound %g", real, j, got, values["loss"][j], bound)
			}
			if e := eval.Values(0)[j]; math.Abs(got-e) > bound {
				t.Errorf("%v: loss[%d] is %g in training, %g in evaluation, bound %g", real, j, got, e, bound)
			}
			if a, b, d := fused.Values(2)[j], values["correct"][j], eval.Values(1)[j]; a != b || a != d {
				t.Errorf("%v: correct[%d] is %g fused, %g as a chain, %g in evaluation", real, j, a, b, d)
			}
		}
	}
}
