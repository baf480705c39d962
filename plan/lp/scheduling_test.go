package lp

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dahl/must"
)

// workload is a layered graph of tasks on unlike devices, each with a memory of its own. The
// last layer of a step is carried to the first of the next.
type workload struct {
	tasks, width int
	durations    [][]float64 // by task and device, in microseconds
	units        []float64   // by device
	watts        []float64   // by device, of a busy unit
	edges        []edge
	horizon      float64 // no period of interest is longer
}

type edge struct {
	from, to int
	carried  bool
	copying  float64 // microseconds
}

func layered(seed uint64, tasks, width int) *workload {
	draw := rand.New(rand.NewPCG(seed, 3))
	w := &workload{tasks: tasks, width: width, units: []float64{8, 1, 2}, watts: []float64{5, 100, 40}}
	for t := range tasks {
		size := 1 + 20*draw.Float64()
		w.durations = append(w.durations, []float64{size * 10, 2 + size/3, 1 + size})
		w.horizon += size * 10
		for _, from := range []int{t - width, t - width - t%width + draw.IntN(width)} {
			e := edge{from, t, from < 0, 0.2 + 10*draw.Float64()}
			if from < 0 {
				e.from += tasks
			}
			if n := len(w.edges); n == 0 || w.edges[n-1].from != e.from || w.edges[n-1].to != t {
				w.edges = append(w.edges, e)
			}
		}
	}
	return w
}

// The columns of a workload's problem: shares of each task on each device, its start, copies
// of what it writes to each memory, the period and the busy time of each device.
func (w *workload) share(t, k int) int { return t*len(w.units) + k }
func (w *workload) start(t int) int    { return w.tasks*len(w.units) + t }
func (w *workload) copied(t, k int) int {
	return w.tasks*(len(w.units)+1) + t*len(w.units) + k
}
func (w *workload) period() int     { return w.tasks * (2*len(w.units) + 1) }
func (w *workload) awake(k int) int { return w.period() + 1 + k }
func (w *workload) duration(t int, factor float64) (terms []Term) {
	for k, d := range w.durations[t] {
		terms = append(terms, Term{w.share(t, k), factor * d})
	}
	return terms
}

// problem is the periodic LP: shares add up to one, tasks follow their predecessors, also after
// copies between memories, and no device works longer than the period.
func (w *workload) problem(t testing.TB, energy bool) *Problem {
	p := &Problem{}
	column := func(cost float64) {
		p.AddColumn(cost, 0, inf)
	}
	watts, linkWatts, idleWatts := w.watts, 3.0, 20.0
	if !energy {
		watts, linkWatts, idleWatts = make([]float64, len(w.units)), 0, 1
	}
	for _, durations := range w.durations {
		for k, d := range durations {
			column(watts[k] * d)
		}
	}
	for range w.tasks {
		column(0)
	}
	for range w.tasks * len(w.units) {
		column(linkWatts)
	}
	column(idleWatts)
	for k := range w.units {
		column(watts[k] / 2)
	}
	w.addRows(t, p)
	return p
}

func (w *workload) addRows(t testing.TB, p *Problem) {
	for task := range w.tasks {
		addRow(t, p, 1, 1, []Term{{w.share(task, 0), 1}, {w.share(task, 1), 1}, {w.share(task, 2), 1}})
	}
	for _, e := range w.edges {
		base := append(w.duration(e.from, 1), Term{w.start(e.from), 1}, Term{w.start(e.to), -1})
		if e.carried {
			base = append(base, Term{w.period(), -1})
		}
		addRow(t, p, -inf, 0, base)
		for k := range w.units {
			row := append([]Term(nil), base...)
			row[k].Coefficient -= e.copying
			addRow(t, p, -inf, 0, append(row, Term{w.share(e.to, k), e.copying}))
			addRow(t, p, -inf, 0, []Term{{w.share(e.to, k), 1}, {w.share(e.from, k), -1}, {w.copied(e.from, k), -1}})
		}
	}
	for k, units := range w.units {
		var area, copies []Term
		for task := range w.tasks {
			area = append(area, Term{w.share(task, k), w.durations[task][k]})
			copies = append(copies, Term{w.copied(task, k), 1.5})
		}
		addRow(t, p, -inf, 0, append(area, Term{w.period(), -units}))
		addRow(t, p, -inf, 0, append(area, Term{w.awake(k), -units}))
		addRow(t, p, -inf, 0, []Term{{w.awake(k), 1}, {w.period(), -1}})
		addRow(t, p, -inf, 0, append(copies, Term{w.period(), -1}))
	}
}

