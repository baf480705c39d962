package clocks

import (
	"math"
	"slices"

	"dahl/schedule/ready"
)

// part is all clocks by which tasks take no less than some options of their hulls and no more than others.
type part struct {
	number int
	ranges [][2]int // by task
	at     *point   // the least joules of fractions
}

// Before puts the least joules first.
func (a part) Before(b part) bool {
	return a.at.joules < b.at.joules || a.at.joules == b.at.joules && a.number < b.number
}

// near is how far the clocks of a part may be above the best, for exchanges to be tried.
const near = 1e-3

// branch splits the clocks in parts by the times of single tasks, the part with the least joules first, and rounds in each. It ends when no
// part may be better than the best, or when the tries are used up, of which a part takes some for the program. It returns what no clocks
// are below; 0 means it does not know.
func (s *search) branch(at *point) (bound float64) {
	p, number, most := s.of.program, 0, s.of.longest(s.aim)
	whole := part{ranges: make([][2]int, len(p.least)), at: at}
	all := true // options lie on hulls
	for t, on := range p.least {
		whole.ranges[t] = [2]int{0, len(on) - 1}
		all = all && len(on) == len(s.kept[t])
	}
	defer p.restrict(whole.ranges)
	for queue := (ready.Heap[part]{whole}); len(queue) > 0; {
		is := queue.Pop()
		t, i := p.fractional(is.at)
		if s.left -= 1 + len(p.least)*len(p.least)/100; s.left < 0 || t < 0 || is.at.joules >= s.best.Joules*(1-same) || s.ctx.Err() != nil {
			s.left = max(0, s.left)
			if !all {
				return 0
			}
			return min(is.at.joules*(1-same), s.best.Joules)
		}
		for _, with := range [2][2]int{{is.ranges[t][0], i}, {i + 1, is.ranges[t][1]}} {
			number++
			next := part{number: number, ranges: slices.Clone(is.ranges)}
			next.ranges[t] = with
			p.restrict(next.ranges)
			var err error
			if next.at, err = p.solve(s.ctx, most); err != nil {
				return 0
			}
			if next.at == nil || next.at.joules >= s.best.Joules {
				continue
			}
			queue.Push(next)
			s.roundPart(next.at, most)
		}
	}
	if !all {
		return 0
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

// restrict lets tasks take no less than one option of their hulls, and no more than another.
func (p *program) restrict(ranges [][2]int) {
	for t, of := range ranges {
		p.fix(int32(t), of[0], of[1])
	}
}

// fractional finds the task with the time farthest from any of its clocks, and the faster one of the two clocks around it. No task is -1.
func (p *program) fractional(x *point) (task int32, faster int) {
	task = -1
	farthest := 1e-6
	for t, on := range p.least {
		for i := range on[1:] {
			long := float64(on[i+1].Nanos - on[i].Nanos)
			part := (x.longer[t] - float64(on[i].Nanos-on[0].Nanos)) / long
			if off := min(part, 1-part); off > farthest {
				farthest, task, faster = off, int32(t), i
			}
		}
	}
	return task, faster
}
