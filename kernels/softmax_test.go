package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
)

// TestSoftmaxChain compares softmax_xent with rowmax, exp_sub, rowsum, xent and
// softmax_xent.dx run one after the other.
//
// Both take the exact maximum and compute each exponential from the same rounded
// difference, so e and m are equal. The sums of c positive numbers differ by at most
// 2γ_c relative, however they are ordered. So p = e/s differs by (2γ_c+2u)·p, dz by
// (2γ_c+6u)·(p+1)/B, and the loss by 2γ_c + 4u·(log s + |z_y - m|), since a relative
// change of s is an absolute one of log s. Evaluation computes the loss as training does.
func TestSoftmaxChain(t *testing.T) {
	const n, c, batch = 5, 11, 13
	rng := rand.New(rand.NewPCG(13, 17))
	for _, real := range []dag.DType{dag.Float32, dag.Float64} {
		build := func(op string) *sample {
			k, _ := Lookup(op)
			params := dag.Params{{Name: "batch", Value: batch}}
			shapes := map[string][]int{"z": {n, c}, "dz": {n, c}, "e": {n, c}}
			var all [][]int
			for _, o := range k.Operands {
				if shape, ok := shapes[o.Name]; ok {
					all = append(all, shape)
				} else {
					all = append(all, []int{n})
				}
			}
			return newSample(k, real, all, firstModes(k), params, 1)
		}
		fused := build("softmax_xent")
		fused.fill(rng)
		fused.set(3, func(int) float64 { return 20*rng.Float64() - 40 }) // all below 0
		values := map[string][]float64{"z": fused.values(3), "y": fused.values(4)}
		run := func(s *sample) {
			for i, o := range s.kernel.Operands {
				if v, ok := values[o.Name]; ok && s.spec.Operands[i].Mode == dag.Read {
					s.set(i, func(j int) float64 { return v[j] })
				}
			}
			runVariant(s, &s.kernel.Variants[0])
		}
		for _, op := range []string{"rowmax", "exp_sub", "rowsum", "xent", "softmax_xent.dx"} {
			s := build(op)
			run(s)
			for _, i := range s.written() {
				values[s.kernel.Operands[i].Name] = s.values(i)
			}
		}
		run(fused)
		eval := build("softmax_xent.eval")
		run(eval)

		u := unitRoundoff(real)
		gamma := c * u / (1 - c*u)
		for j, got := range fused.values(0) {
			p := values["e"][j] / values["s"][j/c]
			if bound := (2*gamma + 6*u) * (p + 1) / batch; math.Abs(got-values["dz"][j]) > bound {
				t.Errorf("%v: dz[%d] is %g fused, %g as a chain, bound %g", real, j, got, values["dz"][j], bound)
			}
		}
		for j, got := range fused.values(1) {
			z := values["z"][j*c+int(values["y"][j])]
			bound := 2*gamma + 4*u*(math.Log(values["s"][j])+math.Abs(z-values["m"][j]))
			if math.Abs(got-values["loss"][j]) > bound {
				t.Errorf("%v: loss[%d] is %g fused, %g as a chain, bound %g", real, j, got, values["loss"][j], bound)
			}
			if e := eval.values(0)[j]; math.Abs(got-e) > bound {
				t.Errorf("%v: loss[%d] is %g in training, %g in evaluation, bound %g", real, j, got, e, bound)
			}
			if a, b, d := fused.values(2)[j], values["correct"][j], eval.values(1)[j]; a != b || a != d {
				t.Errorf("%v: correct[%d] is %g fused, %g as a chain, %g in evaluation", real, j, a, b, d)
			}
		}
	}
}

// compareSoftmax compares a variant with the reference, whose exponentials it computes
// in another way.
//
// In float64 those of the variant err by at most 3u (see simd.Softmax), math.Exp's by
// less than 2u, and each is rounded to the type: they differ by at most δ = 6u, u of the
// type. Both add c of them in the order of the classes, so the sums differ by at most
// 2γ_c + δ, p = e/s by (2γ_c + 2δ + 2u)·p ≤ 2γ_c + 2δ + 2u, and dz, with two roundings
// more in each variant of numbers of at most 1, by (2γ_c + 2δ + 6u)/B. The loss differs
// as log s does, by the relative difference of s, and by roundings: 4u·(log s + |z_y - m|)
// as above. Bits must be equal in correct, in what is read, and around the regions.
func compareSoftmax(t *testing.T, s, got, want *sample, variant string) {
	t.Helper()
	u := unitRoundoff(s.spec.Type)
	z := s.spec.Operands[len(s.spec.Operands)-2].Shape
	c := float64(z[1])
	difference := 2*c*u/(1-c*u) + 6*u
	bounds := map[string]float64{
		"dz":   difference + 12*u,
		"loss": difference + 4*u*(math.Log(c)+2), // z is within -1 and 1
	}
	if batch, ok := s.spec.Params.Get("batch"); ok {
		bounds["dz"] /= batch
	}
	for i, o := range s.kernel.Operands {
		bound, written := bounds[o.Name]
		if !written {
			if !got.sameBytes(want, i) {
				t.Errorf("%s, operand %s: %s differs from ref", s.spec.Key(), o.Name, variant)
			}
			continue
		}
		g, w := got.values(i), want.values(i)
		for j := range g {
			if !(math.Abs(g[j]-w[j]) <= bound) {
				t.Errorf("%s %v, %s[%d]: %s gives %g, ref %g, bound %g", s.spec.Key(), s.spec.Type, o.Name, j, variant, g[j], w[j], bound)
				return
			}
		}
		if !got.sameOutside(want, i) {
			t.Errorf("%s, operand %s: %s writes outside its region", s.spec.Key(), o.Name, variant)
		}
	}
}
