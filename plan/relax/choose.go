package relax

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// maxTried is how many counts are tried before one is chosen to split a part.
const maxTried = 8

// choose finds by which count to split a part: the one whose two sides are expected to have the highest bounds. What is
// expected is what splits by the count gave before, for each task that it moved; a
// count that was never split is tried [Achterberg, Koch, Martin, Branching rules revisited, 2005].
func (b *branching) choose(p *part) (certificate.Condition, error) {
	slices.SortStableFunc(p.between, func(x, y fraction) int { return cmp.Compare(b.score(y), b.score(x)) })
	best, chosen := -1.0, fraction{}
	tried := 0
	for _, f := range p.between {
		c := &b.counts[f.count]
		if c.tried[0] == 0 && tried < maxTried {
			tried++
			for side, condition := range f.sides(c) {
				rise, err := b.try(p, condition)
				if err != nil {
					return condition, err
				}
				c.raised[side] += rise / f.moves(side)
				c.tried[side]++
			}
		}
		if score := b.score(f); score > best {
			best, chosen = score, f
		}
	}
	return chosen.sides(&b.counts[chosen.count])[0], nil
}

// sides are the conditions of a split by a count.
func (f fraction) sides(c *count) [2]certificate.Condition {
	few := certificate.Condition{Tasks: c.tasks, Devices: c.devices, Most: math.Floor(f.is)}
	return [2]certificate.Condition{few, few.Other()}
}

// moves is by how much a side of a split changes the count at least.
func (f fraction) moves(side int) float64 {
	if side == 0 {
		return f.is - math.Floor(f.is)
	}
	return math.Ceil(f.is) - f.is
}

// score is the product of what is expected of both sides. Of a count that was not tried that is little, and more the further it
// is from a whole number.
func (b *branching) score(f fraction) float64 {
	c := &b.counts[f.count]
	product := 1.0
	for side := range 2 {
		if c.tried[side] == 0 {
			return 1e-20 * f.moves(0) * f.moves(1)
		}
		product *= max(1e-9, float64(c.raised[side]/c.tried[side]*f.moves(side)))
	}
	return product
}

// try is by how much a condition raises the bound of a part, at most up to the known value.
func (b *branching) try(p *part, c certificate.Condition) (float64, error) {
	next := p.given(c)
	given, err := b.q.m.Given(next.proof.Where)
	if err == nil {
		err = b.setBounds(given, next.proof.Where)
	}
	if err != nil {
		return 0, fmt.Errorf("relaxation: %w", err)
	}
	r, err := b.solver.Solve(b.ctx, b.iterations)
	if err != nil {
		return 0, fmt.Errorf("relaxation: %w", err)
	}
	most := p.proof.Value - p.bound
	switch r.Status {
	case lp.Infeasible:
		return most, nil
	case lp.Optimal:
		return min(most, max(0, r.Objective-p.bound)), nil
	}
	return 0, nil
}
