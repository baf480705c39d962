package lp

import (
	"math"
	"slices"
)

// factor is a basis B as a product L·R₁·R₂·…·U. L and U come from elimination in Markowitz's
// order. When a column of the basis is replaced, (L·R₁·…)⁻¹ times the new one takes its place in
// U and goes to the end of the order. Entries of its row in later columns are then below the diagonal, and a row of
// multipliers, the next R, eliminates them (Forrest & Tomlin). Each column
// of the basis stands at the row in which it was the pivot. So solutions and right-hand sides
// have the same numbering, and no permutations.
type factor struct {
	own      []int32   // rows at which their own logical stands; its column is −1 there
	order    []int32   // the other rows, in the order in which U is triangular
	diagonal []float64 // of U, by row
	upper    []sparse  // U above the diagonal, by row of its column's pivot
	lowRows  []int32   // pivot rows of columns of L that are not the identity's
	low      lists     // these columns, by number in lowRows
	etaRows  []int32
	etas     lists // multipliers of Rₖ in its row
	spike    sparse
	unstable bool

	rowOf                []int32 // pivot row by slot, -1 means depends on other columns
	upperRows, upperCols []int32 // U as it comes about, columns as slots
	upperValues          []float64
	byColumn             lists // memory of upper
	multipliers          []float64
	active               eliminator
}

// sparse is a sparse vector of its own.
type sparse struct {
	index []int32
	value []float64
}

// updates is how many columns were replaced since the basis was factored, or maxUpdates if the
// last one could not be replaced with accuracy.
func (f *factor) updates() int {
	if f.unstable {
		return maxUpdates
	}
	return len(f.etaRows)
}

// begin takes a basis with a number of rows, whose columns follow.
func (f *factor) begin(rows int) {
	f.own, f.order, f.lowRows = f.own[:0], f.order[:0], f.lowRows[:0]
	f.etaRows, f.unstable = f.etaRows[:0], false
	f.low.reset()
	f.etas.reset()
	f.diagonal, f.upper = resize(f.diagonal, rows), resize(f.upper, rows)
	clear(f.diagonal)
	f.upperRows, f.upperCols, f.upperValues = f.upperRows[:0], f.upperCols[:0], f.upperValues[:0]
	f.active.reset(rows)
}

// addOwn gives a row its own logical. Those come before all other columns.
func (f *factor) addOwn(row int32) {
	f.own = append(f.own, row)
	f.diagonal[row] = -1
}

// addColumn gives the basis a column; columns are slots 0, 1, ….
func (f *factor) addColumn(rows []int32, values []float64) {
	slot := f.active.addSlot()
	for k, row := range rows {
		if f.diagonal[row] != 0 {
			f.addUpper(row, slot, values[k])
		} else {
			f.active.add(slot, row, values[k])
		}
	}
}

func (f *factor) addUpper(row, slot int32, value float64) {
	f.upperRows, f.upperCols = append(f.upperRows, row), append(f.upperCols, slot)
	f.upperValues = append(f.upperValues, value)
}

// finish factors what was added. It reports whether all columns found a pivot; rowOf says
// which did. Otherwise the factor has no meaning.
func (f *factor) finish() bool {
	slots := len(f.active.index)
	f.rowOf = resize(f.rowOf, slots)
	for i := range f.rowOf {
		f.rowOf[i] = -1
	}
	f.active.count()
	for range slots {
		p, ok := f.active.choose()
		if !ok {
			return false
		}
		f.active.eliminate(p.row, p.slot, f)
	}
	for i, slot := range f.upperCols {
		f.upperCols[i] = f.rowOf[slot]
	}
	f.byColumn.sorted(len(f.diagonal), f.upperCols, f.upperRows, f.upperValues)
	for row := range f.upper {
		index, value := f.byColumn.at(int32(row))
		f.upper[row] = sparse{index, value}
	}
	f.multipliers = resize(f.multipliers, len(f.diagonal))
	clear(f.multipliers)
	return true
}

