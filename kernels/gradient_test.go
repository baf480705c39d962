package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// gradientCases name each backward operation, its forward operation with shapes, and
// the step of the difference quotient. Extents are pairwise different primes where
// they are free.
var gradientCases = []struct {
	backward, forward string
	shapes            [][]int
	params            dag.Params
	step              float64
}{
	{"conv2d.nhwc.dx", "conv2d.nhwc", [][]int{{2, 6, 7, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}, {7}}, kerneltest.ConvReLUParams(1, 2, 0), 1},
	{"conv2d.nhwc.dw", "conv2d.nhwc", [][]int{{2, 6, 7, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}, {7}}, kerneltest.ConvReLUParams(1, 2, 0), 1},
	{"conv2d.nhwc.dx", "conv2d.nhwc", [][]int{{2, 13, 15, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}, {7}}, kerneltest.ConvReLUParams(2, 1, 0), 1},
	{"conv2d.nhwc.dw", "conv2d.nhwc", [][]int{{2, 13, 15, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}, {7}}, kerneltest.ConvReLUParams(2, 1, 0), 1},
	// Two groups, with taps two pixels apart: ⌊(11+2-5)/2⌋+1 = 5 rows and ⌊(13+2-5)/2⌋+1 = 6 columns.
	{"conv2d.nhwc.dx", "conv2d.nhwc", [][]int{{2, 5, 6, 6}, {2, 11, 13, 10}, {3, 3, 5, 6}, {6}}, append(kerneltest.ConvReLUParams(1, 2, 0), grouped...), 1},
	{"conv2d.nhwc.dw", "conv2d.nhwc", [][]int{{2, 5, 6, 6}, {2, 11, 13, 10}, {3, 3, 5, 6}, {6}}, append(kerneltest.ConvReLUParams(1, 2, 0), grouped...), 1},
	// Depthwise.
	{"conv2d.nhwc.dx", "conv2d.nhwc", [][]int{{2, 5, 6, 2}, {2, 11, 13, 2}, {3, 3, 1, 2}, {2}}, append(kerneltest.ConvReLUParams(1, 2, 0), grouped...), 1},
	{"conv2d.nhwc.dw", "conv2d.nhwc", [][]int{{2, 5, 6, 2}, {2, 11, 13, 2}, {3, 3, 1, 2}, {2}}, append(kerneltest.ConvReLUParams(1, 2, 0), grouped...), 1},
	{"dense.dx", "dense", [][]int{{2, 5}, {2, 7}, {5, 7}, {5}}, nil, 1},
	{"dense.dw", "dense", [][]int{{2, 5}, {2, 7}, {5, 7}, {5}}, nil, 1},
	{"avgpool.nhwc.dx", "avgpool.nhwc", [][]int{{2, 5, 6, 5}, {2, 11, 13, 5}}, kerneltest.PoolParams(3, 2), 1},
	{"relu.dx", "relu", [][]int{{3, 5, 7}, {3, 5, 7}, {3, 5, 7}}, nil, 0x1p-6},
	{"maxpool.nhwc.dx", "maxpool.nhwc", [][]int{{2, 5, 6, 5}, {2, 5, 6, 5}, {2, 11, 13, 5}}, kerneltest.PoolParams(3, 2), 0x1p-6},
	{"maxpool.nhwc.dx", "maxpool.nhwc", [][]int{{2, 5, 6, 5}, {2, 5, 6, 5}, {2, 11, 13, 5}}, kerneltest.PoolParams(2, 2), 0x1p-6},
}

var grouped = dag.Params{{Name: "dilation", Value: 2}, {Name: "groups", Value: 2}}