// intervals are rows that were left out: the work on a device between one task and one some
// layers later fits between the end of the first and the start of the second.
func (w *workload) intervals(t testing.TB, p *Problem, layers int) {
	for from := 0; from+layers*w.width < w.tasks; from += w.width {
		to := from + layers*w.width
		for k, units := range w.units {
			terms := []Term{{w.start(to), -units}, {w.start(from), units}}
			for _, d := range w.duration(from, units) {
				if d.Column == w.share(from, k) {
					continue
				}
				terms = append(terms, d)
			}
			for task := from + w.width; task < to; task += w.width {
				terms = append(terms, Term{w.share(task, k), w.durations[task][k]})
			}
			addRow(t, p, -inf, 0, terms)
		}
	}
}

// TestScheduling proves the optima of problems like the planner's.
func TestScheduling(t *testing.T) {
	sizes := []struct{ tasks, width int }{{35, 5}, {70, 5}, {140, 7}}
	if !testing.Short() {
		sizes = append(sizes, struct{ tasks, width int }{350, 10})
	}
	for _, c := range sizes {
		for _, energy := range []bool{true, false} {
			p := layered(2, c.tasks, c.width).problem(t, energy)
			t.Run(fmt.Sprintf("%dx%d/energy=%v", p.Rows(), p.Columns(), energy), func(t *testing.T) {
				r := solve(t, NewSolver(p))
				checkOptimal(t, p, r)
				checkBound(t, p, r)
			})
		}
	}
}

// TestWarm adds rows, fixes shares and gives them back: what a solver that goes on finds is what
// one that begins anew finds, and adding rows takes it fewer iterations.
func TestWarm(t *testing.T) {
	for _, energy := range []bool{true, false} {
		w := layered(5, 70, 5)
		p := w.problem(t, energy)
		warm := NewSolver(p)
		first := solve(t, warm)
		same := func(step string) (*Result, *Result) {
			t.Helper()
			r, cold := solve(t, warm), solve(t, NewSolver(p))
			checkOptimal(t, p, r)
			checkBound(t, p, r)
			if !near(r.Objective, cold.Objective, 1e-9) {
				t.Errorf("%s: %v, begun anew %v", step, r.Objective, cold.Objective)
			}
			return r, cold
		}
		w.intervals(t, p, 3)
		tight, cold := same("with rows of intervals")
		if tight.Objective < first.Objective-1e-9 || tight.Iterations >= cold.Iterations {
			t.Errorf("from %v to %v in %d iterations, anew in %d", first.Objective, tight.Objective, tight.Iterations, cold.Iterations)
		}
		for task := range 10 {
			p.SetBounds(w.share(task, task%3), 1, 1)
		}
		if fixed, _ := same("with fixed shares"); fixed.Objective < tight.Objective {
			t.Errorf("fixing shares takes %v to %v", tight.Objective, fixed.Objective)
		}
		for task := range 10 {
			p.SetBounds(w.share(task, task%3), 0, inf)
		}
		if again, _ := same("with free shares"); !near(again.Objective, tight.Objective, 1e-9) {
			t.Errorf("freeing shares gives %v, before %v", again.Objective, tight.Objective)
		}
	}
}

// TestWeights: the weights of steepest edge are the squared norms of the rows of B⁻¹, also after
// many updates, new rows, and pivots of the primal simplex.
func TestWeights(t *testing.T) {
	w := layered(4, 35, 5)
	p := w.problem(t, false)
	s := NewSolver(p)
	check := func(iterations int) {
		t.Helper()
		must.Get(s.Solve(t.Context(), iterations))(t)
		for i, weight := range s.weight {
			if exact := s.rowOfInverse(int32(i)); !near(weight, exact, 1e-6) {
				t.Errorf("row %d after %d iterations: weight %v, want %v", i, s.iterations, weight, exact)
			}
		}
	}
	check(50)
	check(90)
	w.intervals(t, p, 2)
	check(0)
	check(1e6)
}