// replace puts another column at a row: the one that was solved with keep.
func (f *factor) replace(row int32) {
	w, next := f.multipliers, 0
	if k := slices.Index(f.own, row); k >= 0 {
		f.own = slices.Delete(f.own, k, k+1)
	} else {
		next = slices.Index(f.order, row)
		f.order = slices.Delete(f.order, next, next+1)
	}
	w[row] = -1
	begin := len(f.etas.index)
	for _, other := range f.order[next:] {
		column, x := &f.upper[other], 0.0
		for k := 0; k < len(column.index); k++ {
			x -= float64(w[column.index[k]] * column.value[k])
			if column.index[k] == row {
				last := len(column.index) - 1
				column.index[k], column.value[k] = column.index[last], column.value[last]
				column.index, column.value = column.index[:last], column.value[:last]
				k--
			}
		}
		if x != 0 {
			w[other] = x / f.diagonal[other]
			f.etas.add(other, w[other])
		}
	}
	w[row] = 0
	f.etas.end()
	f.etaRows, f.order = append(f.etaRows, row), append(f.order, row)
	f.place(row)
	for _, i := range f.etas.index[begin:] {
		w[i] = 0
	}
}

// place makes the spike the last column of U, after the multipliers' row was taken off it.
func (f *factor) place(row int32) {
	at, size := 0.0, 0.0 // the diagonal, and the largest of what it is the sum of
	column := sparse{make([]int32, 0, len(f.spike.index)), make([]float64, 0, len(f.spike.index))}
	for k, i := range f.spike.index {
		x := f.spike.value[k]
		if i == row {
			at += x
		} else {
			column.index, column.value = append(column.index, i), append(column.value, x)
			x *= f.multipliers[i]
			at -= x
		}
		size = max(size, math.Abs(x))
	}
	f.diagonal[row], f.upper[row] = at, column
	f.unstable = math.Abs(at) < 1e-8*size
}

// solve makes b, a right-hand side, the solution x of Bx = b. On demand it keeps the spike for replace, if b is the entering column.
func (f *factor) solve(b []float64, keep bool) {
	for k, row := range f.lowRows {
		if x := b[row]; x != 0 {
			index, value := f.low.at(int32(k))
			subtract(b, x, index, value)
		}
	}
	for k, row := range f.etaRows {
		index, value := f.etas.at(int32(k))
		b[row] -= dot(b, index, value)
	}
	if keep {
		f.spike.gather(b)
	}
	for k := len(f.order) - 1; k >= 0; k-- {
		row := f.order[k]
		if x := b[row]; x != 0 {
			x /= f.diagonal[row]
			b[row] = x
			subtract(b, x, f.upper[row].index, f.upper[row].value)
		}
	}
	for _, row := range f.own {
		b[row] = -b[row]
	}
}

// solveTransposed makes c the solution y of Bᵀy = c.
func (f *factor) solveTransposed(c []float64) {
	for _, row := range f.own {
		c[row] = -c[row]
	}
	for _, row := range f.order {
		c[row] = (c[row] - dot(c, f.upper[row].index, f.upper[row].value)) / f.diagonal[row]
	}
	for k := len(f.etaRows) - 1; k >= 0; k-- {
		if y := c[f.etaRows[k]]; y != 0 {
			index, value := f.etas.at(int32(k))
			subtract(c, y, index, value)
		}
	}
	for k := len(f.lowRows) - 1; k >= 0; k-- {
		index, value := f.low.at(int32(k))
		c[f.lowRows[k]] -= dot(c, index, value)
	}
}

// gather copies what is not zero.
func (s *sparse) gather(b []float64) {
	s.index, s.value = s.index[:0], s.value[:0]
	for i, x := range b {
		if x != 0 {
			s.index, s.value = append(s.index, int32(i)), append(s.value, x)
		}
	}
}

// subtract takes x times a sparse vector off b.
func subtract(b []float64, x float64, index []int32, value []float64) {
	value = value[:len(index)]
	for k, i := range index {
		b[i] -= float64(x * value[k])
	}
}

// dot is the product of b and a sparse vector.
func dot(b []float64, index []int32, value []float64) float64 {
	sum := 0.0
	value = value[:len(index)]
	for k, i := range index {
		sum += float64(b[i] * value[k])
	}
	return sum
}
