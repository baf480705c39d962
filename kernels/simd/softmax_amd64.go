package simd

import "unsafe"

// softmaxArgs is one call of the assembly. The order of the fields is known to
// gen/softmax.go.
type softmaxArgs struct {
	block, rest unsafe.Pointer // vectors of classes, and behind them
	classes     int
	gradient    int
	batch, one  uint64
	keep, share uint64
	constants   *[21][8]float64
}

var softmaxes = forms[softmaxArgs]{AVX2: {softmaxAVX2F32, softmaxAVX2F64}, AVX512: {softmaxAVX512F32, softmaxAVX512F64}}

// SoftmaxRows is the number of rows of a block, 0 where there is no assembly.
func SoftmaxRows[T Float](l Level) int {
	if l == Go {
		return 0
	}
	return l.bytes() / size[T](nil)
}

func (s *Softmax[T]) run(l Level, block, rest []T, gradient bool) {
	a := softmaxArgs{
		block: pointer(block), rest: pointer(rest), classes: s.Classes,
		batch: bits(s.Batch), one: bits(T(1)), keep: bits(s.Keep), share: bits(s.Share), constants: &expConstants,
	}
	if gradient {
		a.gradient = 1
	}
	softmaxes.call(l, size(block), &a)
}

// expConstants are the constants of the exponential in gen/softmax.go. Below the first argument
// the exponential is 0. Adding and subtracting the third rounds to an integer. The seventh also
// adds the bias of the exponent. ln 2 is split as in math.Exp: its first part is so short that n
// times it is exact.
var expConstants = repeated([21]float64{
	-1000, 1.44269504088896338700e+00, 0x1.8p52, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
	0.5, 0x1.8p52 + 1023,
	1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
	1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1,
})

func repeated(once [21]float64) (vectors [21][8]float64) {
	for i, v := range once {
		for j := range vectors[i] {
			vectors[i][j] = v
		}
	}
	return vectors
}
