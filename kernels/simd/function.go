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

// Values computes y = f(x), and Gradients dx = dy·f', of x or of y as kernels has it, in the elements' type.
// The first operand is as long as the last at least. The level must have assembly.
//
// Exponentials, and e^x - 1 in tanh, err by 3 units of 2⁻⁵³, or 2⁻²⁴ in float32, see [Softmax]. GELU's distribution
// is computed as by normal in cuda/device_math.h, with the same polynomial in float64.
func Values[T Float](f Function, l Level, y, x []T, setting float64) {
	y = y[:len(x)]
	function(functions[f][0], l, bits(T(setting)), len(x), size(x), pointer(y), pointer(x), nil)
}

// Gradients is described at [Values].
func Gradients[T Float](f Function, l Level, dx, dy, v []T, setting float64) {
	dx, dy = dx[:len(v)], dy[:len(v)]
	function(functions[f][1], l, bits(T(setting)), len(v), size(v), pointer(dx), pointer(dy), pointer(v))
}

// functions are the loops of values and of gradients.
var functions = [...][2]*forms[runArgs]{
	Tanh: {&tanh, &tanhGradient}, Sigmoid: {&sigmoid, &sigmoidGradient}, LeakyReLU: {&leakyReLU, &leakyReLUGradient},
	GELU: {&gelu, &geluGradient}, GELUTanh: {&geluTanh, &geluTanhGradient},
	SiLU: {&silu, &siluGradient},
}

func function(loop *forms[runArgs], l Level, setting uint64, n, size int, operands ...unsafe.Pointer) {
	a := runArgs{operands: [4]unsafe.Pointer{operands[0], operands[1], operands[2], pointer(constants)}}
	if size == 4 {
		a.operands[3] = pointer(singles)
	}
	a.scalars[0] = setting
	if !a.run(loop, l, n, size) {
		panic("simd: no vector instructions")
	}
}

// constants and singles are the numbers that gen/exponential.go names, of float64 and of float32. Below the floor
// e^x is 0. Adding and subtracting round, 1.5 times the power of 2 above which numbers have no fractions, rounds
// to an integer. With the bias of the exponent it also adds that. ln 2 is split as in math.Exp, and for float32
// as in expf of Cephes: its first part is so short that n times it is exact. Beyond most, Φ(-x) is 0.
//
// The polynomial for GELU, in s = 2t-1 with t = scale/(x+scale), is e^(x²/2)·Φ(-x)/t. For float32 its largest
// relative error from x = 0 to 15 is the least of degree 9, found by Lawson's iteration: 0.32 units of 2⁻²⁴
// with the coefficients rounded.
var (
	constants = functionNumbers{-1000, 0x1.8p52, [2]float64{6.93147180369123816490e-01, 1.90821492927058770002e-10}, 1023, 45, 4.75, []float64{
		8.02692383659546545e-11, 3.10293588197502994e-11, -9.14006904905313963e-10, -1.3400325244933275e-10,
		6.20983304235919698e-9, -7.6255286604914098e-10, -3.65551092659730151e-8, 1.13399860818554285e-8,
		2.20640533243248467e-7, -5.41684607488082239e-8, -1.45412628474906212e-6, -3.50888064429132424e-7,
		0.0000101702469601356155, 0.0000137004114405813615, -0.0000620692269082716788, -0.000239520604293310617,
		-0.0000223779457750819623, 0.00240855625426385574, 0.0106555433933915036, 0.0290790267434043964,
		0.059828319984772468, 0.0993817576849339959, 0.137597753959542257, 0.161350798345098726,
	}}.vectors()
	singles = narrowed(functionNumbers{-120, 0x1.8p23, [2]float64{0.693359375, -2.12194440e-4}, 127, 15, 3.5, []float64{
		-0.000031055137, 0.0001195207, 0.00014143978, -0.00090652227, -0.0018553506,
		0.0049730917, 0.03315805, 0.090121455, 0.16158907, 0.21269031,
	}}.vectors())
)

// functionNumbers are the constants that depend on the type.
type functionNumbers struct {
	floor, round float64
	ln2          [2]float64
	bias         float64
	most, scale  float64
	normal       []float64
}

// vectors is every constant 8 times, and narrowed is that 16 times in float32.
func (n functionNumbers) vectors() (vectors []float64) {
	once := append([]float64{
		n.floor, 1.44269504088896338700e+00, n.round, n.ln2[0], n.ln2[1], 0.5, n.round + n.bias,
		1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
		1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1,
		math.Float64frombits(1<<63 - 1), math.Copysign(0, -1), -2, 2, -40, -0.5, // of tanh: beyond 20 it is 1
		n.most, n.scale, 0.3989422804014327, // of gelu: 1/√(2π)
		1.5957691216057308, 0.044715, 3 * 0.044715, n.most * n.most, // of gelu_tanh: √(8/π)
	}, n.normal...)
	for _, v := range once {
		vectors = append(vectors, v, v, v, v, v, v, v, v)
	}
	return vectors
}

func narrowed(vectors []float64) []float32 {
	singles := make([]float32, 2*len(vectors))
	for i := range singles {
		singles[i] = float32(vectors[i/2])
	}
	return singles
}
