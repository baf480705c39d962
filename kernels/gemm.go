package kernels

import "unsafe"

// The "go" variants of convolutions and of the gradients of dense layers are one
// matrix product,
//
//	C[m,n] += Σ_k A[m,k]·B[k,n]      C, B: rows contiguous; A: any two strides
//
// computed as rank-4 updates of two rows of C at a time: per element of C eight
// multiplications and additions for six loads and two stores, with the eight
// coefficients of A in registers. A 4×4 tile of C in registers, the usual choice,
// spills on amd64, where Go has 15 scalar float registers, and runs at half speed.
//
// Every element of C adds its products in the order of k, one by one, whatever the
// blocks, so its bits do not depend on its neighbours.

// Blocks of B of blockRows×blockColumns elements (64 or 128 KB) stay in the L2
// cache while all rows of C pass over them; two rows of C stay in L1.
const (
	blockRows    = 64
	blockColumns = 256
)

// matrix is a block of a larger row-major matrix, or of its transpose.
type matrix[T Element] struct {
	elems       []T
	row, column int // distance between neighbours in a column, in a row
}

// addProduct adds A·B to C, for C of m×n and B of k×n. Columns of C and B are
// contiguous (column stride 1).
func addProduct[T Float](c, a, b matrix[T], m, k, n int) {
	for j := 0; j < n; j += blockColumns {
		width := min(blockColumns, n-j)
		for p := 0; p < k; p += blockRows {
			depth := min(blockRows, k-p)
			block := b.elems[p*b.row+j:]
			i := 0
			for ; i+2 <= m; i += 2 {
				at := i*c.row + j
				c0, c1 := c.elems[at:at+width], c.elems[at+c.row:at+c.row+width]
				addRows2(c0, c1, a.elems[i*a.row+p*a.column:], a.row, a.column, block, b.row, depth)
			}
			if i < m {
				at := i*c.row + j
				addRows1(c.elems[at:at+width], a.elems[i*a.row+p*a.column:], a.column, block, b.row, depth)
			}
		}
	}
}

// addRows2 adds Σ_p a[p·column]·b[p·stride:] to c0 and the same with the next row
// of a to c1.
func addRows2[T Float](c0, c1, a []T, row, column int, b []T, stride, depth int) {
	n := len(c0)
	c1 = c1[:n]
	p := 0
	for ; p+4 <= depth; p += 4 {
		at := p * column
		a00, a01, a02, a03 := a[at], a[at+column], a[at+2*column], a[at+3*column]
		at += row
		a10, a11, a12, a13 := a[at], a[at+column], a[at+2*column], a[at+3*column]
		at = p * stride
		b0, b1 := b[at:at+n], b[at+stride:at+stride+n]
		at += 2 * stride
		b2, b3 := b[at:at+n], b[at+stride:at+stride+n]
		for j := range c0 {
			s, t := c0[j], c1[j]
			x := b0[j]
			s += a00 * x
			t += a10 * x
			x = b1[j]
			s += a01 * x
			t += a11 * x
			x = b2[j]
			s += a02 * x
			t += a12 * x
			x = b3[j]
			s += a03 * x
			t += a13 * x
			c0[j], c1[j] = s, t
		}
	}
	for ; p < depth; p++ {
		a0, a1 := a[p*column], a[p*column+row]
		bp := b[p*stride : p*stride+n]
		for j, x := range bp {
			c0[j] += a0 * x
			c1[j] += a1 * x
		}
	}
}

// addRows1 is addRows2 for one row.
func addRows1[T Float](c, a []T, column int, b []T, stride, depth int) {
	n := len(c)
	p := 0
	for ; p+4 <= depth; p += 4 {
		at := p * column
		a0, a1, a2, a3 := a[at], a[at+column], a[at+2*column], a[at+3*column]
		at = p * stride
		b0, b1 := b[at:at+n], b[at+stride:at+stride+n]
		at += 2 * stride
		b2, b3 := b[at:at+n], b[at+stride:at+stride+n]
		for j := range c {
			s := c[j]
			s += a0 * b0[j]
			s += a1 * b1[j]
			s += a2 * b2[j]
			s += a3 * b3[j]
			c[j] = s
		}
	}
	for ; p < depth; p++ {
		a0 := a[p*column]
		for j, x := range b[p*stride : p*stride+n] {
			c[j] += a0 * x
		}
	}
}

// scratch takes n elements off the front of a workspace.
func scratch[T Float](work []byte, n int) (taken []T, rest []byte) {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	front := work[:size]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(front))), n), work[size:]
}
