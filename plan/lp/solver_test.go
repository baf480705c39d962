package lp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	gonum "gonum.org/v1/gonum/optimize/convex/lp"
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

// reference solves a problem by gonum's simplex, which wants Az = b with z >= 0: a column with
// a lower bound is l+z, one with an upper bound only u-z, a free one z-z'. Every second side
// is a row of its own, with its own slack.
func reference(p *Problem) (float64, error) {
	type row struct {
		terms map[int]float64
		right float64
	}
	var cost []float64
	var rows []row
	fixed := 0.0
	add := func(c float64) int { cost = append(cost, c); return len(cost) - 1 }
	rowsOf := make([][]row, 1)
	shift := make([]float64, len(p.cost))
	parts := make([]map[int]float64, len(p.cost))
	for j, c := range p.cost {
		l, u := p.lower[j], p.upper[j]
		switch {
		case !math.IsInf(l, 0):
			parts[j], shift[j] = map[int]float64{add(c): 1}, l
			if !math.IsInf(u, 0) {
				rowsOf[0] = append(rowsOf[0], row{map[int]float64{len(cost) - 1: 1, add(0): 1}, u - l})
			}
		case !math.IsInf(u, 0):
			parts[j], shift[j] = map[int]float64{add(-c): -1}, u
		default:
			parts[j] = map[int]float64{add(c): 1, add(-c): -1}
		}
		fixed += c * shift[j]
	}
	rows = rowsOf[0]
	for i := range p.rowLower {
		index, value := p.terms.at(int32(i))
		side := func(to, slack float64) {
			r := row{map[int]float64{}, to}
			for k, j := range index {
				for z, sign := range parts[j] {
					r.terms[z] += sign * value[k]
				}
				r.right -= value[k] * shift[j]
			}
			if slack != 0 {
				r.terms[add(0)] = slack
			}
			rows = append(rows, r)
		}
		l, u := p.rowLower[i], p.rowUpper[i]
		if l == u {
			side(l, 0)
			continue
		}
		if !math.IsInf(l, 0) {
			side(l, -1)
		}
		if !math.IsInf(u, 0) {
			side(u, 1)
		}
	}
	if len(rows) == 0 {
		return 0, errors.New("no rows")
	}
	a, b := mat.NewDense(len(rows), len(cost), nil), make([]float64, len(rows))
	for i, r := range rows {
		b[i] = r.right
		for j, x := range r.terms {
			a.Set(i, j, x)
		}
	}
	if len(rows) > len(cost) {
		return 0, errors.New("more rows than columns")
	}
	value, _, err := gonum.Simplex(cost, a, b, 1e-10, nil)
	return value + fixed, err
}

// TestRandom solves small problems as gonum does, where that succeeds, and proves every
// answer. Where its verdict is another than ours the proof of ours decides.
func TestRandom(t *testing.T) {
	compared := map[Status]int{}
	for seed := range uint64(1500) {
		p := random(t, rand.New(rand.NewPCG(seed, 7)), seed%3 > 0)
		boxed := seed%2 > 0
		if boxed {
			box(t, p, 1000)
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := solve(t, NewSolver(p))
			want, err := reference(p)
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
			if err == nil {
				if r.Status != Optimal || !near(r.Objective, want, 1e-8) {
					t.Errorf("%v with objective %v, want %v", r.Status, r.Objective, want)
				}
				compared[r.Status]++
			}
		})
	}
	if compared[Optimal] < 400 {
		t.Errorf("gonum solved %d problems, want at least 400", compared[Optimal])
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
			if _, err := p.AddColumn(-float64(1+draw.IntN(3)), 0, inf); err != nil {
				t.Fatal(err)
			}
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
		for j := range n { // by the row of its own
			if err := p.Imply(j, 0, 2); err != nil {
				t.Fatal(err)
			}
		}
		r := solve(t, NewSolver(p))
		checkOptimal(t, p, r)
		checkBound(t, p, r)
	}
}

// box makes infinite bounds finite.
func box(t testing.TB, p *Problem, size float64) {
	for j, l := range p.lower {
		if err := p.SetBounds(j, max(l, -size), min(p.upper[j], size)); err != nil {
			t.Fatal(err)
		}
	}
}
