package lp

import "math"

// scalings is how often rows and columns take turns in making their geometric means one.
const scalings = 4

// power is the power of two below a positive number. Scales are such powers, so that no
// number of the problem is rounded.
func power(x float64) float64 {
	_, exponent := math.Frexp(x)
	return math.Ldexp(1, exponent-1)
}

// middle is the inverse of the geometric mean of the least and the largest of some sizes.
type middle struct{ least, most float64 }

func (m *middle) add(x float64) {
	x = math.Abs(x)
	if m.most == 0 {
		m.least = x
	}
	m.least, m.most = min(m.least, x), max(m.most, x)
}

func (m *middle) scale() float64 {
	if m.most == 0 {
		return 1
	}
	return 1 / math.Sqrt(float64(m.least*m.most))
}

// scaleAll chooses the scales of columns and costs for the rows that there are. scaleRow chooses the scales of rows, also of later ones.
func (s *Solver) scaleAll() {
	p := s.problem
	s.columnScale = make([]float64, s.columns)
	for j := range s.columnScale {
		s.columnScale[j] = 1
	}
	for range scalings {
		columns := make([]middle, s.columns)
		for i := range int32(p.Rows()) {
			scale := s.rowMiddle(i)
			index, value := p.terms.at(i)
			for k, j := range index {
				columns[j].add(float64(value[k] * scale))
			}
		}
		for j := range columns {
			s.columnScale[j] = columns[j].scale()
		}
	}
	most := 0.0
	for j, c := range p.cost {
		s.columnScale[j] = power(s.columnScale[j])
		most = max(most, math.Abs(float64(c*s.columnScale[j])))
	}
	s.costScale = 1
	if most > 0 {
		s.costScale = 1 / power(most)
	}
}

// rowMiddle is the scale that a row wants under the columns' scales.
func (s *Solver) rowMiddle(row int32) float64 {
	var sizes middle
	index, value := s.problem.terms.at(row)
	for k, j := range index {
		sizes.add(float64(value[k] * s.columnScale[j]))
	}
	return sizes.scale()
}

// loadRow scales a row and appends it.
func (s *Solver) loadRow(row int32) {
	scale := power(s.rowMiddle(row))
	s.rowScale = append(s.rowScale, scale)
	index, value := s.problem.terms.at(row)
	for k, j := range index {
		s.byRow.add(j, value[k]*scale*s.columnScale[j])
	}
	s.byRow.end()
}

// loadBounds scales bounds and costs: the solver's variable is x over its column's scale, and
// its row is a·x times the row's scale.
func (s *Solver) loadBounds() {
	p := s.problem
	for j, scale := range s.columnScale {
		s.lower[j], s.upper[j] = p.lower[j]/scale, p.upper[j]/scale
		s.cost[j] = p.cost[j] * scale * s.costScale
	}
	for i, scale := range s.rowScale {
		s.lower[s.columns+i], s.upper[s.columns+i] = p.rowLower[i]*scale, p.rowUpper[i]*scale
	}
}
