package kernels

import "dahl/kernels/simd"

// The slope at 0 is that below it, as in PyTorch. Maas, Hannun and Ng, "Rectifier nonlinearities
// improve neural network acoustic models", 2013.
var leakyReLU = Function{
	vectors: simd.LeakyReLU, Name: "leaky_relu", Doc: "x above 0, slope·x below", Flops: 2,
	Setting: "slope", Default: 0.01, Most: 1,
	Value: func(x, slope float64) float64 {
		if x > 0 {
			return x
		}
		return slope * x
	},
	Slope: func(x, slope float64) float64 {
		if x > 0 {
			return 1
		}
		return slope
	},
	Steepest: 1,
}
