package relax

import (
	"context"
	"errors"
	"fmt"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// maxRounds is how often rows are added to a program and it is solved again.
const maxRounds = 12

// Bound finds a proof of a lower bound of a model, with the value of a plan that is known. Iterations
// limit each solution of the linear program. After the deadline of ctx the proof is that of the last one,
// and of nothing if there is none.
func Bound(ctx context.Context, m *certificate.Model, value float64, iterations int) (*certificate.Proof, error) {
	return bound(ctx, m, refine(m), value, iterations)
}

// bound solves the program with one column for each colour.
func bound(ctx context.Context, m *certificate.Model, c *colours, value float64, iterations int) (*certificate.Proof, error) {
	q, err := newQuotient(m, c, m.Horizon(value))
	if err != nil {
		return nil, err
	}
	if err := q.addAlways(); err != nil {
		return nil, fmt.Errorf("relaxation: %w", err)
	}
	proof := &certificate.Proof{Value: value}
	solver := lp.NewSolver(q.program)
	for range maxRounds {
		r, err := solver.Solve(ctx, iterations)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("relaxation: %w", err)
		}
		if r.Status != lp.Optimal {
			break
		}
		proof.Rows = q.multiplied(r.Y)
		turns, err := q.separateTurns(r.X)
		if err != nil {
			return proof, err
		}
		if added, err := q.separate(r.X); added+turns == 0 || err != nil {
			return proof, err
		}
	}
	return proof, nil
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
