package relax

import (
	"math"

	"dahl/plan/certificate"
	"dahl/plan/lp"
	"dahl/plan/problem"
)

// Energy times time is no linear objective. The least energy of a given T, as the relaxation has it, is a
// convex function of T, so each tangent lies below it: its multipliers, found where T has a fixed value, prove
// that energy is at least rest + slope·T for every T. The product with T is then at least the lesser of
// T·(rest + slope·T) at both ends of an interval, and intervals are split until they are short: what a tangent
// lies below the function by falls with the square of their length.
//
// A worked example. A device of 1 W idle does work of 8 J in 4 s, or of 2 J in 8 s at a second clock, or a
// mean of both: energy is at least 8 + (T−4)·(2−8)/4 + T = 14 − T/2 for T from 4 to 8 s. The product 14·T −
// T²/2 is 48 at 4 and 80 at 8, so it is at least 48, which is reached. The product of two bounds, 4 s and 10
// J, is 40.

const (
	// narrow is the ratio of the ends of an interval of T below which counts are split first.
	narrow = 1.05
	// narrowest is the ratio below which it is left alone.
	narrowest = 1 + 1e-6
)

// spans are the least and the greatest T of a part.
func (b *branching) spans(p *part) (from, to float64) {
	given, err := b.q.m.Given(p.proof.Where)
	if err != nil {
		panic("relax: a part with wrong conditions: " + err.Error())
	}
	return given.LeastSpan, given.Horizon(p.proof.Value)
}

// setSpan fixes T in the middle of its interval if the objective is a product.
func (b *branching) setSpan(given *certificate.Model, p *part) {
	if given.Objective != problem.EDP {
		return
	}
	from, to := given.LeastSpan, given.Horizon(p.proof.Value)
	if math.IsInf(to, 1) || from >= to {
		p.span = from
	} else if p.span = math.Sqrt(from * to); from == 0 {
		p.span = to / 2
	}
	b.q.program.SetBounds(b.span(), p.span, p.span)
}

func (b *branching) span() int { return int(b.q.column[b.q.m.ColumnSpan()]) }

// freeSpan lets T be anything in its interval, where it was fixed to what cannot be; false means it was not fixed.
func (b *branching) freeSpan(given *certificate.Model, p *part) bool {
	if given.Objective != problem.EDP || p.free {
		return false
	}
	p.free = true
	b.q.program.SetBounds(b.span(), given.LeastSpan, max(given.LeastSpan, given.Horizon(p.proof.Value)))
	return true
}

// bound returns the bound of a part by a solution, in floating-point numbers.
func (b *branching) bound(given *certificate.Model, p *part, r *lp.Result) float64 {
	if given.Objective != problem.EDP {
		return r.Objective
	}
	slope, t := r.ReducedCosts[b.span()], r.X[b.span()]
	rest := r.Objective - float64(slope*t)
	least := math.Inf(1)
	for _, end := range [2]float64{given.LeastSpan, given.Horizon(p.proof.Value)} {
		if math.IsInf(end, 1) && slope >= 0 {
			continue // the product grows with T
		}
		least = min(least, float64(end*(rest+float64(slope*end))))
	}
	return least
}
