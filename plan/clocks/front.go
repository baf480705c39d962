package clocks

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dahl/plan/problem"
)

// curve lists the corners of the least joules as a function of the period. The function is convex and piecewise linear, from the shortest
// period to the least joules of all by another one. The tangents of two points meet below a corner between them, or on the line that joins
// neighbours. With a value, corners are left out that are between two points and have no lower value than a known point.
func (p *program) curve(ctx context.Context, shortest, longest float64, value func(period, joules float64) float64) ([]*point, error) {
	last, err := p.solve(ctx, longest)
	if err != nil || last == nil {
		return nil, err
	}
	first, err := p.solve(ctx, shortest)
	if err != nil || first == nil {
		return nil, err
	}
	if last.period-first.period <= same*p.nanos {
		return []*point{first}, nil
	}
	least := math.Inf(1)
	lower := func(period, joules float64) bool { return value == nil || value(period, joules) < least }
	corners := []*point{first}
	for open := []*point{last}; len(open) > 0; {
		a, b := corners[len(corners)-1], open[len(open)-1]
		if value != nil {
			least = min(least, value(a.period, a.joules), value(b.period, b.joules))
		}
		between, err := p.between(ctx, a, b, lower)
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

// between is a point of the curve below the line between two points, where their tangents meet; nil means there is none, or it is not looked for.
func (p *program) between(ctx context.Context, a, b *point, wanted func(period, joules float64) bool) (*point, error) {
	// From a on joules fall by a.saves for each nanosecond. Before b they fall by b.saves.
	fall, span := a.joules-b.joules, b.period-a.period
	if span <= same*p.nanos || a.saves <= b.saves {
		return nil, nil
	}
	at := a.period + (fall-b.saves*span)/(a.saves-b.saves)
	line, tangent := a.joules-fall*(at-a.period)/span, a.joules-a.saves*(at-a.period)
	if at <= a.period || at >= b.period || line-tangent <= same*p.joules || !wanted(at, tangent) {
		return nil, nil
	}
	c, err := p.solve(ctx, at)
	if err != nil || c == nil || line-c.joules <= same*p.joules {
		return nil, err
	}
	return c, nil
}

// Front finds clocks for some periods at most, and leaves out those that others beat in time and joules. Half of the periods are corners.
// The others lie between the shortest one and the least joules at equal distances.
func (c *Clocks) Front(ctx context.Context, most, tries int) (front []*Choice, err error) {
	corners, err := c.program.curve(ctx, float64(c.fastest), math.Inf(1), nil)
	if err != nil || len(corners) == 0 {
		return nil, err
	}
	first, last := corners[0].period, corners[len(corners)-1].period
	var periods []time.Duration
	for i := range most / 2 {
		part := float64(i) / float64(max(1, most/2-1))
		for _, period := range []float64{corners[int(part*float64(len(corners)-1))].period, first + part*(last-first)} {
			periods = append(periods, time.Duration(max(float64(c.fastest), math.Ceil(period))))
		}
	}
	slices.Sort(periods)
	periods = slices.Compact(periods)
	for _, period := range periods {
		aim := problem.Aim{Objective: problem.Energy, Deadline: period}
		is, err := c.Choose(ctx, aim, tries/len(periods))
		if err != nil {
			return nil, err
		}
		front = append(front, is)
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
