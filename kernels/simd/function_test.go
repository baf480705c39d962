package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFunctions compares values and slopes over all magnitudes with package math. u is 2⁻⁵³, or 2⁻²⁴ in
// float32, and one rounding more. tanh and the sigmoid: 3u of the exponential, at most twice, and three operations
// in each. GELU: the exponential with its correction 5u, its quotient 24u (see kerneltest/function.go), and 2x²u in
// the reference, whose argument has two roundings. gelu_tanh: v = √(8/π)·(x + 0.044715·x³) with six roundings in
// each, by which the sigmoid errs |v|-fold. The slopes err by as much and some operations, of which each term counts
// by its size. An exponential below the normal numbers errs by half of the smallest number. Products by x, and by x·v'
// in the slope of gelu_tanh, make at most 2200 halves of it before the exponential is 0, below e⁻⁷⁴⁵.
func TestFunctions(t *testing.T) {
	t.Run("float32", testFunctions[float32])
	t.Run("float64", testFunctions[float64])
}

// sized is a number, and the sum of the sizes of the terms that it is made of.
type sized struct{ value, size float64 }

func cube(x float64) float64 { return math.Sqrt(8/math.Pi) * (x + 0.044715*x*x*x) }

func logistic(x float64) float64 { return math.Exp(min(x, 0)) / (1 + math.Exp(-math.Abs(x))) }

// sigmoidSlope is the slope of x·s(v(x)), in which 1 - s errs by as much as s.
func sigmoidSlope(x, v, dv float64) sized {
	s := logistic(v)
	return sized{s + x*s*(1-s)*dv, s * (1 + math.Abs(x)*dv)}
}

var functionTests = []struct {
	of    func(x float64) float64
	slope func(v float64) sized
	units func(x float64) float64
}{
	Tanh: {math.Tanh, func(y float64) sized { return sized{1 - y*y, 1 + y*y} }, func(float64) float64 { return 20 }},
	Sigmoid: {logistic, func(y float64) sized { return sized{y * (1 - y), math.Abs(y) * (1 + math.Abs(y))} },
		func(float64) float64 { return 12 }},
	GELU: {
		func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
		func(x float64) sized {
			below, rest := math.Erfc(-x/math.Sqrt2)/2, x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
			return sized{below + rest, below + math.Abs(rest)}
		},
		func(x float64) float64 { return 42 + 2*x*x },
	},
	GELUTanh: {
		func(x float64) float64 { return x * logistic(cube(x)) },
		func(x float64) sized { return sigmoidSlope(x, cube(x), math.Sqrt(8/math.Pi)*(1+3*0.044715*x*x)) },
		func(x float64) float64 { return 32 + 14*math.Abs(cube(x)) },
	},
	SiLU: {
		func(x float64) float64 { return x * logistic(x) },
		func(x float64) sized { return sigmoidSlope(x, x, 1) },
		func(float64) float64 { return 32 },
	},
	LeakyReLU: {
		func(x float64) float64 { return max(x, 0) + min(0.01*x, 0) },
		func(x float64) sized {
			if x > 0 {
				return sized{1, 1}
			}
			return sized{0.01, 0.01}
		},
		func(float64) float64 { return 1 },
	},
}

func testFunctions[T Float](t *testing.T) {
	xs := []T{0, T(math.Copysign(0, -1)), 1, -1, T(math.Inf(1)), T(math.NaN()), T(math.Inf(-1)), 20, -20, 45, -45, -1e30, 1e30}
	rng := rand.New(rand.NewPCG(37, 41))
	for range 3001 {
		xs = append(xs, T(math.Pow(10, 11*rng.Float64()-9)*float64(1-2*rng.IntN(2))))
	}
	for bits := uint64(0); bits < 1<<32; bits += 262147 { // 64 of each exponent of float32
		xs = append(xs, T(math.Float32frombits(uint32(bits))))
	}
	u, least := 0x1p-53, math.SmallestNonzeroFloat64
	if size(xs) == 4 {
		u, least = 0x1p-24, math.SmallestNonzeroFloat32
	}
	dy, y := make([]T, len(xs)), make([]T, len(xs))
	for i := range dy {
		dy[i] = 1
	}
	for f, c := range functionTests {
		for _, l := range supported() {
			if l == Go {
				continue
			}
			check := func(what string, want func(float64) sized) {
				for i, x := range xs {
					x, got := float64(x), float64(y[i])
					want := want(x)
					bound := math.Abs(want.size)*(c.units(x)+2)*u + 1100*least
					same := got == float64(T(want.value)) || math.IsNaN(got) && math.IsNaN(want.value)
					if !same && !(math.Abs(got-want.value) <= bound) {
						t.Fatalf("%v, %s of function %d at %g: %g, want %g, bound %g", l, what, f, x, got, want.value, bound)
					}
				}
			}
			Values(Function(f), l, y, xs, 0.01)
			check("value", func(x float64) sized { return sized{c.of(x), c.of(x)} })
			Gradients(Function(f), l, y, dy, xs, 0.01)
			check("slope", c.slope)
		}
	}
}
