package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// TestSoftmax compares softmax_xent with its definition, computed in float64.
//
// Of c exponentials of exact differences, rounded to u, the sum errs by at most γ_c relative, and each
// exponential by 2u. So p = e/s errs by (γ_c+4u)·p, dz by (γ_c+8u)·(p+1)/B with label smoothing, and the loss by
// γ_c + 4u·(log s + |z_y - m|), since a relative change of s is an absolute one of log s. The differences of
// smoothed logits are c terms more. Evaluation computes the loss as training does. The bounds are doubled for what float64 itself errs.
func TestSoftmax(t *testing.T) {
	const n, c, batch = 5, 11, 13
	rng := rand.New(rand.NewPCG(13, 17))
	for i, real := range []dag.DType{dag.Float32, dag.Float64, dag.Float32, dag.Float64} {
		smoothing, weight := 0.25*float64(i/2), 1.0
		if i%2 > 0 {
			weight = 1.5 // rounds once more
		}
		build := func(op string, shapes [][]int, params dag.Params) *kerneltest.Case {
			k, _ := kernels.KernelByName(op)
			return kerneltest.New(k, real, shapes, kerneltest.FirstModes(k), params, 1)
		}
		train := build("softmax_xent", [][]int{{n, c}, {n}, {n}, {n, c}, {n}, {1}}, kerneltest.LossParams(batch, smoothing))
		train.Fill(rng)
		train.Set(4, func(j int) float64 { return float64(2*j - 1) }) // the first row has no label
		train.Set(5, func(int) float64 { return weight })
		train.Set(3, func(int) float64 { return 20*rng.Float64() - 40 }) // all below 0
		z, y := train.Values(3), train.Values(4)
		eval := build("softmax_xent.eval", [][]int{{n}, {n}, {n, c}, {n}, {1}}, kerneltest.SmoothingParams(smoothing))
		eval.Set(4, func(int) float64 { return weight })
		eval.Set(2, func(j int) float64 { return z[j] })
		eval.Set(3, func(j int) float64 { return y[j] })
		for _, s := range []*kerneltest.Case{train, eval} {
			s.Run(&s.Kernel.Variants[0])
		}
		u := kerneltest.UnitRoundoff(real)
		gamma := c * u / (1 - c*u)
		for row := range n {
			of, class := z[row*c:][:c], int(y[row])
			if class < 0 {
				if slices.ContainsFunc(train.Values(0)[:c], func(v float64) bool { return v != 0 }) || train.Values(1)[0] != 0 || eval.Values(0)[0] != 0 || train.Values(2)[0] != 0 {
					t.Errorf("%v: a row without a label has the gradient %v, or a loss", real, train.Values(0)[:c])
				}
				continue
			}
			m, sum, all := slices.Max(of), 0.0, 0.0
			for _, v := range of {
				sum += math.Exp(v - m)
				all += v - m
			}
			for k, v := range of {
				p, target := math.Exp(v-m)/sum, smoothing/c
				if k == class {
					target += 1 - smoothing
				}
				if got, want := train.Values(0)[row*c+k], weight*(p-target)/batch; math.Abs(got-want) > 2*weight*(gamma+9*u)*(p+1)/batch {
					t.Errorf("%v: dz[%d,%d] is %g, want %g", real, row, k, got, want)
				}
			}
			want := weight * (math.Log(sum) - (1-smoothing)*(of[class]-m) - smoothing/c*all)
			bound := 2 * weight * (gamma + 5*u*(math.Log(sum)+math.Abs(of[class]-m)) + smoothing*gamma*math.Abs(all))
			if got := train.Values(1)[row]; math.Abs(got-want) > bound || got != eval.Values(0)[row] {
				t.Errorf("%v: loss[%d] is %g in training, %g in evaluation, want %g", real, row, got, eval.Values(0)[row], want)
			}
			hit := 0.0
			if of[class] == m {
				hit = 1
			}
			if a, b := train.Values(2)[row], eval.Values(1)[row]; a != hit || b != hit {
				t.Errorf("%v: correct[%d] is %g in training, %g in evaluation, want %g", real, row, a, b, hit)
			}
		}
	}
}
