package relax

import (
	"context"
	"fmt"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// The rows of rounds: those of work, of pools and of orders are few enough to have all of them. Then follow
// rounds with rows that a solution violates.
const (
	workRound = iota
	poolRound
	orderRound
	firstCuts
	maxRounds = firstCuts + 12
)

// The rounds end where in a few of them the bound rose by less than a part of it.
const (
	vainRounds = 3
	leastRise  = 3e-4
)

// Bound finds a proof of a lower bound of a model, with the value of a plan that is known. It ends when the
// bound is enough, and when the context ends, with the best proof so far. Iterations limit each solution of
// the linear program.
func Bound(ctx context.Context, m *certificate.Model, value, enough float64, iterations int) (*certificate.Proof, error) {
	q, err := newQuotient(m, refine(m), m.Horizon(value))
	if err != nil {
		return nil, err
	}
	proof, solver := &certificate.Proof{Value: value}, lp.NewSolver(q.program)
	var bounds, x []float64
	for round := range maxRounds {
		added, err := q.extend(round, x)
		if err != nil {
			return nil, fmt.Errorf("relaxation: %w", err)
		}
		if added == 0 && round >= firstCuts {
			break
		}
		r, err := solver.Solve(ctx, iterations)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("relaxation: %w", err)
		}
		if r.Status != lp.Optimal {
			break
		}
		proof.Rows, x, bounds = q.multiplied(r.Y), r.X, append(bounds, r.Objective)
		if r.Objective >= enough || round >= firstCuts+vainRounds && r.Objective-bounds[round-vainRounds] < leastRise*r.Objective {
			break
		}
	}
	return proof, nil
}

// extend adds the rows of a round, and returns how many classes it added.
func (q *quotient) extend(round int, x []float64) (added int, err error) {
	before := len(q.classes)
	switch round {
	case workRound:
		err = q.addWork()
	case poolRound:
		err = q.addPools()
	case orderRound:
		err = q.addOrders()
	default:
		err = q.separate(x)
	}
	return len(q.classes) - before, err
}

// multiplied gives each row of a class its part of the multiplier.
func (q *quotient) multiplied(y []float64) (rows []certificate.Multiplied) {
	for i, c := range q.classes {
		if y[i] == 0 {
			continue
		}
		part := y[i] / float64(len(c.rows))
		for _, r := range c.rows {
			equal := r.Family == certificate.Assign
			if part > 0 || equal {
				rows = append(rows, certificate.Multiplied{Row: r, Multiplier: part})
			}
		}
	}
	return rows
}
