package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
)

// Totals of a batch normalisation over some samples, so that devices that share a batch exchange some numbers per channel and none per sample. moments.total has three rows: the
// number of values, their sum and their squares around their mean,
//
//	r0 = P·N    r1 = Σ_n s_n    r2 = Σ_n (q_n + P·(s_n/P - r1/r0)²)
//
// Two totals a and b become one by the same equation for unlike numbers of values (Chan, Golub and LeVeque, 1983):
//
//	r0 = a0 + b0    r1 = a1 + b1    r2 = a2 + b2 + (b1/b0 - a1/a0)²·a0·b0/r0
//
// For batchnorm.stats and batchnorm.dw a total is the sums of one sample with all pixels.

var momentsTotal = Kernel{
	Op: "moments.total", Doc: "r0 = number of values, r1 = their sum, r2 = their squares around their mean, from the moments s, q of samples",
	Operands: []Operand{sums("r", "3 c").positive(), reads("s", Real, "n c"), reads("q", Real, "n c").positive()},
	Params:   []string{"pixels"}, Merge: "moments.merge", Check: checkPixels, Flops: perElement(6, 1),
	Variants: withRef("in float64, sample by sample", momentsTotalRef[float32], momentsTotalRef[float64],
		gpu.StatsOnCUDA("moments.total", gpu.MomentsTotalParams)),
}

var momentsMerge = Kernel{
	Op: "moments.merge", Doc: "r of the values of two calls of moments.total",
	Operands: []Operand{updates("r", "3 c").positive(), reads("r2", Real, "3 c").positive()},
	Flops:    perElement(4, 0),
	Variants: withRef("in float64", momentsMergeRef[float32], momentsMergeRef[float64],
		gpu.StatsOnCUDA("moments.merge", gpu.MomentsMergeParams)),
}

var batchNormTotal = Kernel{
	Op: "batchnorm.total", Doc: "r0 = Σ s, r1 = Σ q over samples",
	Operands: []Operand{sums("r", "2 c"), reads("s", Real, "n c"), reads("q", Real, "n c")},
	Flops:    perElement(2, 1),
	Variants: withRef("in float64, sample by sample", batchNormTotalRef[float32], batchNormTotalRef[float64],
		gpu.StatsOnCUDA("batchnorm.total", gpu.BatchNormTotalParams)),
}

// valuesTotal is the number, the sum and the squares around the mean of some values.
type valuesTotal struct{ count, sum, squares float64 }

func valuesTotalAt[T calls.Float](r *calls.Arg, c int) valuesTotal {
	return valuesTotal{float64(cpu.Row[T](r, 0)[c]), float64(cpu.Row[T](r, 1)[c]), float64(cpu.Row[T](r, 2)[c])}
}

func putValuesTotal[T calls.Float](r *calls.Arg, c int, v valuesTotal) {
	cpu.Row[T](r, 0)[c], cpu.Row[T](r, 1)[c], cpu.Row[T](r, 2)[c] = T(v.count), T(v.sum), T(v.squares)
}

// with is the total of the values of two.
func (a valuesTotal) with(b valuesTotal) valuesTotal {
	count, d := a.count+b.count, b.sum/b.count-a.sum/a.count
	return valuesTotal{count, a.sum + b.sum, a.squares + b.squares + float64(d*d)*a.count*b.count/count}
}

func momentsTotalRef[T calls.Float](call *calls.Call) {
	r, s, q, pixels := &call.Args[0], &call.Args[1], &call.Args[2], call.Params[0]
	for c := range cpu.Row[T](r, 0) {
		now := valuesTotal{count: pixels * float64(s.Shape[0]), sum: sumOfColumn[T](s, c)}
		mean := now.sum / now.count
		for n := range s.Shape[0] {
			now.squares += squaresAround[T](s, q, n, c, pixels, mean)
		}
		if r.Accumulates() {
			now = valuesTotalAt[T](r, c).with(now)
		}
		putValuesTotal[T](r, c, now)
	}
}

// squaresAround is the sum of the squares of a sample around a mean.
func squaresAround[T calls.Float](s, q *calls.Arg, n, c int, pixels, mean float64) float64 {
	d := float64(cpu.Row[T](s, n)[c])/pixels - mean
	return float64(cpu.Row[T](q, n)[c]) + float64(pixels*float64(d*d))
}

func momentsMergeRef[T calls.Float](call *calls.Call) {
	r := &call.Args[0]
	for c := range cpu.Row[T](r, 0) {
		putValuesTotal[T](r, c, valuesTotalAt[T](r, c).with(valuesTotalAt[T](&call.Args[1], c)))
	}
}

func batchNormTotalRef[T calls.Float](call *calls.Call) {
	r := &call.Args[0]
	for i, of := range call.Args[1:] {
		for c := range cpu.Row[T](r, i) {
			calls.Put(&cpu.Row[T](r, i)[c], T(sumOfColumn[T](&of, c)), r.Accumulates())
		}
	}
}
