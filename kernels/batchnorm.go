package kernels

import (
	"fmt"
	"math"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Batch normalisation (Ioffe and Szegedy, 2015, arXiv:1502.03167) as PyTorch's BatchNorm2d defines it. With
// N = samples · pixels, every channel by itself:
//
//	μ = Σ x / N    σ² = Σ (x - μ)² / N    y = γ·(x - μ)/√(σ² + eps) + β
//
//	running_mean ← (1-m)·running_mean + m·μ    running_var ← (1-m)·running_var + m·σ²·N/(N-1)
//
// Each sample is a part of the sums. moments gives the sum s of a sample and the sum q of the squares around the
// sample's own mean, in two passes while the sample is in a cache. batchnorm.stats adds these up in the order of
// the samples, by
//
//	Σ (x - μ)² = Σ_n (q_n + P·(s_n/P - μ)²)        for P pixels per sample
//
// (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983). So the bits of the
// statistics depend on no tiling, and large means cost no digits. What the passes over the activations need is
// in one small operand k of four rows:
//
//	k = μ, γ/√(σ² + eps), β, 1/√(σ² + eps)        y = (x - k0)·k1 + k2
//
// The gradient is, with g = dL/dy,
//
//	dβ = Σ g    dγ = k3·Σ g·(x - k0)    dx = k1·g + b·(x - k0) + e,
//
//	b = -k1·k3²·Σ g·(x - k0)/N    e = -k1·Σ g/N
//
// batchnorm.sums (or .gate) adds up g and g·(x - k0) by sample, batchnorm.dw adds these and gives k1, b, e as operand kd of
// three rows. A ReLU behind the normalisation keeps no mask: with relu = 1 the gradient is computed where
// (x - k0)·k1 + k2 > 0, as it was in the forward pass.
//
// All variants round each product and sum, in one order, so that their bits are equal.

// atPixels is the vector variants of an operation over images.
func atPixels(run32, run64 func(simd.Level, *calls.Call), workspace func(*calls.Spec) int64) []calls.Variant {
	return atLevels("pixel by pixel, a vector of channels at a time", run32, run64, workspace)
}

var moments = Kernel{
	Op: "moments.nhwc", Doc: "s = Σ x, q = Σ (x - s/pixels)² over the pixels of each sample",
	Operands: []Operand{writes("s", Real, "n c"), writes("q", Real, "n c"), reads("x", Real, "n h w c")},
	Flops:    perElement(4, 2),
	Variants: withRef("pixel by pixel", momentsRef[float32], momentsRef[float64],
		atPixels(cpu.MomentsAt[float32], cpu.MomentsAt[float64], cpu.ChannelWorkspace(2)),
		gpu.Moments),
}

var batchNorm = Kernel{
	Op: "batchnorm.nhwc", Doc: "y = (x - k0)·k1 + k2 [+ r], with relu = 1 its positive part",
	Operands: []Operand{
		writes("y", Real, "n h w c"), reads("x", Real, "n h w c"), reads("k", Real, "4 c"),
		optional(reads("r", Real, "n h w c")),
	},
	Params: []string{"relu"}, Check: checkFlag("relu"), Flops: perElement(4, 0),
	Variants: withRef("element by element", batchNormRef[float32], batchNormRef[float64],
		atPixels(cpu.BatchNormAt[float32], cpu.BatchNormAt[float64], nil),
		gpu.BatchNorm),
}

var batchNormSums = Kernel{
	Op: "batchnorm.sums.nhwc", Doc: "s = Σ dy, q = Σ dy·(x - k0) over the pixels of each sample, with relu = 1 where y > 0",
	Operands: []Operand{
		writes("s", Real, "n c"), writes("q", Real, "n c"),
		reads("dy", Real, "n h w c"), reads("x", Real, "n h w c"), reads("k", Real, "4 c"),
	},
	Params: []string{"relu"}, Check: checkFlag("relu"), Flops: perElement(4, 2),
	Variants: withRef("pixel by pixel", batchNormSumsRef[float32], batchNormSumsRef[float64],
		atPixels(cpu.BatchNormSumsAt[float32], cpu.BatchNormSumsAt[float64], nil),
		gpu.NormOnCUDA("batchnorm.sums", gpu.NormOperands{Images: []int{2, 3}, S: 0, Q: 1, K: 4, Kd: -1}, true)),
}

// batchNormGate is for a ReLU behind the sum of the normalised and another value, the gradient of both of which is g. It
// is kept, and what another reader of y adds to dy comes with it.
var batchNormGate = Kernel{
	Op: "batchnorm.gate.nhwc", Doc: "dy = dy [+ r] where y > 0, else 0; s = Σ dy, q = Σ dy·(x - k0) over the pixels of each sample",
	Operands: []Operand{
		writes("s", Real, "n c"), writes("q", Real, "n c"), updates("dy", "n h w c"),
		reads("y", Real, "n h w c"), reads("x", Real, "n h w c"), reads("k", Real, "4 c"), optional(reads("r", Real, "n h w c")),
	},
	Flops: perElement(5, 2),
	Variants: withRef("pixel by pixel", batchNormGateRef[float32], batchNormGateRef[float64],
		atPixels(cpu.BatchNormGateAt[float32], cpu.BatchNormGateAt[float64], nil),
		gpu.NormOnCUDA("batchnorm.gate", gpu.NormOperands{Images: []int{2, 3, 4, 6}, S: 0, Q: 1, K: 5, Kd: -1}, false)),
}

var batchNormDx = Kernel{
	Op: "batchnorm.dx.nhwc", Doc: "dx = kd0·dy + kd1·(x - k0) + kd2, with relu = 1 of dy where y > 0",
	Operands: []Operand{
		writes("dx", Real, "n h w c"), reads("dy", Real, "n h w c"), reads("x", Real, "n h w c"),
		reads("k", Real, "4 c"), reads("kd", Real, "3 c"),
	},
	Params: []string{"relu"}, Check: checkFlag("relu"), Flops: perElement(5, 0),
	Variants: withRef("element by element", batchNormDxRef[float32], batchNormDxRef[float64],
		atPixels(cpu.BatchNormDxAt[float32], cpu.BatchNormDxAt[float64], nil),
		gpu.NormOnCUDA("batchnorm.dx", gpu.NormOperands{Images: []int{0, 1, 2}, S: -1, Q: -1, K: 3, Kd: 4}, true)),
}

var batchNormStats = Kernel{
	Op: "batchnorm.stats", Doc: "k of batchnorm from the moments s, q of all samples; mean, variance and tracked are running",
	Operands: []Operand{
		writes("k", Real, "4 c"), updates("mean", "c"), updates("variance", "c"),
		{Name: "tracked", Kind: Wide, Dims: "1", Modes: []dag.Mode{dag.ReadWrite}},
		reads("s", Real, "n c"), reads("q", Real, "n c").positive(), reads("weight", Real, "c"), reads("bias", Real, "c"),
	},
	Params: []string{"pixels", "eps", "momentum"}, Whole: "n",
	Check: func(s *calls.Spec) error {
		if n := s.Param("pixels") * float64(s.Operands[4].Shape[0]); n < 2 {
			return fmt.Errorf("%g values per channel; a variance needs two", n)
		}
		return checkNormal(s)
	},
	Flops: perElement(6, 4),
	Variants: withRef("in float64, sample by sample", batchNormStatsRef[float32], batchNormStatsRef[float64],
		gpu.StatsOnCUDA("batchnorm.stats", gpu.BatchNormStatsParams)),
}

var batchNormRunning = Kernel{
	Op: "batchnorm.running", Doc: "k of batchnorm from the running mean and variance",
	Operands: []Operand{
		writes("k", Real, "4 c"), reads("mean", Real, "c"), reads("variance", Real, "c").positive(), reads("weight", Real, "c"), reads("bias", Real, "c"),
	},
	Params: []string{"eps"}, Check: checkNormal, Flops: perElement(4, 1),
	Variants: withRef("in float64", batchNormRunningRef[float32], batchNormRunningRef[float64],
		gpu.StatsOnCUDA("batchnorm.running", gpu.BatchNormRunningParams)),
}

var batchNormFold = Kernel{
	Op: "batchnorm.fold", Doc: "filters wk and biases bk of a channels-last convolution that also normalises by the running mean and variance",
	Operands: []Operand{
		writes("wk", Real, "i j c f"), writes("bk", Real, "f"), reads("w", Real, "f c i j"),
		reads("mean", Real, "f"), reads("variance", Real, "f").positive(), reads("weight", Real, "f"), reads("bias", Real, "f"), optional(reads("b", Real, "f")),
	},
	Params: []string{"eps"}, Whole: "i j c", Check: checkNormal, Flops: perElement(1, 0),
	Variants: withRef("filter by filter", batchNormFoldRef[float32], batchNormFoldRef[float64],
		gpu.OnCUDA("a tap of all channels of a filter per thread", gpu.FoldOnCUDA)),
}

var batchNormDw = Kernel{
	Op: "batchnorm.dw", Doc: "dw, db = gradients of weight and bias from the sums s, q of all samples, and kd of batchnorm.dx",
	Operands: []Operand{
		sums("dw", "c"), sums("db", "c"), writes("kd", Real, "3 c"),
		reads("s", Real, "n c"), reads("q", Real, "n c"), reads("k", Real, "4 c"),
	},
	Params: []string{"pixels"}, Whole: "n", Check: checkPixels,
	Flops: perElement(2, 3),
	Variants: withRef("in float64, sample by sample", batchNormDwRef[float32], batchNormDwRef[float64],
		gpu.StatsOnCUDA("batchnorm.dw", gpu.BatchNormDwParams)),
}

// checkFlag refuses a parameter other than 0 and 1.
func checkFlag(name string) func(*calls.Spec) error {
	return func(s *calls.Spec) error {
		_, err := intParam(s, name, 0, 1)
		return err
	}
}

// mostPixels is the largest number of values of a channel. float32 has all whole numbers up to it.
const mostPixels = 1 << 24

func checkPixels(s *calls.Spec) error {
	_, err := intParam(s, "pixels", 1, mostPixels)
	return err
}

// checkNormal checks the parameters of statistics, as far as there are.
func checkNormal(s *calls.Spec) error {
	if _, has := s.Params.Get("pixels"); has {
		if err := checkPixels(s); err != nil {
			return err
		}
	}
	if m, has := s.Params.Get("momentum"); has && !(m > 0 && m <= 1) {
		return fmt.Errorf("parameter momentum is %g, want more than 0 and at most 1", m)
	}
	return realParam(s, "eps", 0, math.Inf(1))
}

func momentsRef[T calls.Float](call *calls.Call) {
	x := pixelsOf[T](&call.Args[2])
	for n := range x.Extent[0] {
		s, q := cpu.Row[T](&call.Args[0], n), cpu.Row[T](&call.Args[1], n)
		for c := range s {
			s[c], q[c] = 0, 0
			x.EachPixel(n, c, func(at int) { s[c] += x.Elems[at] })
			mean := s[c] / T(x.Extent[2]*x.Extent[3])
			x.EachPixel(n, c, func(at int) {
				d := x.Elems[at] - mean
				q[c] += T(d * d)
			})
		}
	}
}

func batchNormRef[T calls.Float](call *calls.Call) {
	y, x, k := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1]), cpu.NormalisingOf[T](&call.Args[2])
	var r calls.Map4[T]
	if len(call.Args) > 3 {
		r = pixelsOf[T](&call.Args[3])
	}
	y.Each(func(n, c, h, w int) {
		v := k.Of(x.Elems[x.At(n, c, h, w)], c)
		if r.Elems != nil {
			v += r.Elems[r.At(n, c, h, w)]
		}
		if call.Params[0] == 1 && v < 0 {
			v = 0
		}
		y.Elems[y.At(n, c, h, w)] = v
	})
}

