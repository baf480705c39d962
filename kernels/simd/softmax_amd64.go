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
	constants   unsafe.Pointer
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
		batch: bits(s.Batch), one: bits(T(1)), keep: bits(s.Keep), share: bits(s.Share), constants: pointer(constants[0][:]),
	}
	if gradient {
		a.gradient = 1
	}
	softmaxes.call(l, size(block), &a)
}
