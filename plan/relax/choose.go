package relax

import (
	"cmp"
	"math"
	"slices"

	"dahl/plan/certificate"
	"dahl/plan/lp"
	"dahl/plan/problem"
)

const (
	// maxTried is how many counts are tried before one is chosen to split a part.
	maxTried = 8
	// tryIterations is how long a try lasts. What the bound has risen by then says enough.
	tryIterations = 2000
)

// choose finds by which count to split a part: the one whose two sides are expected to have the highest
// bounds. The expectation is the rise per moved task in earlier splits by the count; a count that
// was never split is tried [Achterberg, Koch, Martin, Branching rules revisited, 2005].
func (b *branching) choose(p *part) (certificate.Condition, error) {
	if from, to := b.spans(p); b.q.m.Objective == problem.EDP && (len(p.between) == 0 || to > from*narrow) {
		return certificate.Condition{Most: p.span}, nil
	}
	slices.SortStableFunc(p.between, func(x, y fraction) int { return cmp.Compare(b.score(y), b.score(x)) })
	best, chosen := -1.0, fraction{}
	if slices.ContainsFunc(p.between, func(f fraction) bool { return b.counts[f.count].tried[0] == 0 }) {
		// The tries begin where the part itself is solved.
		if _, _, err := b.begin(p, iterations); err != nil {
			return certificate.Condition{}, err
		}
	}
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

// splits reports whether there is something to gain by splitting a part.
func (b *branching) splits(p *part) bool {
	from, to := b.spans(p)
	return p.bound < p.proof.Value*(1-nearEnough) && (len(p.between) > 0 || b.q.m.Objective == problem.EDP && p.span > from && to > from*narrowest)
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

// score is the product of what is expected of both sides. The score of an untried count is small, and grows with the distance
// from a whole number.
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
	given, r, err := b.begin(next, tryIterations)
	if err != nil {
		return 0, err
	}
	most := p.proof.Value - p.bound
	switch r.Status {
	case lp.Infeasible:
		return most, nil
	case lp.Optimal, lp.IterationLimit:
		return min(most, max(0, b.bound(given, next, r)-p.bound)), nil
	}
	return 0, nil
}
