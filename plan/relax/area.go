package relax

import (
	"context"
	"fmt"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// Area finds a proof from the work alone, and in a cluster from what its links carry: every task runs, the units of a device share its tasks, and a
// device is awake while they do. Orders do not count, so that tasks with equal options are one
// colour and the program has a few columns. Its bound is weaker than [Bound]'s, and found in a fraction of the time.
func Area(ctx context.Context, m *certificate.Model, value float64) (*certificate.Proof, error) {
	proof, _, _, err := byWork(ctx, m, value, false, nil)
	return proof, err
}

// byWork finds a proof of a few rows, its bound and the T of its solution: from the work and links, and on demand from pools and a period.
func byWork(ctx context.Context, m *certificate.Model, value float64, pools bool, period *certificate.Row) (_ *certificate.Proof, bound, span float64, err error) {
	proof := &certificate.Proof{Value: value}
	q := newQuotient(m, byOptions(m), m.Horizon(value))
	q.addWork()
	q.addCrossing()
	if pools {
		q.addPools()
		q.addPeriod(period)
	}
	r, err := lp.NewSolver(q.program).Solve(ctx, iterations)
	switch {
	case ctx.Err() != nil:
		return proof, 0, 0, nil
	case err != nil:
		return nil, 0, 0, fmt.Errorf("relaxation by work: %w", err)
	case r.Status != lp.Optimal:
		return proof, 0, 0, nil
	}
	proof.Rows = q.multiplied(r.Y)
	return proof, r.Objective, r.X[q.column[m.ColumnSpan()]], nil
}