func batchNormSumsRef[T calls.Float](call *calls.Call) {
	dy, x, k := pixelsOf[T](&call.Args[2]), pixelsOf[T](&call.Args[3]), cpu.NormalisingOf[T](&call.Args[4])
	for n := range dy.Extent[0] {
		clear(cpu.Row[T](&call.Args[0], n))
		clear(cpu.Row[T](&call.Args[1], n))
	}
	dy.Each(func(n, c, h, w int) {
		v, g := x.Elems[x.At(n, c, h, w)], dy.Elems[dy.At(n, c, h, w)]
		if call.Params[0] == 0 || k.Of(v, c) > 0 {
			cpu.Row[T](&call.Args[0], n)[c] += g
			cpu.Row[T](&call.Args[1], n)[c] += T(g * (v - k.Mean[c]))
		}
	})
}

func batchNormGateRef[T calls.Float](call *calls.Call) {
	dy, y, x, k := calls.Map4Of[T](&call.Args[2]), calls.Map4Of[T](&call.Args[3]), calls.Map4Of[T](&call.Args[4]), cpu.NormalisingOf[T](&call.Args[5])
	for n := range dy.Extent[0] {
		clear(cpu.Row[T](&call.Args[0], n))
		clear(cpu.Row[T](&call.Args[1], n))
	}
	dy.Each(func(n, h, w, c int) {
		g := &dy.Elems[dy.At(n, h, w, c)]
		if len(call.Args) > 6 {
			r := calls.Map4Of[T](&call.Args[6])
			*g += r.Elems[r.At(n, h, w, c)]
		}
		if !(y.Elems[y.At(n, h, w, c)] > 0) {
			*g = 0
		}
		cpu.Row[T](&call.Args[0], n)[c] += *g
		cpu.Row[T](&call.Args[1], n)[c] += T(*g * (x.Elems[x.At(n, h, w, c)] - k.Mean[c]))
	})
}

