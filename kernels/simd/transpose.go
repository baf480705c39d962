package simd

import "unsafe"

// Transpose moves a matrix:
//
//	To[j·ToRow + i] = From[i·FromRow + j]     i < Rows, j < Columns
//
// or, with Flip, To[(Columns-1-j)·ToRow + i]. To and From must not overlap.
type Transpose[T Float] struct {
	Rows, Columns  int // of From
	To, From       []T
	ToRow, FromRow int
	Flip           bool
}

// Run moves the matrix at a level.
func (t *Transpose[T]) Run(l Level) {
	if t.Rows < 1 || t.Columns < 1 || t.ToRow < 0 || t.FromRow < 0 {
		panic("simd: transpose of an empty matrix, or at negative distances")
	}
	if (t.Rows-1)*t.FromRow+t.Columns > len(t.From) || (t.Columns-1)*t.ToRow+t.Rows > len(t.To) {
		panic("simd: transpose reaches beyond an operand")
	}
	if t.Rows == 1 && t.ToRow == 1 && !t.Flip {
		copy(t.To, t.From[:t.Columns])
		return
	}
	if l == Go || !t.runVectors(l) {
		t.runGo()
	}
}

// runGo writes one row of the output after the other.
func (t *Transpose[T]) runGo() {
	for j := range t.Columns {
		to := t.To[t.row(j)*t.ToRow:][:t.Rows]
		at := j
		for i := range to {
			to[i] = t.From[at]
			at += t.FromRow
		}
	}
}

// row is the output row of column j.
func (t *Transpose[T]) row(j int) int {
	if t.Flip {
		return t.Columns - 1 - j
	}
	return j
}

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

// transposes are by the rows of a block.
var transposes = [...]*forms[transposeArgs]{2: &transpose2, 4: &transpose4, 8: &transpose8, 16: &transpose16}

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
	if height < l.bytes()/size {
		l = AVX2 // for shorter vectors
	}
	transposes[height].call(l, size, &a)
}
