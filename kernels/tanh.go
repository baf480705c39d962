package kernels

import (
	"math"

	"dahl/kernels/simd"
)

// The second derivative is 2y(1-y²) in size, the greatest at y = 1/√3.
var tanh = Function{
	vectors: simd.Tanh, Name: "tanh", Doc: "hyperbolic tangent", Flops: 8,
	Value:    func(x, _ float64) float64 { return math.Tanh(x) },
	Slope:    func(y, _ float64) float64 { return 1 - float64(y*y) },
	OfOutput: true,
	Steepest: 1, Bend: 0.77, // 4/(3√3)
}
