package lp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// random is a problem of small whole numbers, with a point that keeps its rows or without.
func random(t testing.TB, draw *rand.Rand, feasible bool) *Problem {
	n, m := 1+draw.IntN(8), draw.IntN(9)
	whole := func(most int) float64 { return float64(draw.IntN(2*most+1) - most) }
	columns, point := make([]column, n), make([]float64, n)
	for j := range columns {
		point[j] = whole(3)
		c := column{whole(5), -inf, inf}
		if draw.IntN(4) > 0 {
			c.lower = point[j] - float64(draw.IntN(3))
		}
		if draw.IntN(2) > 0 {
			c.upper = point[j] + float64(draw.IntN(3))
		}
		columns[j] = c
	}
	rows := make([]row, m)
	for i := range rows {
		r, at := row{-inf, inf, make([]float64, n)}, 0.0
		for j := range r.coefficients {
			if draw.IntN(2) > 0 {
				r.coefficients[j] = whole(5)
				at += r.coefficients[j] * point[j]
			}
		}
		if !feasible {
			at = whole(5)
		}
		switch draw.IntN(4) {
		case 0:
			r.lower, r.upper = at, at
		case 1:
			r.lower = at - float64(draw.IntN(2))
		case 2:
			r.upper = at + float64(draw.IntN(2))
		case 3:
			r.lower, r.upper = at-1, at+float64(draw.IntN(3))
		}
		rows[i] = r
	}
	return write(t, columns, rows)
}

// TestRandom proves every answer for small problems: an optimum by the conditions of Karush, Kuhn and Tucker, and in a box by its
// bound as well, infeasibility by its ray, and unboundedness by the optimum in a large box.
func TestRandom(t *testing.T) {
	answers := map[Status]int{}
	for seed := range uint64(1500) {
		p := random(t, rand.New(rand.NewPCG(seed, 7)), seed%3 > 0)
		boxed := seed%2 > 0
		if boxed {
			box(t, p, 1000)
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := solve(t, NewSolver(p))
			answers[r.Status]++
			switch r.Status {
			case Optimal:
				checkOptimal(t, p, r)
				if boxed {
					checkBound(t, p, r)
				}
			case Infeasible:
				ok, err := ProvesInfeasible(p, r.Ray)
				if err != nil || boxed && !ok {
					t.Errorf("ray %v does not prove that no x keeps all rows (%v)", r.Ray, err)
				} else if !ok { // residues of rounding meet infinite bounds, and are nothing in a box
					box(t, p, 1e9)
					if ok, err := ProvesInfeasible(p, r.Ray); !ok || err != nil {
						t.Errorf("ray %v does not prove that no x within a billion keeps all rows (%v)", r.Ray, err)
					}
				}
			case Unbounded:
				box(t, p, 1e9)
				if r := solve(t, NewSolver(p)); r.Status != Optimal || r.Objective > -1e7 {
					t.Errorf("unbounded, but %v with objective %v within a billion", r.Status, r.Objective)
				}
			}
		})
	}
	if min(answers[Optimal], answers[Infeasible], answers[Unbounded]) < 50 {
		t.Errorf("answers by status: %v, want at least 50 of each", answers)
	}
}

// TestPacking maximises: no basis of logicals is dual feasible, so that the primal simplex has
// to find the optimum, among many ties since values are whole and rows alike.
func TestPacking(t *testing.T) {
	for seed := range uint64(6) {
		draw := rand.New(rand.NewPCG(seed, 9))
		p := &Problem{}
		n := 30 << seed / 2
		for range n {
			p.AddColumn(-float64(1+draw.IntN(3)), 0, inf)
		}
		for first := range n {
			terms := []Term{{first, 1}}
			for _, j := range draw.Perm(n)[:5] {
				if j != first {
					terms = append(terms, Term{j, float64(1 + draw.IntN(2))})
				}
			}
			addRow(t, p, -inf, float64(1+draw.IntN(2)), terms)
		}
		r := solve(t, NewSolver(p))
		checkOptimal(t, p, r)
		checkBound(t, p, r)
	}
}

// box makes infinite bounds finite.
func box(t testing.TB, p *Problem, size float64) {
	for j, l := range p.lower {
		p.SetBounds(j, max(l, -size), min(p.upper[j], size))
	}
}

// inBox is a copy of a problem with finite bounds.
func inBox(t testing.TB, p *Problem, size float64) *Problem {
	q := *p
	q.lower, q.upper = slices.Clone(p.lower), slices.Clone(p.upper)
	box(t, &q, size)
	return &q
}
