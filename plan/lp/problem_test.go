package lp

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// TestByHand solves problems whose solutions are derived beside them.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns []column
		rows    []row
		status  Status
		x       []float64 // where it is unique
		value   float64
	}{
		{"example of the package", []column{{2, 0, 3}, {3, 0, 10}}, []row{{4, inf, []float64{1, 1}}}, Optimal, []float64{3, 1}, 9},
		// The second row times -3/2 leaves 5/4 of x₃, which is at most 1: -5/4 at x₁ = x₃ = 1.
		{"Beale's cycle", []column{{-0.75, 0, inf}, {20, 0, inf}, {-0.5, 0, 1}, {6, 0, inf}},
			[]row{{-inf, 0, []float64{0.25, -8, -1, 9}}, {-inf, 0, []float64{0.5, -12, -0.5, 3}}}, Optimal, []float64{1, 0, 1, 0}, -1.25},
		{"no rows", []column{{1, 1, 2}, {-1, 1, 2}, {0, -inf, inf}}, nil, Optimal, []float64{1, 2, 0}, -1},
		{"neither rows nor columns", nil, nil, Optimal, nil, 0},
		{"an empty row", []column{{1, 1, 2}}, []row{{-1, 1, []float64{0}}}, Optimal, []float64{1}, 1},
		{"free column held by an equation", []column{{1, -inf, inf}, {0, -3, 5}}, []row{{0, 0, []float64{1, -1}}}, Optimal, []float64{-3, -3}, -3},
		// x₁ - x₂ = 1 and x₁ + x₂ = 3.
		{"two equations, free columns", []column{{1, -inf, inf}, {1, -inf, inf}}, []row{{1, 1, []float64{1, -1}}, {3, 3, []float64{1, 1}}}, Optimal, []float64{2, 1}, 3},
		{"an equation twice", []column{{1, 0, inf}, {2, 0, inf}}, []row{{2, 2, []float64{1, 1}}, {4, 4, []float64{2, 2}}}, Optimal, []float64{2, 0}, 2},
		{"upper side of a range", []column{{-1, 0, inf}, {-1, 0, inf}}, []row{{1, 3, []float64{1, 2}}}, Optimal, []float64{3, 0}, -3},
		{"upper bounds only", []column{{-1, -inf, 4}, {-1, -inf, 2}}, []row{{-inf, 5, []float64{1, 1}}}, Optimal, nil, -5},
		{"fixed columns", []column{{1, 2, 2}, {1, 0, inf}}, []row{{3, inf, []float64{1, 1}}}, Optimal, []float64{2, 1}, 3},
		{"bounds too small", []column{{1, 0, 2}, {1, 0, 2}}, []row{{5, inf, []float64{1, 1}}}, Infeasible, nil, 0},
		{"rows against each other, and a cost that falls forever", []column{{-1, 0, inf}, {0, -inf, inf}},
			[]row{{1, inf, []float64{0, 1}}, {-inf, 0, []float64{0, 1}}}, Infeasible, nil, 0},
		{"an empty row that asks for 1", []column{{1, 0, 1}}, []row{{1, 1, []float64{0}}}, Infeasible, nil, 0},
		{"a ray", []column{{-1, 0, inf}, {0, 0, inf}}, []row{{-inf, 1, []float64{1, -1}}}, Unbounded, nil, 0},
		{"no rows, no bounds", []column{{1, -inf, inf}}, nil, Unbounded, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := write(t, c.columns, c.rows)
			r := solve(t, NewSolver(p))
			if r.Status != c.status {
				t.Fatalf("%v, want %v", r.Status, c.status)
			}
			switch c.status {
			case Infeasible:
				if ok, err := ProvesInfeasible(p, r.Ray); !ok || err != nil {
					t.Errorf("ray %v proves nothing (%v)", r.Ray, err)
				}
			case Optimal:
				checkOptimal(t, p, r)
				checkBound(t, p, r) // whole numbers leave no residues
				if !near(r.Objective, c.value, 1e-12) {
					t.Errorf("objective %v, want %v", r.Objective, c.value)
				}
				if c.x != nil && !slices.EqualFunc(r.X, c.x, func(a, b float64) bool { return near(a, b, 1e-12) }) {
					t.Errorf("x = %v, want %v", r.X, c.x)
				}
			}
		})
	}
}

// TestBound adds up the example of the package by hand, for good, weak and useless multipliers.
func TestBound(t *testing.T) {
	p := write(t, []column{{2, 0, 3}, {3, 0, 10}}, []row{{4, inf, []float64{1, 1}}})
	for _, c := range []struct{ y, want float64 }{
		{3, 9},  // 3·4 - 1·3
		{2, 8},  // 2·4 + 1·0
		{4, 0},  // 4·4 - 2·3 - 1·10
		{0, 0},  // costs and bounds are not negative
		{-1, 0}, // asks for the infinite side, and is taken as 0
	} {
		bound, err := Bound(p, []float64{c.y})
		if err != nil || bound == nil || bound.Cmp(new(big.Rat).SetFloat64(c.want)) != 0 {
			t.Errorf("multiplier %v: bound %v, error %v, want %v", c.y, bound, err, c.want)
		}
	}
	if _, err := Bound(p, []float64{math.NaN()}); err == nil {
		t.Error("NaN is taken for a multiplier")
	}
	if _, err := Bound(p, nil); err == nil {
		t.Error("no multipliers for one row")
	}
}

