package simd

import "unsafe"

// columnArgs is one call of the assembly. The order of the fields is known to
// gen/columns.go.
type columnArgs struct {
	sums, x   unsafe.Pointer
	rows, row int // row in bytes
	mask      uintptr
}

var (
	columnSums  = forms[columnArgs]{AVX2: {columnSumsAVX2F32, columnSumsAVX2F64}, AVX512: {columnSumsAVX512F32, columnSumsAVX512F64}}
	columnSums8 = forms[columnArgs]{AVX2: {columnSums8AVX2F32, columnSums8AVX2F64}, AVX512: {columnSums8AVX512F32, columnSums8AVX512F64}}
)

// addRowsVectors adds eight vectors of columns at a time, then one, then the rest.
func addRowsVectors[T Float](l Level, sums, x []T, rows, row int) bool {
	size := size(sums)
	lanes := l.bytes() / size
	for j := 0; j < len(sums); {
		a := columnArgs{pointer(sums[j:]), pointer(x[j:]), rows, row * size, 0}
		if left := len(sums) - j; left >= 8*lanes {
			columnSums8.call(l, size, &a)
			j += 8 * lanes
		} else {
			a.mask = l.mask(min(left, lanes), size)
			columnSums.call(l, size, &a)
			j += lanes
		}
	}
	return true
}
