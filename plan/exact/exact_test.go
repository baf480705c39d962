package exact

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/codec"
)

// paper is the graph of the HEFT paper on one of its platforms in testdata.
func paper(t *testing.T, machine string) *schedule.Priced {
	t.Helper()
	g := must.Get(dag.ReadJSON(bytes.NewReader(read(t, "heft10.json")), "heft10.json"))(t)
	p := must.Get(platform.Load("testdata/" + machine + ".toml"))(t)
	return price(t, g, p)
}

func price(t *testing.T, g *dag.Graph, p *platform.Platform) *schedule.Priced {
	t.Helper()
	return must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	return must.Get(os.ReadFile("testdata/" + file))(t)
}

// papers are the optima of the graph of the HEFT paper: numbers that the search has to meet, and
// that come from outside of it.
var papers = []struct {
	machine   string
	objective problem.Objective
	want      float64
}{
	{"heft", problem.Time, 73}, {"heft", problem.Energy, 1136.2}, {"heft-clocks", problem.Time, 73}, {"heft-clocks", problem.Energy, 1019.2},
}

// TestPaper: the optima are found and proven, twice with equal bytes, and the plans in testdata come to
// the same in the simulator.
func TestPaper(t *testing.T) {
	for _, c := range papers {
		priced := paper(t, c.machine)
		g, p := priced.Program.Graphs[0], priced.Platform
		var first bytes.Buffer
		for range 2 {
			r := must.Get(Search(t.Context(), priced, Options{Objective: c.objective, Nodes: 100_000}))(t)
			if math.Abs(r.Value-c.want) > 0.05 || !r.Proven || r.Bound != r.Value || r.Gap() != 0 {
				t.Errorf("%s on %s: value %v, bound %v, proven %v; the least is %v", c.objective, c.machine, r.Value, r.Bound, r.Proven, c.want)
			}
			var again bytes.Buffer
			must.Do(t, codec.WritePlan(&again, r.Plan, g, p))
			if first.Len() > 0 && !bytes.Equal(first.Bytes(), again.Bytes()) {
				t.Errorf("%s on %s: the second plan differs", c.objective, c.machine)
			}
			first = again
		}
		file := c.machine + "-" + string(c.objective) + ".plan.json"
		plan := must.Get(codec.ReadPlan(bytes.NewReader(read(t, file)), file, g, p))(t)
		seconds, joules := must.Get2(simulated(t, priced, plan))(t)
		if got := c.objective.Of(time.Duration(math.Round(seconds*1e9)), joules); math.Abs(got-c.want) > 0.05 {
			t.Errorf("%s: comes to %v, the least is %v", file, got, c.want)
		}
	}
}

// TestFewNodes: where the nodes are spent, the bound is none above the optimum, the value none below,
// and more nodes do not make the value worse.
func TestFewNodes(t *testing.T) {
	for _, c := range papers {
		priced, value := paper(t, c.machine), math.Inf(1)
		for nodes := 1; nodes < 100_000; nodes *= 8 {
			r := must.Get(Search(t.Context(), priced, Options{Objective: c.objective, Nodes: nodes}))(t)
			if r.Nodes > nodes || r.Value > value || r.Value < c.want-0.05 || r.Bound > c.want+0.05 || r.Bound <= 0 || r.Proven != (r.Gap() == 0) {
				t.Errorf("%s on %s in %d nodes: value %v, bound %v, gap %v, proven %v, %d nodes; the least is %v", c.objective, c.machine, nodes, r.Value, r.Bound, r.Gap(), r.Proven, r.Nodes, c.want)
			}
			value = r.Value
		}
	}
}

// TestClocks: a device keeps to the clocks that are allowed, also where there are too few nodes for a
// plan of the search's own.
func TestClocks(t *testing.T) {
	priced := paper(t, "heft-clocks")
	for _, c := range []struct {
		want  platform.ClockID
		nodes int
	}{{0, 100_000}, {1, 100_000}, {0, 1}} {
		allowed := []platform.ClockID{c.want}
		r := must.Get(Search(t.Context(), priced, Options{Objective: problem.Energy, Nodes: c.nodes, Clocks: [][]platform.ClockID{allowed, allowed, allowed}}))(t)
		if len(r.Plan.Clocks) != 10 {
			t.Errorf("%d of 10 tasks have a clock in the plan", len(r.Plan.Clocks))
		}
		for task, clock := range r.Plan.Clocks {
			if clock != c.want {
				t.Errorf("task %d runs at clock %d, and %d is allowed", task, clock, c.want)
			}
		}
		if c.want == 0 && c.nodes > 1 && math.Abs(r.Value-1136.2) > 0.05 {
			t.Errorf("%v J at the first clock, as without others 1136.2", r.Value)
		}
	}
}

// TestRefused: what cannot be searched is refused with what to do about it.
func TestRefused(t *testing.T) {
	priced := paper(t, "heft")
	many := dag.NewBuilder("many")
	for i := range MaxTasks + 1 {
		many.Task(dag.Task{Name: "t" + strings.Repeat("i", i), Costs: []dag.Cost{{Key: "cpu", Ns: 1}}})
	}
	large := must.Get(many.Build())(t)
	dark := *priced.Platform
	dark.Devices = append([]platform.Device(nil), dark.Devices...)
	dark.Devices[1].PowerSource = ""
	for _, c := range []struct {
		priced *schedule.Priced
		o      Options
		want   string
	}{
		{priced, Options{Objective: "beauty", Nodes: 1}, "write time, energy, edp"},
		{priced, Options{Objective: problem.Time}, "allow at least 1"},
		{price(t, large, priced.Platform), Options{Objective: problem.Time, Nodes: 1}, "has 65 tasks"},
		{price(t, priced.Program.Graphs[0], &dark), Options{Objective: problem.Energy, Nodes: 1}, `the power of device "P2"`},
	} {
		if _, err := Search(t.Context(), c.priced, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestVariants: a call takes 10 ns and 4·10 nJ above what the core draws idle, or by another variant 20 ns and some nanojoules,
// and the core draws 1 W idle. So by the first, which is that of the price, a plan has 10 + 40 = 50 nJ, and in the model the call
// takes 10 ns and the fewer joules of both. What is found is proven where the other variant has no less of what counts.
func TestVariants(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(1, 1, 5))
	for _, c := range []struct {
		objective problem.Objective
		joules    float64 // of the other variant
		value     float64
		bound     float64
	}{
		{problem.Time, 15e-9, 10e-9, 10e-9},
		{problem.Energy, 15e-9, 50e-9, 25e-9},
		{problem.Energy, 45e-9, 50e-9, 50e-9},
		{problem.EDP, 15e-9, 500e-18, 250e-18},
	} {
		b := dag.NewBuilder("one")
		b.Task(dag.Task{Name: "a", Op: "op", Costs: []dag.Cost{{Key: "cpu/fast", Ns: 10}, {Key: "cpu/frugal", Ns: 20, Joules: c.joules}}})
		g := must.Get(b.Build())(t)
		r := must.Get(Search(t.Context(), price(t, g, p), Options{Objective: c.objective, Nodes: 1000}))(t)
		if r.Proven != (c.bound == c.value) || math.Abs(r.Value/c.value-1) > 1e-9 || r.Bound > c.bound*(1+1e-9) || r.Bound < c.bound*(1-1e-9) {
			t.Errorf("%s, %g J: value %g, bound %g, proven %v; want %g and %g", c.objective, c.joules, r.Value, r.Bound, r.Proven, c.value, c.bound)
		}
	}
}
