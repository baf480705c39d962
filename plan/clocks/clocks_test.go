package clocks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/must"
	"dahl/plan/problem"
)

// randomGraph is a graph of few tasks with some clocks each, of a step that runs alone or of steps in a row.
func randomGraph(r *rand.Rand) (g *Graph, steady bool) {
	g = &Graph{Watts: float64(r.IntN(3)) * 1e9}
	n := 2 + r.IntN(4)
	for range n {
		var task Task
		for clock := range 1 + r.IntN(4) {
			task.Options = append(task.Options, Option{Nanos: 1 + r.Int64N(40), Joules: float64(r.IntN(50)), Clock: 10 + clock})
		}
		g.Tasks = append(g.Tasks, task)
	}
	steady = r.IntN(2) == 0
	for to := range n {
		if steady {
			g.Waits = append(g.Waits, Wait{From: int32(to), To: int32(to), Back: 1}) // for its unit
		}
		for from := range n {
			if from < to && r.IntN(3) == 0 {
				g.Waits = append(g.Waits, Wait{From: int32(from), To: int32(to), Delay: r.Int64N(5)})
			}
			if steady && r.IntN(4) == 0 {
				g.Waits = append(g.Waits, Wait{From: int32(from), To: int32(to), Delay: r.Int64N(5), Back: 1 + r.Int32N(2)})
			}
		}
	}
	if !steady {
		g.Step()
	}
	return g, steady
}

// periodOf is the least whole period of options: on each simple cycle of waits the times over the steps, which it finds by
// going through all of them.
func periodOf(g *Graph, takes func(t int32) int64) (period int64) {
	var walk func(first, at int32, on map[int32]bool, ns, steps int64)
	walk = func(first, at int32, on map[int32]bool, ns, steps int64) {
		for _, w := range g.Waits {
			ns, steps := ns+takes(at)+w.Delay, steps+int64(w.Back)
			switch {
			case w.From != at || w.To < first:
			case w.To == first:
				period = max(period, (ns+steps-1)/steps)
			case !on[w.To]:
				on[w.To] = true
				walk(first, w.To, on, ns, steps)
				delete(on, w.To)
			}
		}
	}
	for t := range int32(len(g.Tasks)) {
		walk(t, t, map[int32]bool{t: true}, 0, 0)
	}
	return period
}

// eachChoice visits all combinations of options.
func eachChoice(g *Graph, visit func(of []Option)) {
	of := make([]Option, len(g.Tasks))
	var next func(t int)
	next = func(t int) {
		if t == len(of) {
			visit(of)
			return
		}
		for _, o := range g.Tasks[t].Options {
			of[t] = o
			next(t + 1)
		}
	}
	next(0)
}

// Of all clocks of small graphs the chosen ones are no better than the best, and the bound is no higher. Mostly the best are chosen.
func TestAllClocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 32))
	cases, best := 600, 0
	if testing.Short() {
		cases = 150
	}
	for k := range cases {
		g, _ := randomGraph(r)
		c := must.Get(New(g))(t)
		aim := problem.Aim{Objective: problem.Objective(problem.Objectives()[k%3])}
		if k%2 == 0 {
			aim.Deadline = time.Duration(c.fastest + r.Int64N(60))
		}
		least := math.Inf(1)
		eachChoice(g, func(of []Option) {
			period, joules := time.Duration(periodOf(g, func(t int32) int64 { return of[t].Nanos })), 0.0
			for _, o := range of {
				joules += o.Joules
			}
			if aim.Deadline == 0 || period <= aim.Deadline {
				least = min(least, aim.Of(period, joules+g.Watts*period.Seconds()))
			}
		})
		is, bound := must.Get(c.Choose(t.Context(), aim, 1000))(t), must.Get(c.Bound(t.Context(), aim))(t)
		value, period := aim.Of(is.Period, is.Joules), time.Duration(periodOf(g, func(t int32) int64 { return g.byClock(t, is.Clock[t]).Nanos }))
		if period != is.Period || aim.Deadline > 0 && period > aim.Deadline {
			t.Errorf("graph %d: the chosen clocks take %v and are said to take %v, by %v", k, period, is.Period, aim.Deadline)
		}
		if bound > least*(1+1e-9) || is.Bound > least*(1+1e-9) || is.Bound < bound*(1-1e-9) || value < least*(1-1e-9) {
			t.Errorf("graph %d, %s by %v: bounds %g and %g, optimum %g, chosen %g", k, aim.Objective, aim.Deadline, bound, is.Bound, least, value)
		}
		if value <= least*(1+1e-9) {
			best++
		}
	}
	if best < cases*9/10 {
		t.Errorf("of %d choices %d are the best", cases, best)
	}
	t.Logf("of %d choices %d are the best", cases, best)
}

// byClock is the option of a task at a clock.
func (g *Graph) byClock(t int32, clock int) Option {
	return g.Tasks[t].Options[slices.IndexFunc(g.Tasks[t].Options, func(o Option) bool { return o.Clock == clock })]
}

// There are no clocks for a deadline below the shortest period, and no order of tasks that wait for each other.
func TestNoClocks(t *testing.T) {
	g := &Graph{Tasks: []Task{{[]Option{{Nanos: 7}}}, {[]Option{{Nanos: 5}}}}, Waits: []Wait{{From: 0, To: 1, Delay: 3}}}
	g.Step()
	c := must.Get(New(g))(t)
	for deadline, want := range map[time.Duration]bool{14: false, 15: true} {
		if is, err := c.Choose(t.Context(), problem.Aim{Objective: problem.Energy, Deadline: deadline}, 0); err != nil || (is != nil) != want {
			t.Errorf("by %v: %v, %v", deadline, is, err)
		}
	}
	g.Waits = append(g.Waits, Wait{From: 1, To: 0})
	if _, err := New(g); err == nil {
		t.Error("tasks that wait for each other were taken")
	}
}

// Of five options the one of 30 ns is slower and takes more than the one of 20 ns, and the one of 13 ns lies above the line from
// 10 to 20 ns, at 17 J.
func TestHull(t *testing.T) {
	task := &Task{Options: []Option{{Nanos: 20, Joules: 10}, {Nanos: 30, Joules: 11}, {Nanos: 10, Joules: 20}, {Nanos: 13, Joules: 19}, {Nanos: 60, Joules: 2}}}
	kept := options(task)
	nanos := func(of []Option, at []int) (all []int64) {
		for _, i := range at {
			all = append(all, of[i].Nanos)
		}
		return all
	}
	if got, want := nanos(kept, []int{0, 1, 2, 3}), []int64{10, 13, 20, 60}; len(kept) != 4 || !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if got, want := nanos(kept, hull(kept)), []int64{10, 20, 60}; !slices.Equal(got, want) {
		t.Errorf("on the hull %v, want %v", got, want)
	}
}
