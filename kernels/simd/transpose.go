package simd

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
