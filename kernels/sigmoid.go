package kernels

import (
	"math"

	"dahl/kernels/simd"
)

// The second derivative is y(1-y)|1-2y| in size, the greatest at y = (1 ± 1/√3)/2.
var sigmoid = Function{
	vectors: simd.Sigmoid, Name: "sigmoid", Doc: "1/(1 + exp(-x))", Flops: 6,
	Value:    func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) },
	Slope:    func(y, _ float64) float64 { return y * (1 - y) },
	OfOutput: true,
	Steepest: 0.25, Bend: 0.097, // 1/(6√3)
	AtZero: 0.5,
}
