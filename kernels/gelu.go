package kernels

import (
	"math"

	"dahl/kernels/simd"
)

// With Φ and φ the distribution and the density of the standard normal, f' = Φ + xφ, and its
// derivative is φ·(2-x²). So f' is greatest at √2, and the derivative at 0. Hendrycks and Gimpel,
// "Gaussian error linear units (GELUs)", 2016.
var gelu = Function{
	vectors: simd.GELU, Name: "gelu", Doc: "x·Φ(x), Φ the distribution of the standard normal", Flops: 12,
	Value: func(x, _ float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }, // 1 + erf would cancel
	Slope: func(x, _ float64) float64 {
		density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
		return float64(math.Erfc(-x/math.Sqrt2)/2) + float64(x*density)
	},
	Steepest: 1.13, Bend: 0.8, // Φ(√2) + √2·φ(√2), 2φ(0)
}

// The approximation of the same paper: Φ(x) ≈ (1 + tanh(u))/2, u = √(2/π)·(x + 0.044715·x³). That is
// the sigmoid s of v = 2u, and the derivative of s is s·(1-s)·v'.
var geluTanh = Function{
	vectors: simd.GELUTanh, Name: "gelu_tanh", Doc: "x·Φ(x) with a hyperbolic tangent in place of Φ, as PyTorch's approximate=\"tanh\"", Flops: 14,
	Value: func(x, _ float64) float64 {
		s, _ := geluSigmoid(x)
		return x * s
	},
	Slope: func(x, _ float64) float64 {
		s, dv := geluSigmoid(x)
		return s + float64(x*s*(1-s)*dv)
	},
	Steepest: 1.13, Bend: 0.8,
}

// geluSigmoid is s and the derivative of v.
func geluSigmoid(x float64) (s, dv float64) {
	const a, b = 1.5957691216057308, 0.044715 // √(8/π)
	return 1 / (1 + math.Exp(-a*(x+float64(b*x*x*x)))), a * (1 + float64(3*b*x*x))
}
