package simd

import (
	"math"
	"unsafe"
)

// Function is one of the functions of kernels.Functions that have assembly.
type Function uint8

// The functions.
const (
	Tanh Function = iota
	Sigmoid
	GELU
	GELUTanh
	SiLU
	LeakyReLU
)

// Values computes y = f(x), and Gradients dx = dy·f', of x or of y as kernels has it, in float64 with one rounding
// to the type at the end. The first operand is as long as the last at least. The level must have assembly.
//
// Exponentials, and e^x - 1 in tanh, err by 3 units of 2⁻⁵³ before, see [Softmax]. GELU's distribution is
// computed as by normal in cuda/device_math.h, with the same polynomial.
func Values[T Float](f Function, l Level, y, x []T, setting float64) {
	y = y[:len(x)]
	function(functions[f][0], l, setting, len(x), size(x), pointer(y), pointer(x), nil)
}

// Gradients is described at [Values].
func Gradients[T Float](f Function, l Level, dx, dy, v []T, setting float64) {
	dx, dy = dx[:len(v)], dy[:len(v)]
	function(functions[f][1], l, setting, len(v), size(v), pointer(dx), pointer(dy), pointer(v))
}

// functions are the loops of values and of gradients.
var functions = [...][2]*forms[runArgs]{
	Tanh: {&tanh, &tanhGradient}, Sigmoid: {&sigmoid, &sigmoidGradient}, LeakyReLU: {&leakyReLU, &leakyReLUGradient},
	GELU: {&gelu, &geluGradient}, GELUTanh: {&geluTanh, &geluTanhGradient},
	SiLU: {&silu, &siluGradient},
}

func function(loop *forms[runArgs], l Level, setting float64, n, size int, operands ...unsafe.Pointer) {
	a := runArgs{operands: [4]unsafe.Pointer{operands[0], operands[1], operands[2], pointer(constants[0][:])}}
	a.scalars[0] = bits(setting)
	if !a.run(loop, l, n, size) {
		panic("simd: no vector instructions")
	}
}

// constants are the numbers that gen/exponential.go names, each as often as a vector holds, beginning with the
// exponential's. Below the first argument it is 0. Adding and subtracting the third rounds to an
// integer. The seventh also adds the bias of the exponent. ln 2 is split as in math.Exp: its first
// part is so short that n times it is exact.
var constants = repeated(
	-1000, 1.44269504088896338700e+00, 0x1.8p52, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
	0.5, 0x1.8p52+1023,
	1./6227020800, 1./479001600, 1./39916800, 1./3628800, 1./362880, 1./40320,
	1./5040, 1./720, 1./120, 1./24, 1./6, 1./2, 1, 1,
	math.Float64frombits(1<<63-1), math.Copysign(0, -1), -2, 2, -40, -0.5, // of tanh: beyond 20 it is 1
	45, 4.75, 0.3989422804014327, // of gelu: beyond 45 all is 0; 1/√(2π)
	1.5957691216057308, 0.044715, 3*0.044715, // of gelu_tanh: √(8/π)
	8.02692383659546545e-11, 3.10293588197502994e-11, -9.14006904905313963e-10, -1.3400325244933275e-10,
	6.20983304235919698e-9, -7.6255286604914098e-10, -3.65551092659730151e-8, 1.13399860818554285e-8,
	2.20640533243248467e-7, -5.41684607488082239e-8, -1.45412628474906212e-6, -3.50888064429132424e-7,
	0.0000101702469601356155, 0.0000137004114405813615, -0.0000620692269082716788, -0.000239520604293310617,
	-0.0000223779457750819623, 0.00240855625426385574, 0.0106555433933915036, 0.0290790267434043964,
	0.059828319984772468, 0.0993817576849339959, 0.137597753959542257, 0.161350798345098726,
)

func repeated(once ...float64) [][8]float64 {
	vectors := make([][8]float64, len(once))
	for i, v := range once {
		for j := range vectors[i] {
			vectors[i][j] = v
		}
	}
	return vectors
}
