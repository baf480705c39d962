package kernels

import "math"

// With Φ and φ the distribution and the density of the standard normal, f' = Φ + xφ, and its
// derivative is φ·(2-x²). So f' is greatest at √2, and the derivative at 0. Hendrycks and Gimpel,
// "Gaussian error linear units (GELUs)", 2016.
var gelu = Function{
	Name: "gelu", Doc: "x·Φ(x), Φ the distribution of the standard normal", Flops: 12,
	Value: func(x, _ float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
	Slope: func(x, _ float64) float64 {
		density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
		return float64((1+math.Erf(x/math.Sqrt2))/2) + float64(x*density)
	},
	Steepest: 1.13, Bend: 0.8, // Φ(√2) + √2·φ(√2), 2φ(0)
}

// The approximation of the same paper: Φ(x) ≈ (1 + tanh(u))/2, u = √(2/π)·(x + 0.044715·x³).
var geluTanh = Function{
	Name: "gelu_tanh", Doc: "x·Φ(x) with a hyperbolic tangent in place of Φ, as PyTorch's approximate=\"tanh\"", Flops: 14,
	Value: func(x, _ float64) float64 {
		t, _ := geluTangent(x)
		return x / 2 * (1 + t)
	},
	Slope: func(x, _ float64) float64 {
		t, du := geluTangent(x)
		return float64((1+t)/2) + float64(x/2*(1-float64(t*t))*du)
	},
	Steepest: 1.13, Bend: 0.8,
}

// geluTangent is tanh(u) and the derivative of u.
func geluTangent(x float64) (t, du float64) {
	const a, b = 0.7978845608028654, 0.044715 // √(2/π)
	return math.Tanh(a * (x + float64(b*x*x*x))), a * (1 + float64(3*b*x*x))
}
