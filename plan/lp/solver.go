package lp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	primalTolerance = 1e-9  // of a scaled value from its bound, relative above 1
	dualTolerance   = 1e-9  // of a scaled reduced cost
	dualRounding    = 1e-14 // of a scaled reduced cost, relative to the largest of its terms
	pivotTolerance  = 1e-9  // of an entry of a pivot row or column
	perturbation    = 1e-6  // of a scaled cost, relative above 1
	maxUpdates      = 100   // of a basis before it is factored anew
	maxRounds       = 20    // of dual and primal simplex in turn
)

// Status says how a solve ended, as far as floating-point numbers can tell.
type Status int

const (
	Optimal        Status = iota // X has the least objective
	Infeasible                   // no point keeps all bounds, and Ray proves it
	Unbounded                    // the objective falls without end
	IterationLimit               // the iterations ended before one of these was known
)

// Result is where a solve ended. Signs follow the convention of a minimum: a row with a positive
// multiplier rests on its lower side, one with a negative on its upper side, and columns with
// reduced costs c − Aᵀy likewise on their bounds.
type Result struct {
	Status       Status
	X            []float64 // by column
	Y            []float64 // multipliers by row
	ReducedCosts []float64 // by column
	Objective    float64   // c·X
	Ray          []float64 // where infeasible: multipliers that prove it
	Iterations   int       // of this solve
}

// Solver solves a problem, and again when the problem has more rows or other bounds, from
// the basis where it ended. Variables are numbered columns first, then rows, of which each
// has its value a·x as a variable (its logical).
type Solver struct {
	problem                *Problem
	columns, rows          int   // that were loaded
	byRow, byColumn        lists // of scaled coefficients
	rowScale, columnScale  []float64
	costScale              float64
	lower, upper, cost     []float64 // by variable, scaled
	shifted                []float64 // costs with perturbation and shifts
	value, reduced         []float64 // by variable
	tolerance              []float64 // by variable: of its reduced cost
	head                   []int32   // by row: the basic variable that stands there
	position               []int32   // by variable: the row where it stands, -1 means not basic
	weight                 []float64 // by row: squared norm of the row of B⁻¹ (steepest edge)
	violation              []float64 // by row: squared distance of its variable from its bounds
	reference              []float64 // by variable: weights of the primal simplex (Devex)
	unit, entering, change vector    // row of B⁻¹; B⁻¹ times the entering column; scratch
	pivotRow               vector    // by variable: unit times the columns that are not basic
	candidates             []candidate
	factor                 factor
	ctx                    context.Context
	iterations, limit      int
}

// NewSolver makes a solver of a problem.
func NewSolver(p *Problem) *Solver { return &Solver{problem: p} }

// Solve solves the problem as it is now. It gives up after a number of iterations, with a result of that status, or when the
// context ends, with such a result and the context's error. Its multipliers are those that the dual simplex has come to: they prove a bound, if not the best one.
func (s *Solver) Solve(ctx context.Context, iterations int) (*Result, error) {
	if s.problem.err != nil {
		return nil, s.problem.err
	}
	s.ctx, s.iterations, s.limit = ctx, 0, iterations
	s.load()
	status, err := s.run()
	if err != nil {
		return s.result(IterationLimit), fmt.Errorf("solving a linear program of %d rows and %d columns: %w", s.rows, s.columns, err)
	}
	return s.result(status), nil
}

// run alternates the dual simplex with shifted costs and the primal simplex with true ones
// until both agree.
func (s *Solver) run() (Status, error) {
	for round := range maxRounds {
		s.price(true)
		if round == 0 {
			s.perturb()
		}
		if status, err := s.dual(); err != nil || status != Optimal {
			return status, err
		}
		copy(s.shifted, s.cost)
		s.refactor(false)
		if !s.dualFeasible() {
			if status, err := s.primal(); err != nil || status != Optimal {
				return status, err
			}
		}
		if s.leaving() < 0 {
			return Optimal, nil
		}
	}
	return IterationLimit, nil
}

