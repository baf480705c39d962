package improve

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/codec"
)

// By all clocks of a few tasks, which the simulator goes through, none is below the bound. The chosen clocks are no better than the best
// of them, and no worse than the plan at the start; its tasks stay on their workers, in their order. In one memory, where no units share a clock and no change
// takes anything, the best clocks are found nearly always.
func TestClocksOfAPlan(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 32))
	exact, best, cases := 0, 0, 120
	if testing.Short() {
		cases = 40
	}
	for k := range cases {
		priced := randomProblem(t, r, 2+r.IntN(5))
		p, from := priced.Platform, heftOf(t, priced)
		o := Options{Aim: problem.Aim{Objective: problem.Objective(problem.Objectives()[k%3]), Steady: r.IntN(2) == 0}, Moves: 1000}
		s := newTestSearch(t, priced, from, o)
		start := must.Get(s.judge(from, steadySteps))(t)
		if r.IntN(2) == 0 {
			o.Deadline = time.Duration(float64(start.Time) * (1 + r.Float64()))
			s.options.Deadline = o.Deadline
		}
		least := math.Inf(1)
		eachClocks(s, s.start, func(x *point) {
			if is := must.Get(s.judge(s.separateBuffers(s.planOf(x)), steadySteps))(t); o.Deadline == 0 || is.Time <= o.Deadline {
				least = min(least, is.score)
			}
		})
		found := must.Get(Clocks(t.Context(), priced, from, o))(t)
		if !slices.EqualFunc(found.Plan().Order, from.Order, slices.Equal) {
			t.Errorf("graph %d: the order is %v, was %v", k, found.Plan().Order, from.Order)
		}
		value := s.score(found.Time, found.Joules)
		tolerance := 1 + 1e-9
		if o.Steady {
			tolerance = 1.01 // of the mean of fifty steps from the mean of ever more
		}
		if value > start.score || found.Bound > least*tolerance {
			t.Errorf("graph %d, %+v: bound %g, least %g, found %g, first %g", k, o.Aim, found.Bound, least, value, start.score)
		}
		if len(p.Memories) == 1 && !s.clocksMeet && s.manyClocks {
			exact++
			if value <= least*(1+1e-6) {
				best++
			}
		}
		var files [2]bytes.Buffer
		for i := range files {
			found = must.Get(Clocks(t.Context(), priced, from, o))(t)
			must.Do(t, codec.WritePlan(&files[i], found.Plan(), priced.Program.Graphs[0], p))
		}
		if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
			t.Errorf("graph %d: two choices differ", k)
		}
	}
	if best < exact*9/10 {
		t.Errorf("of %d choices %d are the best", exact, best)
	}
	t.Logf("of %d choices %d are the best", exact, best)
}

// eachClocks visits a point by all clocks of its tasks.
func eachClocks(s *search, from *point, visit func(*point)) {
	x := newPoint(len(from.sequence))
	x.copy(from)
	var next func(t int)
	next = func(t int) {
		if t == len(x.clock) {
			visit(x)
			return
		}
		for _, c := range s.clocks[s.deviceOf(x.worker[t])] {
			x.clock[t] = c
			next(t + 1)
		}
	}
	next(0)
}

// Two tasks, one after the other on units of their own, each take 100 ns and 400 nJ above idle, or 200 ns and 200 nJ; idle units draw
// 1 W. A step alone takes 800 + 200 nJ in 200 ns, 600 + 300 in 300 and 400 + 400 in 400. In steady steps both units work at
// once: 800 + 100 nJ in 100 ns, and 400 + 200 in 200, so that one slow task in 200 ns is of no use. By 150 ns both are fast, since half
// of a task cannot be slow.
func TestClocksOfTwoTasks(t *testing.T) {
	for _, c := range []struct {
		steady   bool
		deadline time.Duration
		nJ       float64
		front    int
	}{{false, 300, 900, 3}, {true, 200, 600, 2}, {true, 150, 900, 2}} {
		fast, slow := platform.BusyPower{UnitWatts: 4.5}, platform.BusyPower{UnitWatts: 1.5}
		p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}},
			Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 2, UnitClocks: true, IdleWatts: 0.5, Busy: fast, PowerSource: platform.Guess,
				Clocks: []platform.Clock{{Name: "base", Scale: 1, Idle: 0.5, Busy: fast}, {Name: "slow", Scale: 0.5, Idle: 0.5, Busy: slow}}}}}
		b := dag.NewBuilder("two")
		from := &schedule.Plan{Order: make([][]dag.TaskID, 2)}
		x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{1}, Type: dag.Float32, Versions: 2, ViewOf: dag.None})
		for i, mode := range []dag.Mode{dag.Write, dag.Read} {
			from.Order[i] = append(from.Order[i], b.Task(dag.Task{Name: []string{"a", "b"}[i], Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: 100}, {Key: "cpu@slow", Ns: 200}},
				Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: mode}}}))
		}
		o := Options{Aim: problem.Aim{Objective: problem.Energy, Steady: c.steady, Deadline: c.deadline}, Moves: 100}
		is := must.Get(Clocks(t.Context(), price(t, b, p), from, o))(t)
		if math.Abs(is.Joules-c.nJ*1e-9) > 1e-15 || len(is.Front) != c.front || is.Bound > is.Joules*(1+1e-9) {
			t.Errorf("%+v: %g J, a bound of %g and a front of %d", c, is.Joules, is.Bound, len(is.Front))
		}
	}
}
