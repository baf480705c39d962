package lp

import (
	"context"
	"math"
	"testing"

	"dahl/must"
)

var inf = math.Inf(1)

// column and row are a problem written down: cost and bounds, sides and coefficients of all
// columns.
type column struct{ cost, lower, upper float64 }

type row struct {
	lower, upper float64
	coefficients []float64
}

func write(t testing.TB, columns []column, rows []row) *Problem {
	t.Helper()
	p := &Problem{}
	for _, c := range columns {
		p.AddColumn(c.cost, c.lower, c.upper)
	}
	for _, r := range rows {
		var terms []Term
		for j, x := range r.coefficients {
			terms = append(terms, Term{j, x})
		}
		addRow(t, p, r.lower, r.upper, terms)
	}
	return p
}

func addRow(t testing.TB, p *Problem, lower, upper float64, terms []Term) {
	t.Helper()
	p.AddRow(lower, upper, terms)
}

func solve(t testing.TB, s *Solver) *Result {
	t.Helper()
	return must.Get(s.Solve(context.Background(), 1e6))(t)
}

// near reports whether numbers are equal to a part of the larger, or of 1.
func near(a, b, part float64) bool {
	return math.Abs(a-b) <= part*max(1, math.Abs(a), math.Abs(b))
}

// checkOptimal holds a result to the conditions of Karush, Kuhn and Tucker: x keeps rows and
// bounds, multipliers and reduced costs belong together, and each has the sign of the side on which
// its row or column rests.
func checkOptimal(t testing.TB, p *Problem, r *Result) {
	t.Helper()
	if r.Status != Optimal {
		t.Fatalf("%v, want optimal", r.Status)
	}
	reduced := append([]float64(nil), p.cost...)
	dual, scale := 0.0, 1.0
	rests := func(what string, at int, x, lower, upper, multiplier float64) {
		t.Helper()
		if x < lower && !near(x, lower, 1e-7) || x > upper && !near(x, upper, 1e-7) {
			t.Errorf("%s %d is %v, outside %v to %v", what, at, x, lower, upper)
		}
		side := lower
		if multiplier < 0 {
			side = upper
		}
		if math.Abs(multiplier) < 1e-9 {
			side = x
		}
		if product := multiplier * (x - side); !(math.Abs(product) < 1e-7*scale) {
			t.Errorf("%s %d is %v in %v to %v, with multiplier %v", what, at, x, lower, upper, multiplier)
		}
		dual += multiplier * side
	}
	for j, c := range p.cost {
		scale = max(scale, math.Abs(c*r.X[j]))
	}
	for i, y := range r.Y {
		index, value := p.terms.at(int32(i))
		activity := 0.0
		for k, j := range index {
			activity += value[k] * r.X[j]
			reduced[j] -= value[k] * y
		}
		rests("row", i, activity, p.rowLower[i], p.rowUpper[i], y)
	}
	for j, d := range reduced {
		if !near(d, r.ReducedCosts[j], 1e-8) {
			t.Errorf("column %d: reduced cost %v, want %v", j, r.ReducedCosts[j], d)
		}
		rests("column", j, r.X[j], p.lower[j], p.upper[j], d)
	}
	if !near(dual, r.Objective, 1e-8) {
		t.Errorf("objective %v, dual objective %v", r.Objective, dual)
	}
}

// checkBound holds the bound that multipliers prove to the objective.
func checkBound(t testing.TB, p *Problem, r *Result) {
	t.Helper()
	bound, err := Bound(inBox(t, p, 1e4), r.Y) // optima of the tests lie within
	if err != nil || bound == nil {
		t.Fatalf("bound %v, error %v", bound, err)
	}
	if b, _ := bound.Float64(); !near(b, r.Objective, 1e-9) {
		t.Errorf("multipliers prove %v, objective %v", b, r.Objective)
	}
}
