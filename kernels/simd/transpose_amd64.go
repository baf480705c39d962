package simd

import "unsafe"

// transposeArgs is one call of the assembly. Distances are in bytes. The order of the
// fields is known to gen/transpose.go.
type transposeArgs struct {
	from, to           unsafe.Pointer
	_                  [2]int // fromAt, toAt: the assembly notes where the present block of rows begins
	fromRow, toRow     int
	columns            int // a multiple of those that 16 bytes hold
	blocks             int
	fromBlock, toBlock int // from a block of rows to the next
}

// transposes are by height, in units of 16 bytes.
var transposes = [...]forms[transposeArgs]{
	1: {AVX2: {transpose4AVX2F32, transpose2AVX2F64}, AVX512: {transpose4AVX2F32, transpose2AVX2F64}},
	2: {AVX2: {transpose8AVX2F32, transpose4AVX2F64}, AVX512: {transpose8AVX2F32, transpose4AVX2F64}},
	4: {AVX512: {transpose16AVX512F32, transpose8AVX512F64}},
}

// runVectors moves blocks with as many rows as a vector holds elements, and all columns that make
// 16 bytes. The last blocks of rows and columns overlap those before and move some elements
// twice. A matrix too small for that is left to Go.
func (t *Transpose[T]) runVectors(l Level) bool {
	size := size(t.From)
	side := 16 / size
	if t.Rows < side || t.Columns < side {
		return false
	}
	for i := 0; i < t.Rows; {
		height := side // of a block: one, two or four times side
		switch left := t.Rows - i; {
		case l == AVX512 && left >= 4*side:
			height = 4 * side
		case left >= 2*side:
			height = 2 * side
		}
		i = min(i, t.Rows-height)
		blocks, whole := (t.Rows-i)/height, t.Columns/side*side
		t.blocks(l, i, 0, whole, blocks, height)
		if whole < t.Columns {
			t.blocks(l, i, t.Columns-side, side, blocks, height)
		}
		i += blocks * height
	}
	return true
}

// blocks moves blocks of height rows from row i, and columns j to j+columns of them.
func (t *Transpose[T]) blocks(l Level, i, j, columns, blocks, height int) {
	size := size(t.From)
	a := transposeArgs{
		from: pointer(t.From[i*t.FromRow+j:]), to: pointer(t.To[t.row(j)*t.ToRow+i:]),
		fromRow: t.FromRow * size, toRow: t.ToRow * size, columns: columns,
		blocks: blocks, fromBlock: height * t.FromRow * size, toBlock: height * size,
	}
	if t.Flip {
		a.toRow = -a.toRow
	}
	transposes[height*size/16].call(l, size, &a)
}
