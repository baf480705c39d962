package best

import (
	"math"

	"dahl/plan/problem"
)

// known is the value of a plan that is known, as certificates count it: proofs are of plans that are better. While no plan is
// known that keeps the deadline, it is what none that is worth its joules takes: a hundred times those of the shortest.
func (f *finder) known(part problem.Objective) float64 {
	span, joules := f.best.Makespan, f.best.Joules
	if math.IsInf(f.best.Value, 1) {
		span, joules = f.Deadline, 100*joules
	}
	switch part {
	case problem.Time:
		return float64(span)
	case problem.Energy:
		return joules * 1e9
	}
	return f.Objective.Of(span, joules) * 1e18
}