// TestGradientsAgainstDifferences compares every backward operation with the central
// difference (L(x+h)-L(x-h))/2h of L = Σ r·y for random r, in float64.
//
// In each input by itself these operations are linear (convolution, dense, average)
// or, on both sides of x and no further than h from it, linear because the inputs of
// ReLU and maximum are at least 0.05 from 0 and 0.1 from each other and h = 1/64. So
// the quotient has no truncation error at any h. What remains is rounding: L is a
// sum of N products with an error of at most γ_N·S, S = Σ|r|·|y| computed on absolute
// values, so the quotient errs by γ_N·S/h. N counts products within y, outputs, and
// four more for x±h, the bias, the subtraction and the division.
func TestGradientsAgainstDifferences(t *testing.T) {
	for _, c := range gradientCases {
		rng := rand.New(rand.NewPCG(3, 5))
		forward, _ := kernels.KernelByName(c.forward)
		f := kerneltest.New(forward, dag.Float64, c.shapes, kerneltest.FirstModes(forward), c.params, 1)
		must.Do(t, kernels.Validate(&f.Spec))
		f.Fill(rng)
		spreadOut(f, rng)
		r := make([]float64, len(f.Values(0)))
		for j := range r {
			r[j] = 2*rng.Float64() - 1
		}
		f.Run(&forward.Variants[0])
		backward, _ := kernels.KernelByName(c.backward)
		b := backwardOf(f, backward, r)
		for v := range backward.Variants {
			if !b.Runs(&backward.Variants[v]) {
				continue
			}
			b.Run(&backward.Variants[v])
			for i, o := range backward.Operands {
				if o.Modes[0] != dag.Read {
					compareWithDifferences(t, f, b.Values(i), o.Name[1:], r, c.step, backward.Variants[v].Name)
				}
			}
		}
	}
}

// spreadOut puts the inputs of operations with kinks at (p+½)/10 for different
// integers p.
//
// The input of a channels-last convolution is made positive, where the gradient is that
// of the ReLU before it, too.
func spreadOut(s *kerneltest.Case, rng *rand.Rand) {
	if s.Kernel.Op == "conv2d.nhwc" {
		x := s.Values(1)
		s.Set(1, func(j int) float64 { return math.Abs(x[j]) })
	}
	if s.Kernel.Op != "relu" && s.Kernel.Op != "maxpool.nhwc" {
		return
	}
	n := len(s.Values(2))
	perm := rng.Perm(n)
	s.Set(2, func(j int) float64 { return (float64(perm[j]-n/2) + 0.5) / 10 })
}

// backwardOf builds the call of a backward operation: dy is r, operands that the
// forward call has too are copied from it, and dX has the shape of its X.
func backwardOf(f *kerneltest.Case, k *kernels.Kernel, r []float64) *kerneltest.Case {
	var shapes [][]int
	from := make([]int, len(k.Operands))
	for i, o := range k.Operands {
		if o.Name == "wt" {
			from[i] = f.Operand("w")
			w := f.Spec.Operands[from[i]].Shape
			shapes = append(shapes, []int{w[0], w[1], w[3], w[2]})
			continue
		}
		from[i] = f.Operand(o.Name)
		if from[i] < 0 {
			from[i] = f.Operand(o.Name[1:])
		}
		shapes = append(shapes, f.Spec.Operands[from[i]].Shape)
	}
	b := kerneltest.New(k, dag.Float64, shapes, kerneltest.FirstModes(k), f.Spec.Params, 1)
	for i, o := range k.Operands {
		values := f.Values(from[i])
		switch o.Name {
		case "dy":
			values = r
		case "wt":
			values = turnRound(values, shapes[i])
		}
		b.Set(i, func(j int) float64 { return values[j] })
	}
	return b
}

// turnRound returns filters K×K×C×F as K×K×F×C, turned round, in the given shape.
func turnRound(w []float64, shape []int) []float64 {
	var out []float64
	k, filters, channels := shape[0], shape[2], shape[3]
	for at := k*k - 1; at >= 0; at-- {
		for f := range filters {
			for c := range channels {
				out = append(out, w[(at*channels+c)*filters+f])
			}
		}
	}
	return out
}

