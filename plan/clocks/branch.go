package clocks

import (
	"math"
	"slices"

	"dahl/schedule/ready"
)

// part is all clocks by which tasks take no less than some options and no more than others.
type part struct {
	number int
	ranges [][2]int // by task: of the options kept
	at     *point   // the least joules of fractions
}

// Before puts the least joules first.
func (a part) Before(b part) bool {
	return a.at.joules < b.at.joules || a.at.joules == b.at.joules && a.number < b.number
}

// near is how far the clocks of a part may be above the best, for exchanges to be tried.
const near = 1e-3

// branch splits the clocks in parts by the times of single tasks, the part with the least joules first, and rounds in each. It ends when no
// part may be better than the best, or when the tries are used up, of which a part takes some for the program. It returns a value that
// no clocks are below.
func (s *search) branch(at *point) (bound float64) {
	p, number, most := s.of.program, 0, s.of.longest(s.aim)
	whole := part{ranges: make([][2]int, len(s.kept)), at: at}
	for t, of := range s.kept {
		whole.ranges[t] = [2]int{0, len(of) - 1}
	}
	defer s.restrict(whole.ranges)
	for queue := (ready.Heap[part]{whole}); len(queue) > 0; {
		is := queue.Pop()
		bound = is.at.joules * (1 - same)
		t, o := s.fractional(is.at)
		if s.left -= 1 + len(s.kept)*len(s.kept)/100; s.left < 0 || t < 0 || bound >= s.best.Joules || s.ctx.Err() != nil {
			s.left = max(0, s.left)
			return bound
		}
		for _, with := range [2][2]int{{is.ranges[t][0], o}, {o + 1, is.ranges[t][1]}} {
			number++
			next := part{number: number, ranges: slices.Clone(is.ranges)}
			next.ranges[t] = with
			s.restrict(next.ranges)
			var err error
			if next.at, err = p.solve(s.ctx, most); err != nil {
				return bound
			}
			if next.at != nil && next.at.joules < s.best.Joules {
				queue.Push(next)
				s.roundPart(next.at, most)
			}
		}
	}
	return s.best.Joules
}

// roundPart rounds the clocks of a part.
func (s *search) roundPart(at *point, most float64) {
	if !s.begin(at, 0, int64(min(math.Ceil(max(at.period, float64(s.of.fastest))), most))) {
		return
	}
	s.reclaim(none)
	if s.joules+float64(s.Watts*float64(s.period))/1e9 < s.best.Joules*(1+near) {
		s.exchange()
	}
	s.take()
}

// restrict lets tasks take no less than one option, and no more than another.
func (s *search) restrict(ranges [][2]int) {
	for t, of := range ranges {
		s.of.program.limit(int32(t), s.kept[t][of[0]].Nanos, s.kept[t][of[1]].Nanos)
	}
}

// fractional finds the task with the time farthest from any of its clocks, and the faster one of the two clocks around it. No task is -1.
func (s *search) fractional(x *point) (task int32, faster int) {
	task = -1
	farthest := 1e-6
	for t, of := range s.kept {
		for o := range of[1:] {
			part := (x.longer[t] - float64(of[o].Nanos-of[0].Nanos)) / float64(of[o+1].Nanos-of[o].Nanos)
			if off := min(part, 1-part); off > farthest {
				farthest, task, faster = off, int32(t), o
			}
		}
	}
	return task, faster
}
