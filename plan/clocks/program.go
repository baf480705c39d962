package clocks

import (
	"context"
	"fmt"
	"math"
	"slices"

	"dahl/plan/lp"
)

// program is the linear program of a graph: when tasks start, how much longer than at their fastest clock they take, and the
// period. Of a task each edge of its hull is a column, which is as long as the edge. The hull is convex, so that the first edges save most
// for each nanosecond, and are used first.
type program struct {
	*timing
	least    [][]Option // by task: those on the hull, the fastest first
	solver   *lp.Solver
	problem  *lp.Problem
	edges    []int32 // by task: its first column
	columnT  int
	nanos    float64 // of a unit of time of the program
	joules   float64 // of a unit of its objective
	constant float64 // joules at the fastest clocks
}

// point is a solution: the least joules of a period, if tasks may take any time between two clocks.
type point struct {
	period float64
	joules float64
	saves  float64   // joules for each nanosecond that the period may be longer
	longer []float64 // by task: the nanoseconds beyond its fastest clock
}

func newProgram(m *timing, fastest int64, kept [][]Option) *program {
	p := &program{timing: m, problem: new(lp.Problem), nanos: float64(max(1, fastest))}
	for t := range m.Tasks {
		var on []Option
		for _, i := range hull(kept[t]) {
			on = append(on, kept[t][i])
		}
		p.least = append(p.least, on)
		p.constant += on[0].Joules
		p.joules += on[0].Joules - on[len(on)-1].Joules
	}
	if p.joules += m.Watts * p.nanos / 1e9; p.joules <= 0 {
		p.joules = 1
	}
	p.addColumns()
	p.addWaits()
	p.solver = lp.NewSolver(p.problem)
	return p
}

func (p *program) addColumns() {
	for range p.Tasks {
		p.problem.AddColumn(0, 0, math.Inf(1))
	}
	p.columnT = p.problem.AddColumn(p.Watts*p.nanos/1e9/p.joules, 0, math.Inf(1))
	for _, on := range p.least {
		p.edges = append(p.edges, int32(p.problem.Columns()))
		for i := range on[1:] {
			p.problem.AddColumn(slope(on[i], on[i+1])*p.nanos/p.joules, 0, float64(on[i+1].Nanos-on[i].Nanos)/p.nanos)
		}
	}
}

func (p *program) addWaits() {
	for _, w := range p.Waits {
		terms := map[int]float64{}
		terms[int(w.To)]++
		terms[int(w.From)]--
		terms[p.columnT] += float64(w.Back)
		for i := range p.least[w.From][1:] {
			terms[int(p.edges[w.From])+i]--
		}
		var row []lp.Term
		for column, coefficient := range terms {
			row = append(row, lp.Term{Column: column, Coefficient: coefficient})
		}
		slices.SortFunc(row, func(a, b lp.Term) int { return a.Column - b.Column })
		p.problem.AddRow(float64(p.least[w.From][0].Nanos+w.Delay)/p.nanos, math.Inf(1), row)
	}
}

// limit lets a task take no less than some nanoseconds and no more than others.
func (p *program) limit(t int32, from, to int64) {
	on := p.least[t]
	for i := range on[1:] {
		at, long := on[i].Nanos, on[i+1].Nanos-on[i].Nanos
		p.problem.SetBounds(int(p.edges[t])+i, float64(min(max(0, from-at), long))/p.nanos, float64(min(max(0, to-at), long))/p.nanos)
	}
}

// solve finds the least joules of a period of some nanoseconds at most; nil means there is none.
func (p *program) solve(ctx context.Context, most float64) (*point, error) {
	p.problem.SetBounds(p.columnT, 0, most/p.nanos)
	r, err := p.solver.Solve(ctx, 50*(p.problem.Rows()+p.problem.Columns()))
	switch {
	case err != nil:
		return nil, err
	case r.Status == lp.Infeasible:
		return nil, nil
	case r.Status != lp.Optimal:
		return nil, fmt.Errorf("the linear program of the clocks of %d tasks ended without a result", len(p.Tasks))
	}
	at := &point{period: r.X[p.columnT] * p.nanos, joules: p.constant + r.Objective*p.joules, saves: max(0, -r.ReducedCosts[p.columnT]) * p.joules / p.nanos}
	for t, on := range p.least {
		longer := 0.0
		for i := range on[1:] {
			longer += r.X[int(p.edges[t])+i]
		}
		at.longer = append(at.longer, longer*p.nanos)
	}
	return at, nil
}
