package lp

import (
	"cmp"
	"math"
	"slices"
)

// candidate is a variable that can enter. Its reduced cost, seen from its bound, becomes 0
// when the dual step is cost/size.
type candidate struct {
	variable   int32
	cost, size float64
}

func (c *candidate) ratio() float64 { return max(c.cost, 0) / c.size }

// relaxed is the step at which the reduced cost is wrong by half the tolerance (Harris).
func (c *candidate) relaxed() float64 { return (max(c.cost, 0) + dualTolerance/2) / c.size }

// dualRatio chooses the variable that enters for one outside its bounds by an amount, -1 means none does. The dual objective grows
// with the step at a rate of this amount. The rate falls after each passed candidate, which then moves to its other bound. So
// candidates
// are passed, in groups whose reduced costs become 0 within the tolerance, as long as the rate
// is positive. Those passed are left in s.candidates. A group offers its largest pivot; an
// earlier group is taken where later pivots are much smaller.
func (s *Solver) dualRatio(outside float64) int32 {
	s.collect(outside > 0)
	list, rate := s.candidates, math.Abs(outside)
	largest := 0.0
	for i := range list {
		largest = max(largest, list[i].size)
	}
	var ends []int
	first := s.firstGroup(list)
	rate -= s.lost(list[:first])
	if first > 0 {
		ends = append(ends, first)
	}
	if rate >= 0 && 0 < first && first < len(list) {
		ends, rate = s.moreGroups(list, ends, rate)
	}
	if rate > primalTolerance || len(ends) == 0 {
		s.candidates = list[:0]
		return -1
	}
	for g := len(ends) - 1; ; g-- {
		begin := 0
		if g > 0 {
			begin = ends[g-1]
		}
		best := begin
		for i := begin; i < ends[g]; i++ {
			if list[i].size > list[best].size {
				best = i
			}
		}
		if list[best].size >= min(0.1*largest, 1) || g == 0 {
			q := list[best].variable
			if list[best].cost < 0 {
				s.shift(q)
			}
			s.candidates = list[:begin]
			return q
		}
	}
}

// collect finds the candidates for a leaving variable that is above its upper bound, or below
// its lower one.
func (s *Solver) collect(above bool) {
	s.candidates = s.candidates[:0]
	for _, j := range s.pivotRow.index {
		a, d := s.pivotRow.value[j], s.reduced[j]
		if !above {
			a = -a
		}
		l, u := s.lower[j], s.upper[j]
		if l == u || !(math.Abs(a) >= pivotTolerance) {
			continue
		}
		switch {
		case math.IsInf(l, 0) && math.IsInf(u, 0):
			s.candidates = append(s.candidates, candidate{j, 0, math.Abs(a)})
		case s.value[j] == l && a > 0:
			s.candidates = append(s.candidates, candidate{j, d, a})
		case s.value[j] != l && a < 0:
			s.candidates = append(s.candidates, candidate{j, -d, -a})
		}
	}
}

// firstGroup moves the candidates that come first within the tolerance to the front, and
// returns their number.
func (s *Solver) firstGroup(list []candidate) int {
	bound := math.Inf(1)
	for i := range list {
		bound = min(bound, list[i].relaxed())
	}
	n := 0
	for i := range list {
		if list[i].ratio() <= bound {
			list[n], list[i] = list[i], list[n]
			n++
		}
	}
	return n
}

// lost is by how much the rate falls when candidates are passed.
func (s *Solver) lost(list []candidate) float64 {
	sum := 0.0
	for _, c := range list {
		sum += float64(c.size * (s.upper[c.variable] - s.lower[c.variable]))
	}
	return sum
}

// moreGroups sorts the candidates after the first group and groups them until the rate is
// negative.
func (s *Solver) moreGroups(list []candidate, ends []int, rate float64) ([]int, float64) {
	rest := list[ends[0]:]
	slices.SortFunc(rest, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.ratio(), b.ratio()), cmp.Compare(a.variable, b.variable))
	})
	bounds := make([]float64, len(rest)) // the least relaxed ratio from here on
	least := math.Inf(1)
	for i := len(rest) - 1; i >= 0; i-- {
		least = min(least, rest[i].relaxed())
		bounds[i] = least
	}
	for begin := 0; begin < len(rest) && rate >= 0; {
		end := begin + 1
		for end < len(rest) && rest[end].ratio() <= bounds[begin] {
			end++
		}
		rate -= s.lost(rest[begin:end])
		ends = append(ends, ends[0]+end)
		begin = end
	}
	return ends, rate
}
