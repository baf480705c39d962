package lp

import "math"

// dual takes the dual simplex from a dual feasible basis to a basis whose values keep their bounds. It returns Optimal for the
// shifted costs, or Infeasible with
// unit the ray.
func (s *Solver) dual() (Status, error) {
	for ; ; s.iterations++ {
		if s.factor.updates() >= maxUpdates {
			s.refactor(true)
		}
		if stop, err := s.stopped(); stop {
			return IterationLimit, err
		}
		row := s.leaving()
		if row < 0 {
			return Optimal, nil
		}
		exact := s.rowOfInverse(row)
		if estimate := s.weight[row]; exact > 4*estimate {
			s.weight[row] = exact
			continue
		}
		s.weight[row] = exact
		j := s.head[row]
		target, below := s.upper[j], s.value[j] < s.lower[j]
		if below {
			target = s.lower[j]
		}
		s.multiplyRow()
		q := s.dualRatio(s.value[j] - target)
		fresh := s.factor.updates() == 0
		if q < 0 && fresh {
			if below {
				negate(&s.unit)
			}
			return Infeasible, nil
		}
		if q < 0 || !s.enter(q, row) && !fresh {
			s.refactor(true)
			continue
		}
		s.flip()
		s.exchange(row, q, (s.value[j]-target)/s.entering.value[row], s.reduced[q]/s.pivotRow.value[q])
		s.value[j] = target
	}
}

func negate(v *vector) {
	for _, i := range v.index {
		v.value[i] = -v.value[i]
	}
}

// stopped reports whether the limit of iterations is reached or the context has ended.
func (s *Solver) stopped() (bool, error) {
	if s.iterations%64 == 0 && s.ctx.Err() != nil {
		return true, s.ctx.Err()
	}
	return s.iterations >= s.limit, nil
}

// leaving is the row whose variable lies furthest outside its bounds, measured along the
// edge of the dual polyhedron (steepest edge), -1 means none does.
func (s *Solver) leaving() int32 {
	best, most := int32(-1), 0.0
	for i, v := range s.violation {
		if v > most*s.weight[i] {
			best, most = int32(i), v/s.weight[i]
		}
	}
	return best
}

// rowOfInverse makes unit a row of B⁻¹ and returns its squared norm.
func (s *Solver) rowOfInverse(row int32) float64 {
	s.unit.empty(s.rows)
	s.unit.value[row] = 1
	s.factor.solveTransposed(s.unit.value)
	s.unit.gather()
	norm := 0.0
	for _, i := range s.unit.index {
		norm += float64(s.unit.value[i] * s.unit.value[i])
	}
	return norm
}

// multiplyRow makes pivotRow unit times the columns of all variables that are not basic.
func (s *Solver) multiplyRow() {
	row := &s.pivotRow
	row.empty(s.columns + s.rows)
	for _, i := range s.unit.index {
		index, value := s.byRow.at(i)
		subtract(row.value, -s.unit.value[i], index, value)
	}
	for j := range int32(s.columns) {
		if x := row.value[j]; s.position[j] >= 0 || math.Abs(x) < tiny {
			row.value[j] = 0
		} else {
			row.index = append(row.index, j)
		}
	}
	for _, i := range s.unit.index {
		if j := int32(s.columns) + i; s.position[j] < 0 {
			row.value[j] = -s.unit.value[i]
			row.index = append(row.index, j)
		}
	}
}

// enter makes entering B⁻¹ times a variable's column. It reports whether the pivot at a row, if
// one is known already (-1 means not yet), is large enough and agrees with the pivot row.
func (s *Solver) enter(q, row int32) bool {
	s.entering.empty(s.rows)
	s.subtractColumn(s.entering.value, -1, q)
	s.factor.solve(s.entering.value, true)
	s.entering.gather()
	if row < 0 {
		return true
	}
	at := s.entering.value[row]
	return math.Abs(at-s.pivotRow.value[q]) <= 1e-7*(1+math.Abs(at)) && math.Abs(at) > 1e-7
}

// flip moves the variables that dualRatio passed to their other bounds.
func (s *Solver) flip() {
	moved := false
	s.change.empty(s.rows)
	for _, c := range s.candidates {
		to := s.upper[c.variable]
		if s.value[c.variable] == to {
			to = s.lower[c.variable]
		}
		s.subtractColumn(s.change.value, to-s.value[c.variable], c.variable)
		s.value[c.variable] = to
		moved = true
	}
	if !moved {
		return
	}
	s.factor.solve(s.change.value, false)
	s.change.gather()
	for _, i := range s.change.index {
		s.value[s.head[i]] += s.change.value[i]
		s.judge(i)
	}
}

// exchange lets variable q enter at a row. Its value grows by step, basic variables change by −step times entering; reduced
// costs change by −fall times the pivot row.
func (s *Solver) exchange(row, q int32, step, fall float64) {
	leaving := s.head[row]
	for _, j := range s.pivotRow.index {
		s.reduced[j] -= float64(fall * s.pivotRow.value[j])
	}
	s.reduced[q], s.reduced[leaving] = 0, -fall
	for _, i := range s.entering.index {
		s.value[s.head[i]] -= float64(step * s.entering.value[i])
	}
	s.value[q] += step
	s.reweigh(row)
	s.factor.replace(row)
	s.head[row], s.position[q], s.position[leaving] = q, row, -1
	for _, i := range s.entering.index {
		s.judge(i)
	}
}

// reweigh updates the norms of the rows of B⁻¹ (Forrest & Goldfarb): row i loses r = αᵢ/αᵣ times
// the pivot row ρ, so that its squared norm grows by r²·|ρ|² − 2r·τᵢ with τ = B⁻¹ρ.
func (s *Solver) reweigh(row int32) {
	s.change.empty(s.rows)
	copy(s.change.value, s.unit.value)
	s.factor.solve(s.change.value, false)
	at, norm := s.entering.value[row], s.weight[row]
	for _, i := range s.entering.index {
		if i == row {
			continue
		}
		r := s.entering.value[i] / at
		grown := s.weight[i] + float64(r*(float64(r*norm)-float64(2*s.change.value[i])))
		s.weight[i] = max(grown, 1e-4)
	}
	s.weight[row] = max(norm/float64(at*at), 1e-4)
	clear(s.change.value)
}