// load takes over new columns and rows of the problem. Columns that were added
// begin everything anew.
func (s *Solver) load() {
	p := s.problem
	if p.Columns() != s.columns || s.head == nil {
		*s = Solver{problem: p, ctx: s.ctx, limit: s.limit, columns: p.Columns()}
		s.scaleAll()
	}
	known, variables := s.rows, p.Columns()+p.Rows()
	s.rows = p.Rows()
	for _, list := range []*[]float64{&s.lower, &s.upper, &s.cost, &s.shifted, &s.value, &s.reduced, &s.tolerance, &s.reference} {
		*list = append(*list, make([]float64, variables-len(*list))...)
	}
	for len(s.position) < s.columns {
		s.position = append(s.position, -1)
	}
	for i := known; i < s.rows; i++ {
		s.loadRow(int32(i))
		s.head = append(s.head, int32(s.columns+i))
		s.position = append(s.position, int32(i))
		s.weight, s.violation = append(s.weight, 1), append(s.violation, 0)
	}
	s.transpose()
	s.loadBounds()
	copy(s.shifted, s.cost)
	for !s.factorise() {
	}
	if known > 0 { // else B is −1 times the identity; rows that are added change no other weight
		for i := known; i < s.rows; i++ {
			s.weight[i] = s.rowOfInverse(int32(i))
		}
	}
	s.reduceCosts()
	for j, at := range s.position {
		if at < 0 {
			s.restOnBound(int32(j))
		}
	}
}

// transpose makes the coefficients by column from those by row.
func (s *Solver) transpose() {
	rows := make([]int32, 0, len(s.byRow.index))
	for i := range int32(s.rows) {
		index, _ := s.byRow.at(i)
		for range index {
			rows = append(rows, i)
		}
	}
	s.byColumn.sorted(s.columns, s.byRow.index, rows, s.byRow.value)
}

// restOnBound puts a non-basic variable on the bound that its reduced cost asks for.
func (s *Solver) restOnBound(j int32) {
	l, u, d := s.lower[j], s.upper[j], s.reduced[j]
	switch {
	case math.IsInf(l, 0) && math.IsInf(u, 0):
		s.value[j] = 0
	case math.IsInf(l, 0) || d < 0 && !math.IsInf(u, 0) || d == 0 && s.value[j] == u:
		s.value[j] = u
	default:
		s.value[j] = l
	}
}

// refactor factors the basis, without columns that depend on others, and prices it.
func (s *Solver) refactor(shift bool) {
	for !s.factorise() {
	}
	s.price(shift)
}

// factorise reports whether the basis could be factored. If not it put logicals in the place
// of columns that depend on others.
func (s *Solver) factorise() bool {
	f := &s.factor
	f.begin(s.rows)
	var slots []int32
	for _, j := range s.head {
		if j >= int32(s.columns) {
			f.addOwn(j - int32(s.columns))
		}
	}
	for _, j := range s.head {
		if j < int32(s.columns) {
			slots = append(slots, j)
			f.addColumn(s.byColumn.at(j))
		}
	}
	whole := f.finish()
	weights := make([]float64, s.rows) // as rows of the basis are permuted now
	for i, j := range s.head {
		weights[i] = s.weight[i]
		s.position[j] = int32(i)
	}
	taken := make([]bool, s.rows)
	put := func(j, row int32) {
		s.weight[row] = weights[s.position[j]]
		s.head[row], taken[row] = j, true
	}
	for _, row := range f.own {
		put(int32(s.columns)+row, row)
	}
	for slot, j := range slots {
		if row := f.rowOf[slot]; row >= 0 {
			put(j, row)
		} else {
			s.position[j] = -1
			s.restOnBound(j)
		}
	}
	for row, ok := range taken {
		if !ok {
			s.head[row], s.weight[row] = int32(s.columns+row), 1
		}
	}
	for i, j := range s.head {
		s.position[j] = int32(i)
	}
	return whole
}

// price finds reduced costs and basic values from the basis, on demand with costs shifted so
// that the signs of reduced costs are right.
func (s *Solver) price(shift bool) {
	s.reduceCosts()
	if shift {
		s.makeDualFeasible()
	}
	b := make([]float64, s.rows)
	for j, x := range s.value {
		if s.position[j] < 0 && x != 0 {
			s.subtractColumn(b, x, int32(j))
		}
	}
	s.factor.solve(b, false)
	for i, j := range s.head {
		s.value[j] = b[i]
		s.judge(int32(i))
	}
}

