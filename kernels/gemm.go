package kernels

import (
	"unsafe"

	"dahl/kernels/simd"
)

// matrix is a block of a larger row-major matrix, or of its transpose.
type matrix[T Element] struct {
	elems       []T
	row, column int // distance between neighbours in a column, in a row
}

// addProduct adds A·B to C in plain Go, for C of m×n and B of k×n whose columns are
// contiguous (column distance 1). Every element of C adds its products in the order
// of k, one by one.
func addProduct[T Float](c, a, b matrix[T], m, k, n int) {
	if m == 0 || k == 0 || n == 0 {
		return // the window lies wholly in the padding
	}
	p := simd.Product[T]{
		M: m, N: n, K: k, Batch: 1, Accumulate: true,
		A: a.elems, ARow: a.row, AStep: a.column, B: b.elems, BRow: b.row, C: c.elems, CRow: c.row,
	}
	p.Run(simd.Go)
}

// scratch takes n elements off the front of a workspace.
func scratch[T Float](work []byte, n int) (taken []T, rest []byte) {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	front := work[:size]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(front))), n), work[size:]
}
