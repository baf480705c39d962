package relax

import (
	"context"
	"fmt"
	"slices"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// maxRounds is how often rows are added to a program and it is solved again. The rounds end where in a few of
// them the bound rose by less than a part of it.
const (
	maxRounds  = 13
	vainRounds = 2
	leastRise  = 3e-4
)

// iterations bounds each solution of a linear program, far above what the largest have taken.
const iterations = 200_000

// Bound finds a proof of a lower bound of a model, with the value of a plan that is known. It ends when the
// bound reaches that value, and when the context ends, with the best proof so far: it may be the multipliers of a program that is not solved yet.
func Bound(ctx context.Context, m *certificate.Model, value float64) (*certificate.Proof, error) {
	proof, bound, span, err := byWork(ctx, m, value, true, nil)
	if err != nil || bound >= value || ctx.Err() != nil {
		return proof, err
	}
	period := period(m, span, span+(value-bound)/m.Cost()[m.ColumnSpan()])
	if period != nil {
		if proof, bound, _, err = byWork(ctx, m, value, true, period); err != nil || bound >= value || ctx.Err() != nil {
			return proof, err
		}
	}
	q := newQuotient(m, refine(m), m.Horizon(value))
	q.addFixed()
	q.addPeriod(period)
	solver := lp.NewSolver(q.program)
	var bounds []float64
	for round := range maxRounds {
		r, err := solver.Solve(ctx, iterations)
		if ctx.Err() != nil {
			if r != nil && r.Objective > slices.Max(append(bounds, bound)) {
				proof.Rows = q.multiplied(r.Y)
			}
			break
		}
		if err != nil {
			return nil, fmt.Errorf("relaxation: %w", err)
		}
		if r.Status != lp.Optimal {
			break
		}
		proof.Rows, bounds = q.multiplied(r.Y), append(bounds, r.Objective)
		if r.Objective >= value || round >= vainRounds && r.Objective-bounds[round-vainRounds] < leastRise*r.Objective {
			break
		}
		if q.separate(r.X) == 0 {
			break
		}
	}
	return proof, nil
}

// multiplied gives each row of a class its part of the multiplier, but for those that a check finds itself.
func (q *quotient) multiplied(y []float64) (rows []certificate.Multiplied) {
	for i, class := range q.classes {
		if y[i] == 0 {
			continue
		}
		part := y[i] / float64(len(class))
		for _, r := range class {
			if part > 0 && r.Family != certificate.Assign {
				rows = append(rows, certificate.Multiplied{Row: r, Multiplier: part})
			}
		}
	}
	return slices.Clone(rows) // without room for more: a search keeps many proofs
}