// reduceCosts finds y from Bᵀy = c, and c − Aᵀy. Terms of 1e10 leave 1e-6 of rounding, which is no reason for a step: the primal simplex went round in
// circles for it.
func (s *Solver) reduceCosts() {
	y := make([]float64, s.rows)
	for i, j := range s.head {
		y[i] = s.shifted[j]
	}
	s.factor.solveTransposed(y)
	for j := range int32(s.columns) {
		index, value := s.byColumn.at(j)
		s.reduced[j] = s.shifted[j] - dot(y, index, value)
		most := math.Abs(s.shifted[j])
		for k, i := range index {
			most = max(most, math.Abs(value[k]*y[i]))
		}
		s.tolerance[j] = dualTolerance + float64(dualRounding*most)
	}
	for i, x := range y {
		j := s.columns + i
		s.reduced[j] = s.shifted[j] + x
		s.tolerance[j] = dualTolerance + float64(dualRounding*max(math.Abs(s.shifted[j]), math.Abs(x)))
	}
	for _, j := range s.head {
		s.reduced[j] = 0
	}
}

// subtractColumn takes x times a variable's column off b. A logical's is −1 in its row.
func (s *Solver) subtractColumn(b []float64, x float64, j int32) {
	if i := int(j) - s.columns; i >= 0 {
		b[i] += x
		return
	}
	index, value := s.byColumn.at(j)
	subtract(b, x, index, value)
}

// judge finds how far the basic variable at a row lies outside its bounds.
func (s *Solver) judge(row int32) {
	j := s.head[row]
	x, l, u := s.value[j], s.lower[j], s.upper[j]
	s.violation[row] = 0
	if l-x > primalTolerance*max(1, math.Abs(l)) {
		s.violation[row] = float64((l - x) * (l - x))
	} else if x-u > primalTolerance*max(1, math.Abs(u)) {
		s.violation[row] = float64((x - u) * (x - u))
	}
}

// wrong is by how much the reduced cost of a variable that is not basic has the wrong sign.
func (s *Solver) wrong(j int32) float64 {
	l, u, x, d := s.lower[j], s.upper[j], s.value[j], s.reduced[j]
	switch {
	case l == u:
		return 0
	case math.IsInf(l, 0) && math.IsInf(u, 0):
		return math.Abs(d)
	case x == l:
		return -d
	}
	return d
}

func (s *Solver) dualFeasible() bool {
	for j, at := range s.position {
		if at < 0 && s.wrong(int32(j)) > s.tolerance[j] {
			return false
		}
	}
	return true
}

// makeDualFeasible moves variables whose reduced cost has the wrong sign to their other
// bound. Where that is infinite it shifts the cost, until the primal simplex takes over.
func (s *Solver) makeDualFeasible() {
	for j, at := range s.position {
		if at >= 0 || s.wrong(int32(j)) <= s.tolerance[j] {
			continue
		}
		if math.IsInf(s.lower[j], 0) || math.IsInf(s.upper[j], 0) {
			s.shift(int32(j))
		} else {
			s.restOnBound(int32(j))
		}
	}
}

// shift changes the cost of a variable that is not basic so that its reduced cost is 0.
func (s *Solver) shift(j int32) {
	s.shifted[j] -= s.reduced[j]
	s.reduced[j] = 0
}

// perturb moves the costs of non-basic columns away from ties of bases, by drawn amounts, equal in every run. Reduced costs
// keep their signs.
func (s *Solver) perturb() {
	draw := rand.New(rand.NewPCG(1, 2))
	for j := range int32(s.columns) {
		size := perturbation * (1 + draw.Float64()) * (1 + math.Abs(s.cost[j]))
		l, u := s.lower[j], s.upper[j]
		if s.position[j] >= 0 || l == u || math.IsInf(l, 0) && math.IsInf(u, 0) {
			continue
		}
		if s.value[j] == u {
			size = -size
		}
		s.shifted[j] += size
		s.reduced[j] += size
	}
}

// result returns the end of a solve in the problem's units.
func (s *Solver) result(status Status) *Result {
	r := &Result{Status: status, Iterations: s.iterations}
	for j, scale := range s.columnScale {
		r.X = append(r.X, s.value[j]*scale)
		r.ReducedCosts = append(r.ReducedCosts, s.reduced[j]/(scale*s.costScale))
		r.Objective += float64(s.problem.cost[j] * r.X[j])
	}
	for i, scale := range s.rowScale {
		r.Y = append(r.Y, s.reduced[s.columns+i]*scale/s.costScale)
	}
	if status == Infeasible {
		r.Ray = make([]float64, s.rows)
		for _, i := range s.unit.index {
			r.Ray[i] = s.unit.value[i] * s.rowScale[i]
		}
	}
	return r
}
