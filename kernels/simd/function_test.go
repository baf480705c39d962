package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFunctions compares values over all magnitudes with package math. u is 2⁻⁵³, and one rounding more
// of 2⁻²⁴ in float32. tanh and the sigmoid: 3u of the exponential, at most twice, and three operations in each.
// GELU: the exponential with its correction 5u, its quotient 24u (see kerneltest/function.go), and 2x²u in
// the reference, whose argument has two roundings. gelu_tanh: v = √(8/π)·(x + 0.044715·x³) with six roundings in
// each, by which the sigmoid errs |v|-fold.
func TestFunctions(t *testing.T) {
	t.Run("float32", testFunctions[float32])
	t.Run("float64", testFunctions[float64])
}

func testFunctions[T Float](t *testing.T) {
	xs := []T{0, 1, -1, T(math.Inf(1)), T(math.NaN()), T(math.Inf(-1)), 20, -20, 45, -45, -1e30, 1e30}
	rng := rand.New(rand.NewPCG(37, 41))
	for range 3001 {
		xs = append(xs, T(math.Pow(10, 11*rng.Float64()-9)*float64(1-2*rng.IntN(2))))
	}
	rounding, least := 0x1p-53, math.SmallestNonzeroFloat64
	if size(xs) == 4 {
		rounding, least = 0x1p-24, math.SmallestNonzeroFloat32
	}
	cube := func(x float64) float64 { return math.Sqrt(8/math.Pi) * (x + 0.044715*x*x*x) }
	for f, c := range []struct {
		of    func(x float64) float64
		units func(x float64) float64
	}{
		Tanh:    {math.Tanh, func(float64) float64 { return 20 }},
		Sigmoid: {func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, func(float64) float64 { return 12 }},
		GELU: {func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }, func(x float64) float64 {
			return 40 + 2*x*x
		}},
		GELUTanh: {func(x float64) float64 { return x / (1 + math.Exp(-cube(x))) }, func(x float64) float64 {
			return 16 + 14*math.Abs(cube(x))
		}},
		SiLU:      {func(x float64) float64 { return x / (1 + math.Exp(-x)) }, func(float64) float64 { return 14 }},
		LeakyReLU: {func(x float64) float64 { return max(x, 0) + min(0.01*x, 0) }, func(float64) float64 { return 1 }},
	} {
		for _, l := range supported() {
			if l == Go {
				continue
			}
			y := make([]T, len(xs))
			Values(Function(f), l, y, xs, 0.01)
			for i, x := range xs {
				want := c.of(float64(x))
				bound := math.Abs(want)*(c.units(float64(x))*0x1p-53+2*rounding) + 2*least
				if got := float64(y[i]); math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > bound && !math.IsInf(want, 0) || math.IsInf(want, 0) && got != want {
					t.Errorf("%v, function %d of %g: %g, want %g, bound %g", l, f, x, got, want, bound)
				}
			}
		}
	}
}
