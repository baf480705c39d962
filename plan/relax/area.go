package relax

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// Area finds a proof from the work alone: every task runs, the units of a device share its tasks, and a
// device is awake while they do. Orders and data do not count, so that tasks with equal options are one
// colour and the program has a few columns. Its bound is weaker than that of [Bound] and found in a
// fraction of the time.
func Area(ctx context.Context, m *certificate.Model, value float64, iterations int) (*certificate.Proof, error) {
	q, err := newQuotient(m, byOptions(m), m.Horizon(value))
	if err != nil {
		return nil, err
	}
	if err := q.addWork(); err != nil {
		return nil, fmt.Errorf("relaxation by work: %w", err)
	}
	r, err := lp.NewSolver(q.program).Solve(ctx, iterations)
	if err != nil {
		return nil, fmt.Errorf("relaxation by work: %w", err)
	}
	proof := &certificate.Proof{Value: value}
	if r.Status == lp.Optimal {
		proof.Rows = q.multiplied(r.Y)
	}
	return proof, nil
}

// byOptions colours tasks by their options. All versions are one colour, since no row of work is about
// them.
func byOptions(m *certificate.Model) *colours {
	c := &colours{task: make([]int32, len(m.Tasks)), version: make([]int32, len(m.Versions))}
	texts := make([]string, len(m.Tasks))
	var text []byte
	for t := range m.Tasks {
		text = text[:0]
		for _, o := range m.Tasks[t].Options {
			for _, x := range [...]uint64{uint64(o.Device), uint64(o.Clock), uint64(o.Nanos), uint64(o.AwakeNanos), math.Float64bits(o.Nanojoules)} {
				text = binary.LittleEndian.AppendUint64(text, x)
			}
		}
		texts[t] = string(text)
	}
	number(texts, c.task)
	c.tasks, c.versions = members(c.task), members(c.version)
	return c
}
