package lp

import (
	"cmp"
	"fmt"
	"math"
)

// largest and smallest are the magnitudes of numbers that a problem may hold. What lies
// outside would lose all digits of the others.
const largest, smallest = 1e20, 1e-20

// Problem is to minimise c·x where every row a has lower <= a·x <= upper, and every column
// l <= x <= u. Its zero value has neither columns nor rows. Rows may follow after it was solved. After its first invalid number
// the problem takes no more, and [Solver.Solve] returns the error.
type Problem struct {
	cost, lower, upper []float64 // by column
	rowLower, rowUpper []float64
	terms              lists  // by row
	seen               []bool // columns of the row that is being added
	err                error
}

// Term is a column's coefficient in a row.
type Term struct {
	Column      int
	Coefficient float64
}

// Columns is the number of columns.
func (p *Problem) Columns() int { return len(p.cost) }

// Rows is the number of rows.
func (p *Problem) Rows() int { return len(p.rowLower) }

// AddColumn adds a variable and returns its number. Bounds may be infinite.
func (p *Problem) AddColumn(cost, lower, upper float64) int {
	column := len(p.cost)
	if !p.fails(cmp.Or(wrap(checkNumber(cost), "cost of column %d", column), wrap(checkSides(lower, upper), "column %d", column))) {
		p.cost, p.seen = append(p.cost, cost), append(p.seen, false)
		p.lower, p.upper = append(p.lower, lower), append(p.upper, upper)
	}
	return column
}

// SetBounds gives a column other bounds. What was solved before is solved again from where it
// ended.
func (p *Problem) SetBounds(column int, lower, upper float64) {
	if !p.fails(cmp.Or(p.checkColumn(column), wrap(checkSides(lower, upper), "column %d", column))) {
		p.lower[column], p.upper[column] = lower, upper
	}
}

// AddRow adds a row and returns its number. Either side may be infinite. A column stands in
// a row once.
func (p *Problem) AddRow(lower, upper float64, terms []Term) int {
	row := len(p.rowLower)
	err := wrap(checkSides(lower, upper), "row %d", row)
	for _, t := range terms {
		if err = cmp.Or(err, wrap(p.checkTerm(t), "row %d", row)); p.fails(err) {
			return row
		}
		p.seen[t.Column] = true
		if t.Coefficient != 0 {
			p.terms.add(int32(t.Column), t.Coefficient)
		}
	}
	for _, t := range terms {
		p.seen[t.Column] = false
	}
	if !p.fails(err) {
		p.terms.end()
		p.rowLower, p.rowUpper = append(p.rowLower, lower), append(p.rowUpper, upper)
	}
	return row
}

// fails keeps the first error, and reports whether there is one.
func (p *Problem) fails(err error) bool {
	p.err = cmp.Or(p.err, err)
	return p.err != nil
}

func (p *Problem) checkColumn(column int) error {
	if column < 0 || column >= len(p.cost) {
		return fmt.Errorf("column %d: the problem has %d columns", column, len(p.cost))
	}
	return nil
}

// checkTerm refuses what may not stand in a row.
func (p *Problem) checkTerm(t Term) error {
	if err := p.checkColumn(t.Column); err != nil {
		return err
	}
	if p.seen[t.Column] {
		return fmt.Errorf("column %d stands in it twice; add its coefficients up", t.Column)
	}
	return wrap(checkNumber(t.Coefficient), "coefficient of column %d", t.Column)
}

// wrap says of what an error is.
func wrap(err error, format string, of int) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", of, err)
}

func checkNumber(x float64) error {
	if size := math.Abs(x); !(size <= largest) || size > 0 && size < smallest {
		return fmt.Errorf("%g is not 0, nor of a size from %g to %g; choose another unit", x, smallest, largest)
	}
	return nil
}

func checkSides(lower, upper float64) error {
	for _, side := range []float64{lower, upper} {
		if math.IsInf(side, 0) {
			continue
		}
		if err := checkNumber(side); err != nil {
			return fmt.Errorf("bound %w", err)
		}
	}
	if lower > upper || math.IsInf(lower, 1) || math.IsInf(upper, -1) {
		return fmt.Errorf("no number lies between %g and %g", lower, upper)
	}
	return nil
}
