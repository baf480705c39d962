package clocks

import (
	"cmp"
	"context"
	"fmt"
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

// starts is from where clocks are rounded: from the clocks of longer periods, by factors, and with some tasks rounded to slower ones.
var starts = struct{ periods, up []float64 }{[]float64{1, 1.002, 1.004, 1.008}, []float64{0, 0.3, 0.6}}

// Choose finds clocks with a small value of an objective. Nil means that none keep the deadline. Tries is how often tasks are given other
// clocks in exchange at most. When ctx ends it is the best so far.
func (c *Clocks) Choose(ctx context.Context, aim problem.Aim, tries int) (*Choice, error) {
	if aim.Objective == problem.Time {
		aim.Deadline = time.Duration(c.fastest)
	}
	at, err := c.aimed(ctx, aim)
	if at == nil || err != nil {
		return nil, err
	}
	return c.round(ctx, at, aim, tries)
}

// Bound is a value that no clocks are below; infinite where none keep the deadline.
func (c *Clocks) Bound(ctx context.Context, aim problem.Aim) (float64, error) {
	if aim.Objective == problem.Time {
		return time.Duration(c.fastest).Seconds(), nil
	}
	at, err := c.aimed(ctx, aim)
	if at == nil || err != nil {
		return math.Inf(1), err
	}
	return aim.Of(time.Duration(at.period), at.joules*(1-same)), nil
}

// aimed is the point of the curve with the least value; nil means that none keeps the deadline. Between two corners joules times time is
// concave, so that it is least at a corner.
func (c *Clocks) aimed(ctx context.Context, aim problem.Aim) (at *point, err error) {
	most := math.Inf(1)
	if aim.Deadline > 0 {
		if most = float64(aim.Deadline); aim.Deadline < time.Duration(c.fastest) {
			return nil, nil
		}
	}
	if aim.Objective == problem.EDP {
		corners, err := c.program.curve(ctx, c.fastest)
		if err != nil {
			return nil, err
		}
		corners = slices.DeleteFunc(corners, func(p *point) bool { return p.period > most })
		if len(corners) > 0 {
			most = slices.MinFunc(corners, func(a, b *point) int { return cmp.Compare(a.period*a.joules, b.period*b.joules) }).period
		}
	}
	if at, err = c.program.solve(ctx, most); err == nil && at == nil {
		err = fmt.Errorf("no period of at most %g ns, though there is one of %d", most, c.fastest)
	}
	return at, err
}

// round finds clocks near a point.
func (c *Clocks) round(ctx context.Context, at *point, aim problem.Aim, tries int) (best *Choice, err error) {
	r := &rounding{ctx: ctx, timing: c.timing, kept: c.kept, choice: make([]int, len(c.kept)), tries: tries}
	left := len(starts.periods) * len(starts.up)
	for _, factor := range starts.periods {
		from := at
		if factor > 1 {
			if from, err = c.program.solve(ctx, at.period*factor); err != nil && best != nil && ctx.Err() != nil {
				return best, nil
			} else if err != nil {
				return nil, err
			}
		}
		period := max(at.period*factor, float64(c.fastest))
		if aim.Deadline > 0 {
			period = min(period, float64(aim.Deadline))
		}
		for _, up := range starts.up {
			r.left = r.tries / left
			before := r.left
			if !r.begin(from, up, int64(math.Ceil(period))) {
				return nil, fmt.Errorf("no clocks for a period of %g ns, though there are some for %d", period, c.fastest)
			}
			r.reclaim(none)
			r.exchange()
			r.tries, left = r.tries-before+r.left, left-1
			if now := c.choice(r); best == nil || cmp.Or(cmp.Compare(aim.Of(now.Period, now.Joules), aim.Of(best.Period, best.Joules)), cmp.Compare(now.Joules, best.Joules)) < 0 {
				best = now
			}
		}
	}
	return best, nil
}

// choice is what a rounding comes to.
func (c *Clocks) choice(r *rounding) *Choice {
	is := &Choice{Period: time.Duration(r.shortest()), Joules: r.joules}
	is.Joules += c.Watts * is.Period.Seconds()
	for t, o := range r.choice {
		is.Clock = append(is.Clock, c.kept[t][o].Clock)
	}
	return is
}
