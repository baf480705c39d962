package simd

import "unsafe"

// columnArgs is one call of the assembly. The order of the fields is known to
// gen/columns.go.
type columnArgs struct {
	sums, x   unsafe.Pointer
	rows, row int // row in bytes
	mask      uintptr
}

// addRowsVectors adds eight vectors of columns at a time, then one, then the rest.
func addRowsVectors[T Float](l Level, sums, x []T, rows, row int) bool {
	size := size(sums)
	lanes := l.bytes() / size
	for j := 0; j < len(sums); {
		a := columnArgs{pointer(sums[j:]), pointer(x[j:]), rows, row * size, 0}
		if left := len(sums) - j; left >= 8*lanes {
			a.run8(l, size)
			j += 8 * lanes
		} else {
			a.mask = l.mask(min(left, lanes), size)
			a.run(l, size)
			j += lanes
		}
	}
	return true
}

func (a *columnArgs) run8(l Level, size int) {
	switch {
	case l == AVX512 && size == 4:
		columnSums8AVX512F32(a)
	case l == AVX512:
		columnSums8AVX512F64(a)
	case size == 4:
		columnSums8AVX2F32(a)
	default:
		columnSums8AVX2F64(a)
	}
}

func (a *columnArgs) run(l Level, size int) {
	switch {
	case l == AVX512 && size == 4:
		columnSumsAVX512F32(a)
	case l == AVX512:
		columnSumsAVX512F64(a)
	case size == 4:
		columnSumsAVX2F32(a)
	default:
		columnSumsAVX2F64(a)
	}
}
