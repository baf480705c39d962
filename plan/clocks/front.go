package clocks

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dahl/plan/problem"
)

// curve lists the corners of the least joules as a function of the period, which is convex and piecewise linear, from the shortest
// period to the period that is no shorter than any saving needs. A tangent at one corner meets the tangent at another one at a
// corner between them, or below the line between two neighbours.
func (p *program) curve(ctx context.Context, shortest int64) ([]*point, error) {
	last, err := p.solve(ctx, math.Inf(1))
	if err != nil || last == nil {
		return nil, err
	}
	first, err := p.solve(ctx, max(float64(shortest), 0))
	if err != nil || first == nil {
		return nil, err
	}
	if last.period-first.period <= same*p.nanos {
		return []*point{first}, nil
	}
	corners := []*point{first}
	for open := []*point{last}; len(open) > 0; {
		a, b := corners[len(corners)-1], open[len(open)-1]
		between, err := p.between(ctx, a, b)
		if err != nil {
			return nil, err
		}
		if between != nil {
			open = append(open, between)
			continue
		}
		corners, open = append(corners, b), open[:len(open)-1]
	}
	return corners, nil
}

// same is a relative difference that counts as none.
const same = 1e-7

// between is a point of the curve below the line between two points; nil means there is none.
func (p *program) between(ctx context.Context, a, b *point) (*point, error) {
	// Joules of a falls by a.saves for each nanosecond, those of b rise by b.saves for each nanosecond less.
	fall, span := a.joules-b.joules, b.period-a.period
	if span <= same*p.nanos || a.saves <= b.saves {
		return nil, nil
	}
	at := a.period + (fall-b.saves*span)/(a.saves-b.saves)
	line := a.joules - fall*(at-a.period)/span
	if at <= a.period || at >= b.period || line-(a.joules-a.saves*(at-a.period)) <= same*p.joules {
		return nil, nil
	}
	c, err := p.solve(ctx, at)
	if err != nil || c == nil || line-c.joules <= same*p.joules {
		return nil, err
	}
	return c, nil
}

// Front finds clocks for some of the corners at most, and leaves out those that others beat in time and joules.
func (c *Clocks) Front(ctx context.Context, most, tries int) (front []*Choice, err error) {
	corners, err := c.program.curve(ctx, c.fastest)
	if err != nil {
		return nil, err
	}
	n := min(most, len(corners))
	for i := range n {
		at := corners[i*(len(corners)-1)/max(1, n-1)]
		aim := problem.Aim{Objective: problem.Energy, Deadline: time.Duration(math.Ceil(at.period))}
		s := newSearch(ctx, c, aim, tries/n)
		if err := s.round(at); err != nil {
			return nil, err
		}
		front = append(front, s.best)
	}
	slices.SortStableFunc(front, func(a, b *Choice) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period), cmp.Compare(a.Joules, b.Joules))
	})
	least := math.Inf(1)
	return slices.DeleteFunc(front, func(is *Choice) bool {
		beaten := is.Joules >= least
		least = min(least, is.Joules)
		return beaten
	}), nil
}