// TestErrors: what may not stand in a problem is named when it is solved, and nothing more is added.
func TestErrors(t *testing.T) {
	addColumn := func(cost, lower, upper float64) func(*Problem) {
		return func(p *Problem) { p.AddColumn(cost, lower, upper) }
	}
	addRow := func(lower, upper float64, terms ...Term) func(*Problem) {
		return func(p *Problem) { p.AddRow(lower, upper, terms) }
	}
	bounds := func(of int, lower, upper float64) func(*Problem) {
		return func(p *Problem) { p.SetBounds(of, lower, upper) }
	}
	for _, c := range []struct {
		add  func(*Problem)
		want string
	}{
		{addColumn(math.NaN(), 0, 1), "cost of column 2: NaN is not"},
		{addColumn(inf, 0, 1), "cost of column 2: +Inf is not"},
		{addColumn(1e-30, 0, 1), "choose another unit"},
		{addColumn(1, 1, 0), "column 2: no number lies between 1 and 0"},
		{addColumn(1, inf, inf), "no number lies between"},
		{addColumn(1, -inf, -inf), "no number lies between"},
		{addColumn(1, math.NaN(), 1), "column 2: bound NaN is not"},
		{addColumn(1, 0, 1e30), "column 2: bound 1e+30 is not"},
		{addRow(2, 1), "row 1: no number lies between 2 and 1"},
		{addRow(0, 1, Term{2, 1}), "row 1: column 2: the problem has 2 columns"},
		{addRow(0, 1, Term{-1, 1}), "row 1: column -1: the problem has 2 columns"},
		{addRow(0, 1, Term{0, 1}, Term{0, 1}), "row 1: column 0 stands in it twice"},
		{addRow(0, 1, Term{0, math.Inf(-1)}), "row 1: coefficient of column 0: -Inf is not"},
		{bounds(5, 0, 1), "column 5: the problem has 2 columns"},
		{bounds(0, 2, 1), "column 0: no number lies between 2 and 1"},
	} {
		p := write(t, []column{{1, 0, 1}, {1, 0, 1}}, []row{{0, 1, []float64{1, 1}}})
		c.add(p)
		p.AddColumn(1, 1, 0)
		if _, err := NewSolver(p).Solve(t.Context(), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		if p.Columns() != 2 || p.Rows() != 1 {
			t.Errorf("%d columns and %d rows, want 2 and 1", p.Columns(), p.Rows())
		}
	}
}

// TestLimits: a context that ended is an error, with a result like that of a limit of iterations, whose
// multipliers still prove a bound; equal problems end in equal bits.
func TestLimits(t *testing.T) {
	p := layered(3, 70, 5).problem(t, true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := NewSolver(p).Solve(ctx, 1e6); !errors.Is(err, context.Canceled) || r == nil {
		t.Errorf("result %v, error %v, want that of the context", r, err)
	}
	best := solve(t, NewSolver(p))
	short, err := NewSolver(p).Solve(context.Background(), best.Iterations/2)
	if err != nil || short.Status != IterationLimit || short.Iterations != best.Iterations/2 {
		t.Fatalf("%+v, error %v", short, err)
	}
	bound, err := Bound(inBox(t, p, 1e4), short.Y)
	if err != nil || bound == nil || bound.Sign() <= 0 {
		t.Fatalf("half of the iterations prove %v (%v), want something above 0", bound, err)
	}
	if b, _ := bound.Float64(); b >= best.Objective {
		t.Errorf("half of the iterations prove %v, the optimum is %v", b, best.Objective)
	}
	const look = 64 // iterations between two looks at the context
	looks := best.Iterations / 2 / look
	if short, err = NewSolver(p).Solve(must.EndsAtLook(t, looks), 1e6); err == nil || short.Iterations%look != 0 {
		t.Fatalf("ended at look %d: %+v, error %v", looks, short, err)
	}
	atLimit := must.Get(NewSolver(p).Solve(context.Background(), short.Iterations))(t)
	if looks == 0 || !slices.Equal(short.Y, atLimit.Y) {
		t.Errorf("after %d iterations the end of a context leaves other multipliers than the limit does", short.Iterations)
	}
	again := solve(t, NewSolver(layered(3, 70, 5).problem(t, true)))
	if !slices.Equal(again.X, best.X) || !slices.Equal(again.Y, best.Y) || again.Iterations != best.Iterations {
		t.Error("the same problem ended in other bits")
	}
}

// FuzzProblem builds a problem of any numbers. Nothing but an error comes of bad ones, and what
// is taken is solved or given up, and proved or not.
func FuzzProblem(f *testing.F) {
	seed := func(numbers ...float64) {
		var data []byte
		for _, x := range numbers {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
		}
		f.Add(uint8(2), data)
	}
	seed(2, 0, 3, 3, 0, 10, 4, inf, 1, 1)
	seed(math.NaN(), 0, 1, -1, 0, inf, 1, 0, 1, 1)
	seed(-1, -inf, inf, 1e20, -1e20, 1e20, -1e20, 1e-20, 1e20, 1e-20, 0, 0, 1e-20, 1e20)
	f.Fuzz(func(t *testing.T, columns uint8, data []byte) {
		number := func() (x float64) {
			if len(data) >= 8 {
				x, data = math.Float64frombits(binary.LittleEndian.Uint64(data)), data[8:]
			}
			return x
		}
		p := &Problem{}
		for range columns % 8 {
			p.AddColumn(number(), number(), number())
		}
		for len(data) >= 8 {
			lower, upper := number(), number()
			var terms []Term
			for j := range p.Columns() {
				terms = append(terms, Term{j, number()})
			}
			p.AddRow(lower, upper, terms)
		}
		r, err := NewSolver(p).Solve(context.Background(), 200)
		if err != nil {
			return
		}
		if _, err := Bound(p, r.Y); err != nil && !slices.ContainsFunc(r.Y, notFinite) {
			t.Fatal(err)
		}
	})
}

func notFinite(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
