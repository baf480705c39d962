package lp

// factor is a basis B as a product L·U·E₁·E₂·…. L and U come from elimination in Markowitz's
// order; a basis of which column p is replaced by a is the earlier one times E, the identity
// with column p = B⁻¹a (product form). Each column of the basis stands at the row in which it
// was the pivot. So solutions and right-hand sides have the same numbering, and no permutations.
type factor struct {
	own      []int32   // rows at which their own logical stands; its column is −1 there
	order    []int32   // the other rows, in the order in which they were pivots
	diagonal []float64 // of U, by row
	lowRows  []int32   // pivot rows of columns of L that are not the identity's
	low      lists     // these columns, by number in lowRows
	byColumn lists     // U above the diagonal, by row of its column's pivot
	byRow    lists     // the same by row

	etaRows   []int32
	etaPivots []float64
	etas      lists // other entries of the columns of Eₖ

	rowOf                []int32 // pivot row by slot, -1: depends on other columns
	upperRows, upperCols []int32 // U as it comes about, columns as slots
	upperValues          []float64
	active               eliminator
}

// updates is how many columns were replaced since the basis was factored.
func (f *factor) updates() int { return len(f.etaRows) }

// begin takes a basis of so many rows, whose columns follow.
func (f *factor) begin(rows int) {
	f.own, f.order, f.lowRows = f.own[:0], f.order[:0], f.lowRows[:0]
	f.etaRows, f.etaPivots = f.etaRows[:0], f.etaPivots[:0]
	f.low.reset()
	f.etas.reset()
	f.diagonal = resize(f.diagonal, rows)
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
// which did. Otherwise the factor is of no use.
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
	f.byRow.sorted(len(f.diagonal), f.upperRows, f.upperCols, f.upperValues)
	return true
}

// replace puts another column at a row, as B⁻¹ times it.
func (f *factor) replace(row int32, column *vector) {
	for _, i := range column.index {
		if i != row {
			f.etas.add(i, column.value[i])
		}
	}
	f.etas.end()
	f.etaRows, f.etaPivots = append(f.etaRows, row), append(f.etaPivots, column.value[row])
}

// solve makes b, a right-hand side, the solution x of Bx = b.
func (f *factor) solve(b []float64) {
	for k, row := range f.lowRows {
		if x := b[row]; x != 0 {
			subtract(b, x, &f.low, int32(k))
		}
	}
	for k := len(f.order) - 1; k >= 0; k-- {
		row := f.order[k]
		if x := b[row]; x != 0 {
			x /= f.diagonal[row]
			b[row] = x
			subtract(b, x, &f.byColumn, row)
		}
	}
	for _, row := range f.own {
		b[row] = -b[row]
	}
	for k, row := range f.etaRows {
		if x := b[row]; x != 0 {
			x /= f.etaPivots[k]
			b[row] = x
			subtract(b, x, &f.etas, int32(k))
		}
	}
}

// solveTransposed makes c the solution y of Bᵀy = c.
func (f *factor) solveTransposed(c []float64) {
	for k := len(f.etaRows) - 1; k >= 0; k-- {
		row := f.etaRows[k]
		c[row] = (c[row] - dot(c, &f.etas, int32(k))) / f.etaPivots[k]
	}
	for _, row := range f.own {
		if y := -c[row]; y != 0 {
			c[row] = y
			subtract(c, y, &f.byRow, row)
		}
	}
	for _, row := range f.order {
		if y := c[row]; y != 0 {
			y /= f.diagonal[row]
			c[row] = y
			subtract(c, y, &f.byRow, row)
		}
	}
	for k := len(f.lowRows) - 1; k >= 0; k-- {
		c[f.lowRows[k]] -= dot(c, &f.low, int32(k))
	}
}

// subtract takes x times a sparse vector off b.
func subtract(b []float64, x float64, l *lists, at int32) {
	index, value := l.at(at)
	for k, i := range index {
		b[i] -= float64(x * value[k])
	}
}

// dot is the product of b and a sparse vector.
func dot(b []float64, l *lists, at int32) float64 {
	index, value := l.at(at)
	sum := 0.0
	for k, i := range index {
		sum += float64(b[i] * value[k])
	}
	return sum
}