// compareWithDifferences checks up to 60 elements of the gradient with respect to
// the forward operand called name.
func compareWithDifferences(t *testing.T, f *kerneltest.Case, gradient []float64, name string, r []float64, h float64, variant string) {
	t.Helper()
	i := f.Operand(name)
	ref := &f.Kernel.Variants[0]
	loss := func(s *kerneltest.Case) float64 {
		s.Run(ref)
		sum := 0.0
		for j, y := range s.Values(0) {
			sum += r[j] * y
		}
		return sum
	}
	shifted := func(j int, by float64) float64 {
		s := f.Clone()
		x := f.Values(i)
		x[j] += by
		s.Set(i, func(j int) float64 { return x[j] })
		return loss(s)
	}
	m := f.Magnitudes()
	x := m.Values(i)
	m.Set(i, func(j int) float64 { return x[j] + h })
	m.Run(ref)
	magnitude := 0.0
	for j, y := range m.Values(0) {
		magnitude += math.Abs(r[j]) * y
	}
	n := float64(kerneltest.Terms(f)+len(r)+4) * kerneltest.UnitRoundoff(dag.Float64)
	bound := n / (1 - n) * magnitude / h
	for j := 0; j < len(gradient); j += 1 + len(gradient)/60 {
		want := (shifted(j, h) - shifted(j, -h)) / (2 * h)
		if !(math.Abs(gradient[j]-want) <= bound) {
			t.Fatalf("%s %s: d/d%s[%d] is %g, the difference quotient %g, bound %g",
				f.Kernel.Op, variant, name, j, gradient[j], want, bound)
		}
	}
}

// TestLossGradients compares losses of one kernel with the central difference of the mean
// loss. The cross-entropy of a sample is log Σ exp(z) and a linear function; with p the softmax its third
// derivative is p(1-p)(1-2p), at most 1/(6√3) < 0.1 in size, so the quotient's
// truncation error is at most h²/6·0.1/B. A loss of c classes with |z| ≤ 1 is below
// log c + 2 ≤ 5 and errs by at most 2c+10 roundings of numbers below that (c
// exponentials within 1 ulp and their sum, log, two subtractions), so the quotient by
// (2c+10)·u·5/h/B. h = 2⁻¹³. Label smoothing adds c differences of at most 2, and their mean. The
// squared error has no third derivative, and is the mean of c squares of at most 4.
func TestLossGradients(t *testing.T) {
	for op, smoothing := range map[string][]float64{"softmax_xent": {0, 0.25}, "mse": {0}} {
		for _, s := range smoothing {
			t.Run(fmt.Sprint(op, s), func(t *testing.T) { checkLossGradient(t, op, s) })
		}
	}
}

func checkLossGradient(t *testing.T, op string, smoothing float64) {
	const n, c, batch, h = 3, 7, 5, 0x1p-13
	fused, _ := kernels.KernelByName(op)
	shapes := [][]int{{n, c}, {n}, {n}, {n, c}, {n}}
	s := kerneltest.New(fused, dag.Float64, shapes, kerneltest.FirstModes(fused), kerneltest.LossParams(batch, smoothing), 1)
	s.Fill(rand.New(rand.NewPCG(7, 11)))
	total := func(j int, by float64) float64 {
		moved := s.Clone()
		z := s.Values(3)
		z[j] += by
		moved.Set(3, func(j int) float64 { return z[j] })
		moved.Run(&fused.Variants[0])
		sum := 0.0
		for _, l := range moved.Values(1) {
			sum += l
		}
		return sum / batch
	}
	bound := (h*h/60 + (3*c+12)*0x1p-53*5*n/h) / batch
	s.Run(&fused.Variants[0])
	for j, got := range s.Values(0) {
		want := (total(j, h) - total(j, -h)) / (2 * h)
		if !(math.Abs(got-want) <= bound) {
			t.Errorf("dz[%d] is %g, the difference quotient %g, bound %g", j, got, want, bound)
		}
	}
}
