package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// MoveTo transposes matrices. Their rows are the innermost dimension among the layout's Rows, joined with the next
// ones as long as neither map has a gap, and their columns likewise. So a matrix is a sample
// of an image, whole or by its rows of pixels, or a channel of the windows of all filters.
func MoveTo[T calls.Float](level simd.Level, layout *calls.LayoutTiles, y, x calls.Map4[T]) {
	var in [4]int // strides in x along the dimensions of y
	for d, f := range layout.From {
		in[d] = x.Stride[f]
	}
	rest := y.Extent // 1 along the dimensions of the matrices
	row, rows := joined(layout.Rows, &y.Stride, &in, &rest)
	column, columns := joined(layout.Columns, &y.Stride, &in, &rest)
	t := simd.Transpose[T]{Rows: rows, Columns: columns, ToRow: y.Stride[column], FromRow: in[row], Flip: layout.Flipped}
	for i := range rest[0] {
		for j := range rest[1] {
			for k := range rest[2] {
				p, q := i, j
				if layout.Flipped {
					p, q = rest[0]-1-i, rest[1]-1-j
				}
				t.To, t.From = y.Elems[y.At(p, q, k, 0):], x.Elems[i*in[0]+j*in[1]+k*in[2]:]
				t.Run(level)
			}
		}
	}
}

// joined returns the last of some dimensions and its extent together with those around it that
// leave no gap in two maps of these strides. It leaves an extent of 1 of them in rest.
func joined(dims []int, y, x, rest *[4]int) (inner, extent int) {
	inner, extent = dims[len(dims)-1], 1
	for i := len(dims) - 1; i >= 0; i-- {
		d := dims[i]
		if y[d] != extent*y[inner] || x[d] != extent*x[inner] {
			break
		}
		extent *= rest[d]
		rest[d] = 1
	}
	return inner, extent
}