func batchNormDxRef[T calls.Float](call *calls.Call) {
	dx, dy, x := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1]), pixelsOf[T](&call.Args[2])
	k, a, b, e := cpu.NormalisingOf[T](&call.Args[3]), cpu.Row[T](&call.Args[4], 0), cpu.Row[T](&call.Args[4], 1), cpu.Row[T](&call.Args[4], 2)
	dx.Each(func(n, c, h, w int) {
		v, g := x.Elems[x.At(n, c, h, w)], dy.Elems[dy.At(n, c, h, w)]
		if call.Params[0] == 1 && !(k.Of(v, c) > 0) {
			g = 0
		}
		dx.Elems[dx.At(n, c, h, w)] = T(a[c]*g) + T(b[c]*(v-k.Mean[c])) + e[c]
	})
}

func batchNormStatsRef[T calls.Float](call *calls.Call) {
	k, mean, variance := cpu.NormalisingOf[T](&call.Args[0]), calls.Data[T](&call.Args[1]), calls.Data[T](&call.Args[2])
	s, q, weight, bias := &call.Args[4], &call.Args[5], calls.Data[T](&call.Args[6]), calls.Data[T](&call.Args[7])
	pixels, eps, momentum := call.Params[0], call.Params[1], call.Params[2]
	count := pixels * float64(s.Shape[0])
	running := func(old *T, now float64) {
		*old = T(float64((1-momentum)*float64(*old)) + float64(momentum*now))
	}
	for c := range k.Mean {
		mu, squares := sumOfColumn[T](s, c)/count, 0.0
		for n := range s.Shape[0] {
			squares += squaresAround[T](s, q, n, c, pixels, mu)
		}
		k.Put(c, mu, 1/math.Sqrt(squares/count+eps), weight[c], bias[c])
		running(&mean[c], mu)
		running(&variance[c], squares/(count-1))
	}
	calls.Data[int64](&call.Args[3])[0]++
}

