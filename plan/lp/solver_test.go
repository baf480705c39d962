package lp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// standard is a problem as gonum's simplex wants it: to minimise cost·z where rows·z = right
// and z >= 0.
type standard struct {
	cost, right []float64
	rows        []map[int]float64
}

func (s *standard) column(cost float64) int {
	s.cost = append(s.cost, cost)
	return len(s.cost) - 1
}

func (s *standard) row(terms map[int]float64, right float64) {
	s.rows, s.right = append(s.rows, terms), append(s.right, right)
}

// columns adds the parts of each column x: one with a lower bound is l+z, one with an upper
// bound only u-z, a free one z-z'. A second bound is a row of its own.
func (s *standard) columns(p *Problem) (parts []map[int]float64, shift []float64) {
	for j, c := range p.cost {
		l, u := p.lower[j], p.upper[j]
		switch {
		case !math.IsInf(l, 0):
			z := s.column(c)
			parts, shift = append(parts, map[int]float64{z: 1}), append(shift, l)
			if !math.IsInf(u, 0) {
				s.row(map[int]float64{z: 1, s.column(0): 1}, u-l)
			}
		case !math.IsInf(u, 0):
			parts, shift = append(parts, map[int]float64{s.column(-c): -1}), append(shift, u)
		default:
			parts, shift = append(parts, map[int]float64{s.column(c): 1, s.column(-c): -1}), append(shift, 0)
		}
	}
	return parts, shift
}

// reference solves a problem by gonum's simplex. Each finite side of a row is a row.
func reference(p *Problem) (float64, error) {
	s := &standard{}
	parts, shift := s.columns(p)
	fixed := 0.0
	for j, c := range p.cost {
		fixed += c * shift[j]
	}
	for i, l := range p.rowLower {
		index, value := p.terms.at(int32(i))
		side := func(right float64, slack ...float64) {
			terms := map[int]float64{}
			for k, j := range index {
				for z, sign := range parts[j] {
					terms[z] += sign * value[k]
				}
				right -= value[k] * shift[j]
			}
			for _, x := range slack {
				terms[s.column(0)] = x
			}
			s.row(terms, right)
		}
		u := p.rowUpper[i]
		if l == u {
			side(l)
			continue
		}
		if !math.IsInf(l, 0) {
			side(l, -1)
		}
		if !math.IsInf(u, 0) {
			side(u, 1)
		}
	}
	if len(s.rows) == 0 || len(s.rows) > len(s.cost) {
		return 0, errors.New("gonum wants rows, and no more than columns")
	}
	a := mat.NewDense(len(s.rows), len(s.cost), nil)
	for i, terms := range s.rows {
		for j, x := range terms {
			a.Set(i, j, x)
		}
	}
	value, _, err := gonum.Simplex(s.cost, a, s.right, 1e-10, nil)
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
