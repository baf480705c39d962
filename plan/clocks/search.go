package clocks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"dahl/plan/problem"
)

// search looks for clocks near points of the curve.
type search struct {
	*rounding
	of     *Clocks
	ctx    context.Context
	aim    problem.Aim
	best   *Choice
	left   int // changes that may still be tried
	random *rand.Rand
}

func newSearch(ctx context.Context, c *Clocks, aim problem.Aim, tries int) *search {
	return &search{of: c, rounding: &rounding{timing: c.timing, kept: c.kept, choice: make([]int, len(c.kept))}, ctx: ctx, aim: aim,
		left: tries, random: rand.New(rand.NewPCG(1, 2))}
}

// starts is from where clocks are rounded: from the curve at some times of the period, with tasks rounded to slower clocks that are at most
// so far above, in parts of the distance between two clocks.
var starts = struct{ periods, up []float64 }{[]float64{1, 1.002, 1.004, 1.008, 1.016, 1.032}, []float64{0, 0.3, 0.6}}

// round rounds clocks near a point, and changes them.
func (s *search) round(at *point) (err error) {
	least := &rounding{timing: &timing{}, joules: math.Inf(1)} // of joules, for the period at hand
	for k, factor := range starts.periods {
		from := at
		if k > 0 {
			if from, err = s.of.program.solve(s.ctx, at.period*factor); err != nil {
				break
			}
		}
		period := int64(min(math.Ceil(max(at.period*factor, float64(s.of.fastest))), s.of.longest(s.aim)))
		if k > 0 && least.period != period {
			s.kick(least, len(starts.periods)-k+2)
			least.joules = math.Inf(1)
		}
		for _, up := range starts.up {
			if !s.begin(from, up, period) {
				return fmt.Errorf("no clocks for a period of %d ns, though there are some for %d", period, s.of.fastest)
			}
			s.reclaim(none)
			s.exchange()
			if s.joules < least.joules {
				least.copy(s.rounding)
			}
			s.take()
		}
	}
	if s.best == nil || s.ctx.Err() == nil && err != nil {
		return err
	}
	s.kick(least, 2)
	return nil
}

// take keeps the clocks at hand if they are the best.
func (s *search) take() {
	joules, takes := s.joules, s.shortest()
	is := &Choice{Period: time.Duration(takes)}
	is.Joules = joules + float64(s.Watts*is.Period.Seconds())
	if s.best != nil && cmp.Or(cmp.Compare(s.aim.Of(is.Period, is.Joules), s.aim.Of(s.best.Period, s.best.Joules)), cmp.Compare(is.Joules, s.best.Joules)) >= 0 {
		return
	}
	for t, o := range s.choice {
		is.Clock = append(is.Clock, s.kept[t][o].Clock)
	}
	s.best = is
}

// faster is by how many options a change makes a task faster at most.
const faster = 2

// exchange gives a task a faster option where others then save more by slower ones, until no such exchange is left.
func (s *search) exchange() {
	was := &rounding{timing: &timing{}}
	for changed := true; changed; {
		changed = false
		for t := range int32(len(s.choice)) {
			for by := 1; by <= min(faster, s.choice[t]); by++ {
				if s.left == 0 || s.ctx.Err() != nil {
					return
				}
				s.left--
				was.copy(s.rounding)
				s.put(t, s.choice[t]-by)
				s.reclaim(t)
				s.reclaim(none)
				if s.joules < was.joules-1e-12*math.Abs(was.joules) {
					changed = true
					break
				}
				s.rounding.copy(was)
			}
		}
	}
}

const (
	kicks    = 3   // tasks are made faster at once
	patience = 200 // kicks in a row that give nothing better
)

// kick makes some tasks faster and others slower by chance, and exchanges. What comes out stays if it is no worse (iterated local search).
// It takes a part of the tries that are left.
func (s *search) kick(from *rounding, part int) {
	later := s.left - s.left/part
	s.left -= later
	defer func() { s.left += later }()
	s.rounding.copy(from)
	was := &rounding{timing: &timing{}}
	for idle := 0; idle < patience && s.left > 0 && s.ctx.Err() == nil; idle++ {
		s.left--
		was.copy(s.rounding)
		for range kicks {
			t := s.random.Int32N(int32(len(s.choice)))
			s.put(t, max(0, s.choice[t]-1-s.random.IntN(faster)))
		}
		s.rounding.random = s.random
		s.reclaim(none)
		s.rounding.random = nil
		s.exchange()
		switch {
		case s.joules > was.joules:
			s.rounding.copy(was)
		case s.joules < was.joules-1e-12*math.Abs(was.joules):
			idle = 0
		}
	}
	s.take()
}
