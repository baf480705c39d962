package best

import (
	"math"

	"dahl/plan/problem"
)

// incumbentValue is the value of a plan that is known, as certificates count it: proofs cover only better plans. Without an incumbent in
// time it is a value that no useful plan reaches: a hundred times the joules of the shortest plan.
func (f *finder) incumbentValue(part problem.Objective) float64 {
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
