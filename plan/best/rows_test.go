package best

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// randomPlan gives each task, in a random order that the graph allows, to a random worker at a random clock.
func randomPlan(r *rand.Rand, priced *schedule.Priced) (p *schedule.Plan, worker []int, clock []platform.ClockID) {
	g, machine := priced.Program.Graphs[0], priced.Platform
	n := len(g.Tasks)
	p = &schedule.Plan{GraphHash: g.Hash(), Order: make([][]dag.TaskID, len(machine.Workers))}
	worker, clock = make([]int, n), make([]platform.ClockID, n)
	done := make([]bool, n)
	for range n {
		t := r.IntN(n)
		for done[t] || slices.ContainsFunc(g.Preds(dag.TaskID(t)), func(u int32) bool { return !done[u] }) {
			t = r.IntN(n)
		}
		done[t] = true
		worker[t] = r.IntN(len(machine.Workers))
		d := &machine.Devices[machine.Workers[worker[t]].Device]
		if len(d.Clocks) > 0 {
			clock[t] = platform.ClockID(r.IntN(len(d.Clocks)))
			p.SetClock(g, dag.TaskID(t), clock[t])
		}
		p.Order[worker[t]] = append(p.Order[worker[t]], dag.TaskID(t))
	}
	return p, worker, clock
}

// point is the columns of a model for what ran: starts by step, and the others of a step that runs alone.
type point struct {
	*certificate.Model
	x      []float64
	starts [][]float64 // by step and task
}

func pointOf(m *certificate.Model, priced *schedule.Priced, ran *schedule.Schedule, worker []int, clock []platform.ClockID) *point {
	p := &point{Model: m, x: make([]float64, m.NumColumns()), starts: make([][]float64, ran.Steps)}
	machine := priced.Platform
	for step := range p.starts {
		p.starts[step] = make([]float64, len(m.Tasks))
	}
	kernels := make([][][2]time.Duration, len(m.Devices))
	for _, s := range ran.Spans {
		d := machine.Workers[s.Worker].Device
		p.starts[s.Step][s.Task] = float64(s.Start - machine.Devices[d].Dispatch)
		kernels[d] = append(kernels[d], [2]time.Duration{s.Start, s.End})
	}
	at := func(t int32) int { return m.Devices[machine.Workers[worker[t]].Device].Memory }
	for t := range m.Tasks {
		for k, o := range m.Tasks[t].Options {
			if o.Device == int(machine.Workers[worker[t]].Device) && o.Clock == clock[t] {
				p.x[m.ColumnShare(int32(t))+k] = 1
			}
		}
		p.x[m.ColumnStart(int32(t))] = p.starts[0][t]
	}
	p.x[m.ColumnSpan()] = float64(ran.Makespan)
	for d, list := range kernels { // the union of intervals, which are in the order of their starts
		var awake, until time.Duration
		for _, k := range list {
			awake += max(0, k[1]-max(k[0], until))
			until = max(until, k[1])
		}
		p.x[m.ColumnAwake(d)] = float64(awake)
	}
	for v, version := range m.Versions {
		for _, t := range version.Readers {
			if from := version.Writer; from >= 0 && at(from) != at(t) || from < 0 && version.Home != at(t) {
				p.x[m.ColumnCopy(v, at(t))] = 1
			}
		}
	}
	return p
}

// short is by how much a plan fails a row, in nanoseconds. Of a steady step it looks at one step, and at the
// one that follows.
func (p *point) short(r *certificate.Row, f *certificate.Form, step int) float64 {
	sum := 0.0
	for k, j := range f.Columns {
		x, start := p.x[j], j >= int32(p.ColumnStart(0)) && j < int32(p.ColumnSpan())
		switch {
		case p.Steady && start && f.Coefficients[k] > 0:
			x = p.starts[step+int(r.Back)][r.To]
		case p.Steady && start:
			x = p.starts[step][r.From]
		case p.Steady && j == int32(p.ColumnSpan()):
			x = 0 // by T the starts of two steps are apart, and these are those of the steps themselves
			if r.Family == certificate.Spread {
				x = p.starts[step+1][r.To] - p.starts[step][r.To]
			}
		}
		sum += f.Coefficients[k] * x
	}
	return f.Least - sum
}

// Every row of every family holds for whatever a simulated plan does, in a step that runs alone and between
// each two steps of a run.
func TestPlansFulfilRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 14))
	alone := []certificate.Family{certificate.Assign, certificate.Precede, certificate.Deliver, certificate.Finish, certificate.Area, certificate.Awake,
		certificate.Span, certificate.Copy, certificate.Tail, certificate.Between, certificate.Pool,
		certificate.Engine, certificate.Spread}
	among := []certificate.Family{certificate.Precede, certificate.Deliver, certificate.Between, certificate.Spread}
	engines := 0
	for n := range 100 {
		priced := randomGraph(t, r, 3+r.IntN(7))
		made, worker, clock := randomPlan(r, priced)
		d := must.Get(priced.Decide(schedule.Choice{Plans: []*schedule.Plan{made}}))(t)
		for _, steady := range []bool{false, true} {
			families, steps := alone, 1
			if steady {
				families, steps = among, 4
			}
			m := must.Get(certificate.NewModel(priced, problem.Time, steady))(t)
			ran := must.Get(simulate.Run(t.Context(), d, 0, steps, simulate.Options{}))(t)
			m = must.Get(m.Given(placed(priced, worker)))(t)
			p := pointOf(m, priced, ran, worker, clock)
			for row := range rowsLike(m, families) {
				f, err := p.Form(&row)
				if err != nil {
					continue
				}
				if row.Family == certificate.Engine {
					engines++
				}
				for step := range max(1, steps-1) {
					if short := p.short(&row, &f, step); short > 1e-6 {
						t.Errorf("graph %d, steady %v, step %d: %+v fails by %g ns", n, steady, step, row, short)
					}
				}
			}
		}
	}
	if engines == 0 {
		t.Error("no row of copy engines")
	}
}

// placed are the conditions that each task runs on the device of its worker.
func placed(priced *schedule.Priced, worker []int) (where []certificate.Condition) {
	for t, w := range worker {
		where = append(where, certificate.Condition{Tasks: []int32{int32(t)}, Devices: []int{int(priced.Platform.Workers[w].Device)}, More: true})
	}
	return where
}

// rowsLike are all rows of some families, and some that the model does not have.
func rowsLike(m *certificate.Model, families []certificate.Family) func(yield func(certificate.Row) bool) {
	most := int32(max(len(m.Tasks), len(m.Versions)))
	return func(yield func(certificate.Row) bool) {
		for _, family := range families {
			for from := range most {
				for to := range most {
					for back := range int32(2) {
						for where := range max(len(m.Devices), len(m.Memories)) {
							if !yield(certificate.Row{Family: family, From: from, To: to, Back: back, Where: where}) {
								return
							}
						}
					}
				}
			}
		}
	}
}
