package best

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// search looks for a plan of tasks without data, which take so many nanoseconds on each device, on a machine of 4 W.
func search(t *testing.T, devices string, tasks int, ns string, o Options) *Result {
	t.Helper()
	var list []string
	for i := range tasks {
		list = append(list, fmt.Sprintf(`{"name": "t%d", "ns": %s}`, i, ns))
	}
	return searchGraph(t, devices, strings.Join(list, ","), o)
}

// searchGraph looks for a plan of the tasks of a graph file.
func searchGraph(t *testing.T, devices, tasks string, o Options) *Result {
	t.Helper()
	p := must.Get(platform.Parse([]byte("host_power = \"4 W\"\n[[memory]]\nname = \"ram\"\n"+devices), "machine.toml"))(t)
	g := must.Get(dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", "tasks": [`+tasks+`]}`), "graph.json"))(t)
	priced := must.Get(schedule.Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	return must.Get(Find(t.Context(), space.Of(priced, space.Sets(p, g)), o))(t)
}

// alike gives all choices of a search as many moves.
func alike(r *Result) *Result {
	for _, c := range r.from.candidates {
		c.moves = 1
	}
	return r
}

// unlike is a device of 10 W and one of 3 W.
const unlike = `[[device]]
name = "fast"
kind = "cpu"
memory = "ram"
power = { idle = "2 W", busy = "10 W" }
[[device]]
name = "slow"
kind = "cpu"
memory = "ram"
power = { idle = "1 W", busy = "3 W" }
`

func near9(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// TestExplainUnlike: one task takes 1 s at 4 + 10 + 1 W on the fast device, 15 J, or 2 s at 4 + 2 + 3 W on the slow one,
// 18 J. The slow device has no task and is not chosen; its idle watt is drawn all the same. Beside the fast one it takes nothing
// more. Of plans of the slow one alone nothing is told: branch and bound looks at them among those of both.
func TestExplainUnlike(t *testing.T) {
	found := search(t, unlike, 1, `{"fast": 1000000000, "slow": 2000000000}`, Options{Aim: problem.Aim{Objective: problem.Energy}, Nodes: 1000})
	e := must.Get(found.Explain(t.Context(), 1))(t)
	c := &e.Chosen
	if f := (Figures{Value: 15, StepS: 1, StepJ: 15}); c.Figures != f || c.Devices != "fast" {
		t.Errorf("chosen %+v, want %+v", c, f)
	}
	if w := &c.Why; w.BaseJ != 4 || w.LeftOutJ != 1 || w.IdleJ != 0 || w.BusyJ != 10 || w.Watts != 15 || w.PathTasks != 1 || w.Busiest != "fast" || w.BusyShare != 1 {
		t.Errorf("why %+v", *w)
	}
	if u := c.Use; len(u) != 1 || u[0].Device != "fast" || u[0].Tasks != 1 || u[0].Used != 1 || u[0].Busy != 1 {
		t.Errorf("use %+v", u)
	}
	if e.Next != nil {
		t.Errorf("next %+v", e.Next)
	}
	if len(e.Spare) != 1 || len(e.Without) != 0 {
		t.Fatalf("spare %+v, without %+v", e.Spare, e.Without)
	}
	if o := &e.Spare[0]; o.Of != "slow" || o.Devices != "fast,slow" || *o.Figures != c.Figures || o.AtLeast != 0 {
		t.Errorf("spare %+v %+v", o, o.Figures)
	}
	if e.Spread.Missing == "" || e.Spread.Chosen != nil {
		t.Errorf("spread %+v", e.Spread)
	}
}

// many is four equal units of 5 W.
const many = `[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
count = 4
power = { idle = "1 W", busy = "%d W" }
run_spread = 0.05
`

// TestExplainUnits: 72 tasks of 1 ms take 18 ms on four units, at 4 + 4·5 W 432 mJ; 36 ms on two, of which the other two idle, at
// 4 + 2 + 2·5 W 576 mJ, a third more. A draw is a factor of both, so that the next best never wins, and both spread
// by as much.
func TestExplainUnits(t *testing.T) {
	for _, steady := range []bool{false, true} {
		found := search(t, fmt.Sprintf(many, 5), 72, `{"cpu": 1000000}`, Options{Aim: problem.Aim{Objective: problem.Energy, Steady: steady}, Nodes: 100_000})
		e := must.Get(alike(found).Explain(t.Context(), 1))(t)
		c := &e.Chosen
		if !near9(c.Figures.Value, 0.432) || !near9(c.Figures.StepS, 0.018) || c.Devices != "cpu:4" {
			t.Errorf("chosen %+v", c)
		}
		if w := &c.Why; !near9(w.BaseJ, 0.072) || !near9(w.BusyJ, 0.36) || !near9(w.IdleJ, 0) || !near9(w.LeftOutJ, 0) {
			t.Errorf("why %+v", *w)
		}
		if u := c.Use; len(u) != 1 || u[0].Tasks != 72 || u[0].Units != 4 || u[0].Used != 4 || !near9(u[0].Busy, 1) {
			t.Errorf("use %+v", u)
		}
		n := e.Next
		if n == nil || n.Devices != "cpu:2" || !near9(n.Figures.Value, 0.576) || !near9(n.Figures.Relative, 1.0/3) || !near9(n.Why.LeftOutJ, 0.072) || !near9(n.Why.BaseJ, 0.144) {
			t.Fatalf("next %+v", n)
		}
		if len(e.Without) != 1 || e.Without[0].Of != "cpu" || e.Without[0].Devices != "cpu:2" || !near9(e.Without[0].Figures.Relative, 1.0/3) || e.Without[0].AtLeast > 1.0/3+1e-9 {
			t.Errorf("without %+v", e.Without)
		}
		s := &e.Spread
		if s.Draws != draws || *s.NextWins != 0 || !(s.Chosen.Low < s.Chosen.Median && s.Chosen.Median < s.Chosen.High) {
			t.Fatalf("spread %+v", s)
		}
		for _, x := range [][2]float64{{s.Chosen.Low, s.Next.Low}, {s.Chosen.Median, s.Next.Median}, {s.Chosen.High, s.Next.High}} {
			if math.Abs(x[1]/x[0]-4.0/3) > 1e-4 { // tasks take whole nanoseconds
				t.Errorf("the next best draws %v J where the chosen plan draws %v J", x[1], x[0])
			}
		}
	}
}

// TestExplainComparable: where local search has made less than half as many moves for two of the units of TestExplainUnits as for four, their plans
// are not compared, and of two units the bound alone is told. Without a bound nothing is, and neither are plans of policies alone.
func TestExplainComparable(t *testing.T) {
	for _, c := range []struct {
		chosen, others   int // moves
		bounded          bool
		next, any, plans bool
	}{
		{10, 4, true, false, true, false},
		{10, 4, false, false, false, false},
		{10, 5, false, true, true, true},
		{0, 0, false, false, false, false},
	} {
		found := search(t, fmt.Sprintf(many, 5), 72, `{"cpu": 1000000}`, Options{Aim: problem.Aim{Objective: problem.Energy, Steady: true}, Nodes: 5_000})
		for _, of := range found.from.candidates {
			if of.moves = c.others; of != found.from.best && !c.bounded {
				of.bound = 0
			}
		}
		found.from.best.moves = c.chosen
		e := must.Get(found.Explain(t.Context(), 1))(t)
		if (e.Next != nil) != c.next || (e.Spread.Next != nil) != c.next || (len(e.Without) == 1) != c.any || c.any && (e.Without[0].Figures != nil) != c.plans {
			t.Errorf("%+v: next %+v, without %+v", c, e.Next, e.Without)
		}
		if c.bounded && !near9(1+e.Without[0].AtLeast, 1) {
			t.Errorf("a bound of %v", e.Without[0].AtLeast)
		}
	}
}

// TestExplainSpare: were two of the four units chosen, four would take 432 mJ instead of 576, a quarter less, and one would take
// 72 ms at 4 + 3 + 5 W, 864 mJ, half more.
func TestExplainSpare(t *testing.T) {
	found := search(t, fmt.Sprintf(many, 5), 72, `{"cpu": 1000000}`, Options{Aim: problem.Aim{Objective: problem.Energy, Steady: true}, Nodes: 100_000})
	f := found.from
	f.best = f.candidates[slices.IndexFunc(f.candidates, func(c *candidate) bool { return c.Devices == "cpu:2" })]
	e := must.Get(alike(found).Explain(t.Context(), 1))(t)
	if len(e.Spare) != 1 || e.Spare[0].Of != "cpu" || e.Spare[0].Devices != "cpu:4" || !near9(e.Spare[0].Figures.Relative, -0.25) {
		t.Errorf("spare %+v", e.Spare)
	}
	if len(e.Without) != 1 || e.Without[0].Devices != "cpu:1" || !near9(e.Without[0].Figures.Value, 0.864) || !near9(e.Without[0].Figures.Relative, 0.5) {
		t.Errorf("without %+v", e.Without)
	}
}

// TestExplainDraws: a task takes 1 s on a device whose runs are spread by a fifth, and 1.1 s on one that always takes as long.
// The latter wins where the draw is above 1.1, half of a standard deviation: in 31 of a hundred, and hardly ever in less than 12
// or more than 50 of them.
func TestExplainDraws(t *testing.T) {
	spread := strings.Replace(unlike, `name = "fast"`, "name = \"fast\"\nrun_spread = 0.2", 1)
	found := search(t, spread, 1, `{"fast": 1000000000, "slow": 1100000000}`, Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: 1000})
	e := must.Get(alike(found).Explain(t.Context(), 1))(t)
	s := &e.Spread
	if e.Next == nil || e.Next.Devices != "slow" || !near9(e.Next.Figures.Relative, 0.1) {
		t.Fatalf("next %+v", e.Next)
	}
	if *s.NextWins < 0.12 || *s.NextWins > 0.5 || s.Next.Low != 1.1 || s.Next.High != 1.1 || s.Chosen.Low > 0.9 || s.Chosen.High < 1.1 {
		t.Errorf("spread %+v: chosen %+v, next %+v, which wins %v", s, s.Chosen, s.Next, *s.NextWins)
	}
}

// TestChange: sets differ in one device, in several of a kind, or otherwise.
func TestChange(t *testing.T) {
	set := func(counts ...int) (u units) {
		for i, n := range counts {
			if n > 0 {
				u = append(u, &platform.Device{Name: []string{"a", "b", "g"}[i], Kind: []string{"cpu", "cpu", "gpu"}[i], Count: n})
			}
		}
		return u
	}
	for _, c := range []struct {
		from, to units
		of       string
		more, ok bool
	}{
		{set(2, 0, 1), set(4, 0, 1), "a", true, true},
		{set(2, 2, 1), set(2, 2), "g", false, true},
		{set(2, 2, 1), set(4, 4, 1), "cpu", true, true},
		{set(2, 2), set(1, 0), "cpu", false, true},
		{set(2, 2), set(4, 0), "", false, false},
		{set(2, 2), set(4, 2, 1), "", false, false},
		{set(2, 2), set(2, 2), "", false, false},
	} {
		if of, more, ok := c.from.change(c.to); of != c.of || ok != c.ok || ok && more != c.more {
			t.Errorf("from %v to %v: %q, more %v, %v; want %q, %v, %v", c.from, c.to, of, more, ok, c.of, c.more, c.ok)
		}
	}
}
