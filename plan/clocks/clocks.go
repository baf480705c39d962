package clocks

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dahl/plan/problem"
)

// Clocks are the clocks that a plan may have.
type Clocks struct {
	*timing
	kept    [][]Option // by task, without those that others beat
	program *program
	fastest int64 // the shortest period
}

// Choice is a clock for each task, with what a step takes by them.
type Choice struct {
	Clock  []int // by task, as the caller numbers them
	Period time.Duration
	Joules float64
	Bound  float64 // of the objective: no clocks have less
}

// New prepares the choice of clocks. It fails where tasks wait for each other.
func New(g *Graph) (*Clocks, error) {
	m, err := newTiming(g)
	if err != nil {
		return nil, err
	}
	c := &Clocks{timing: m}
	for t := range g.Tasks {
		c.kept = append(c.kept, options(&g.Tasks[t]))
		m.takes[t] = c.kept[t][0].Nanos
	}
	c.fastest = m.shortest()
	c.program = newProgram(m, c.fastest, c.kept)
	return c, nil
}

// Choose finds clocks with a small value of an objective. Nil means that none keep the deadline. Tries is how often tasks are given other
// clocks in exchange at most. When ctx ends it is the best so far.
func (c *Clocks) Choose(ctx context.Context, aim problem.Aim, tries int) (*Choice, error) {
	if aim.Objective == problem.Time {
		aim.Deadline = max(1, time.Duration(c.fastest))
	}
	at, err := c.aimed(ctx, aim)
	if at == nil || err != nil {
		return nil, err
	}
	s := newSearch(ctx, c, aim, tries)
	if err := s.round(at); err != nil {
		return nil, err
	}
	bound := c.boundOf(aim, at)
	if aim.Objective == problem.Energy {
		bound = max(bound, s.branch(at))
	}
	s.best.Bound = min(bound, aim.Of(s.best.Period, s.best.Joules))
	return s.best, nil
}

// Bound is a value that no clocks are below; infinite where none keep the deadline.
func (c *Clocks) Bound(ctx context.Context, aim problem.Aim) (float64, error) {
	at, err := c.aimed(ctx, aim)
	if at == nil || err != nil {
		return math.Inf(1), err
	}
	return c.boundOf(aim, at), nil
}

// boundOf is a value that no clocks are below, by the least point of the curve.
func (c *Clocks) boundOf(aim problem.Aim, at *point) float64 {
	if aim.Objective == problem.Time {
		return time.Duration(c.fastest).Seconds()
	}
	return aim.Of(time.Duration(at.period), at.joules*(1-same))
}

// aimed is the point of the curve with the least value; nil means that none keeps the deadline. Between two corners joules times time is
// concave, so that it is least at a corner.
func (c *Clocks) aimed(ctx context.Context, aim problem.Aim) (at *point, err error) {
	most := c.longest(aim)
	if most < float64(c.fastest) {
		return nil, nil
	}
	if aim.Objective == problem.EDP {
		value := func(period, joules float64) float64 { return period * joules }
		corners, err := c.program.curve(ctx, float64(c.fastest), most, value)
		if err != nil || len(corners) == 0 {
			return nil, err
		}
		most = slices.MinFunc(corners, func(a, b *point) int {
			return cmp.Compare(value(a.period, a.joules), value(b.period, b.joules))
		}).period
	}
	return c.program.solve(ctx, most)
}

// longest is the longest period that keeps the deadline.
func (c *Clocks) longest(aim problem.Aim) float64 {
	if aim.Deadline > 0 {
		return float64(aim.Deadline)
	}
	return math.Inf(1)
}
