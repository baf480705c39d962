package simd

import "unsafe"

// ColumnSums computes sums[j] = Σ_{i<rows} x[i·row + j], j < len(sums), or adds that to sums. In
// a narrow matrix without gaps several rows are added as one, and their columns at the end.
// Otherwise a column is added from its first row to its last, starting from zero or from sums.
func ColumnSums[T Float](l Level, sums, x []T, rows, row int, accumulate bool) {
	n := len(sums)
	if n < 1 || rows < 1 || row < 0 || (rows-1)*row+n > len(x) {
		panic("simd: column sums of an empty matrix, or of one beyond its operand")
	}
	if !accumulate {
		clear(sums)
	}
	merged := mergedColumns / n
	if row != n || merged < 2 || rows < 2*merged {
		addRows(l, sums, x, rows, row)
		return
	}
	var parts [mergedColumns]T
	addRows(l, parts[:merged*n], x, rows/merged, merged*n)
	if left := rows % merged; left > 0 {
		addRows(l, parts[:n], x[(rows-left)*n:], left, n)
	}
	addRows(l, sums, parts[:merged*n], merged, n)
}

// mergedColumns is how many columns are added side by side: eight vectors of float32 with
// AVX-512, enough to hide the latency of an addition.
const mergedColumns = 128

// addRows adds the rows of a matrix to sums.
func addRows[T Float](l Level, sums, x []T, rows, row int) {
	if l != Go {
		addRowsVectors(l, sums, x, rows, row)
		return
	}
	for i := range rows {
		for j, v := range x[i*row:][:len(sums)] {
			sums[j] += v
		}
	}
}

// columnArgs is one call of the assembly. The order of the fields is known to
// gen/columns.go.
type columnArgs struct {
	sums, x   unsafe.Pointer
	rows, row int // row in bytes
	mask      uintptr
}

// addRowsVectors adds eight vectors of columns at a time, then one, then the rest.
func addRowsVectors[T Float](l Level, sums, x []T, rows, row int) {
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
}
