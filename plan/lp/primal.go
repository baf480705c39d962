package lp

import "math"

// stall is after how many steps of length 0 the primal simplex takes the least numbers, which
// cannot cycle (Bland), until a step has a length.
const stall = 500

// primal takes the primal simplex with true costs from values that keep their bounds to
// reduced costs with the right signs.
func (s *Solver) primal() (Status, error) {
	for j := range s.reference {
		s.reference[j] = 1
	}
	for idle := 0; ; s.iterations++ {
		if s.factor.updates() >= maxUpdates {
			s.refactor(false)
		}
		if stop, err := s.stopped(); stop {
			return IterationLimit, err
		}
		fresh := s.factor.updates() == 0
		q := s.choose(idle >= stall)
		if q < 0 {
			if fresh {
				return Optimal, nil
			}
			s.refactor(false)
			continue
		}
		s.enter(q, -1)
		direction := 1.0
		if s.reduced[q] > 0 {
			direction = -1
		}
		row, step := s.primalRatio(q, direction, idle >= stall)
		if math.IsInf(step, 1) && fresh {
			return Unbounded, nil
		}
		if math.IsInf(step, 1) {
			s.refactor(false)
			continue
		}
		if idle++; step > 0 {
			idle = 0
		}
		if row < 0 {
			s.cross(q, direction*step)
		} else if !s.pivot(row, q, direction, step) {
			s.refactor(false)
		}
	}
}

// choose is the variable whose reduced cost has the wrong sign most, by Devex weights, -1:
// none has. The first that has is taken on demand.
func (s *Solver) choose(first bool) int32 {
	best, most := int32(-1), 0.0
	for j, at := range s.position {
		if at >= 0 {
			continue
		}
		if w := s.wrong(int32(j)); w > s.tolerance[j] && float64(w*w) > most*s.reference[j] {
			best, most = int32(j), float64(w*w)/s.reference[j]
			if first {
				break
			}
		}
	}
	return best
}

// primalRatio is how far variable q can go in a direction, and the row of the variable that
// stops it, -1 means its own other bound. Among the rows that stop it within the tolerance it takes the largest pivot (Harris), or
// on demand the least variable among the nearest.
func (s *Solver) primalRatio(q int32, direction float64, least bool) (int32, float64) {
	limit := math.Inf(1)
	for _, i := range s.entering.index {
		if room, size := s.room(i, direction); size > 0 {
			tolerance := primalTolerance / 2
			if least {
				tolerance = 0
			}
			limit = min(limit, (max(room, 0)+tolerance)/size)
		}
	}
	row, most, step := int32(-1), 0.0, math.Inf(1)
	for _, i := range s.entering.index {
		room, size := s.room(i, direction)
		if size <= 0 || max(room, 0)/size > limit {
			continue
		}
		if least {
			size = 1 / float64(1+s.head[i])
		}
		if size > most {
			row, most = i, size
			step = max(room, 0) / math.Abs(s.entering.value[i])
		}
	}
	if across := s.upper[q] - s.lower[q]; across <= step {
		return -1, across
	}
	return row, step
}

// room returns the distance of a basic variable to the bound ahead of it, and its rate towards that; the rate is 0 where it does not.
func (s *Solver) room(row int32, direction float64) (room, rate float64) {
	j, rate := s.head[row], direction*s.entering.value[row]
	if math.Abs(rate) < pivotTolerance {
		return 0, 0
	}
	room = s.value[j] - s.lower[j]
	if rate < 0 {
		room, rate = s.upper[j]-s.value[j], -rate
	}
	if math.IsInf(room, 0) {
		return 0, 0
	}
	return room, rate
}

// cross takes a variable to its other bound.
func (s *Solver) cross(q int32, step float64) {
	for _, i := range s.entering.index {
		s.value[s.head[i]] -= float64(step * s.entering.value[i])
		s.judge(i)
	}
	if step > 0 {
		s.value[q] = s.upper[q]
	} else {
		s.value[q] = s.lower[q]
	}
}

// pivot lets a variable enter at a row. It reports whether row and column agreed on the pivot,
// and does nothing where they do not and the basis can be factored anew.
func (s *Solver) pivot(row, q int32, direction, step float64) bool {
	s.weight[row] = s.rowOfInverse(row)
	s.multiplyRow()
	at, leaving := s.entering.value[row], s.head[row]
	if math.Abs(at-s.pivotRow.value[q]) > 1e-7*(1+math.Abs(at)) && s.factor.updates() > 0 {
		return false
	}
	for _, j := range s.pivotRow.index {
		r := s.pivotRow.value[j] / at
		s.reference[j] = max(s.reference[j], float64(float64(r*r)*s.reference[q]))
	}
	s.reference[leaving] = max(s.reference[q]/float64(at*at), 1)
	target := s.lower[leaving]
	if direction*at < 0 {
		target = s.upper[leaving]
	}
	s.exchange(row, q, direction*step, s.reduced[q]/at)
	s.value[leaving] = target
	return true
}
