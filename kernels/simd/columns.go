package simd

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
	if l != Go && addRowsVectors(l, sums, x, rows, row) {
		return
	}
	for i := range rows {
		for j, v := range x[i*row:][:len(sums)] {
			sums[j] += v
		}
	}
}