// sumOfColumn adds up a column of a matrix in float64.
func sumOfColumn[T calls.Float](a *calls.Arg, column int) (sum float64) {
	for n := range a.Shape[0] {
		sum += float64(cpu.Row[T](a, n)[column])
	}
	return sum
}

func batchNormRunningRef[T calls.Float](call *calls.Call) {
	k, mean, variance := cpu.NormalisingOf[T](&call.Args[0]), calls.Data[T](&call.Args[1]), calls.Data[T](&call.Args[2])
	weight, bias := calls.Data[T](&call.Args[3]), calls.Data[T](&call.Args[4])
	for c := range k.Mean {
		k.Put(c, float64(mean[c]), 1/math.Sqrt(float64(variance[c])+call.Params[0]), weight[c], bias[c])
	}
}

func batchNormFoldRef[T calls.Float](call *calls.Call) {
	to, from, shift := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[T](&call.Args[2]), calls.Data[T](&call.Args[1])
	mean, variance, weight, bias := calls.Data[T](&call.Args[3]), calls.Data[T](&call.Args[4]), calls.Data[T](&call.Args[5]), calls.Data[T](&call.Args[6])
	for f := range shift {
		scale := float64(weight[f]) / math.Sqrt(float64(variance[f])+call.Params[0])
		center := float64(mean[f])
		if len(call.Args) > 7 {
			center -= float64(calls.Data[T](&call.Args[7])[f])
		}
		shift[f] = T(float64(bias[f]) - float64(scale*center))
		for c := range from.Extent[1] {
			for i := range from.Extent[2] {
				for j := range from.Extent[3] {
					to.Elems[to.At(i, j, c, f)] = T(scale * float64(from.Elems[from.At(f, c, i, j)]))
				}
			}
		}
	}
}

func batchNormDwRef[T calls.Float](call *calls.Call) {
	dw, db, kd := &call.Args[0], &call.Args[1], &call.Args[2]
	k, count := cpu.NormalisingOf[T](&call.Args[5]), call.Params[0]*float64(call.Args[3].Shape[0])
	for c := range k.Mean {
		s, q := sumOfColumn[T](&call.Args[3], c), sumOfColumn[T](&call.Args[4], c)
		scale, inverse := float64(k.Scale[c]), float64(k.Inverse[c])
		calls.Put(&calls.Data[T](dw)[c], T(inverse*q), dw.Accumulates())
		calls.Put(&calls.Data[T](db)[c], T(s), db.Accumulates())
		cpu.Row[T](kd, 0)[c] = k.Scale[c]
		cpu.Row[T](kd, 1)[c] = T(-scale * inverse * inverse * q / count)
		cpu.Row[T](kd, 2)[c] = T(-scale * s / count)
	}
}

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
