package exact

import (
	"bytes"
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// paper is the graph of the HEFT paper on one of its platforms in testdata.
func paper(t *testing.T, machine string) *schedule.Priced {
	t.Helper()
	g, err := dag.ReadJSON(bytes.NewReader(read(t, "heft10.json")), "heft10.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := platform.Load("testdata/" + machine + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	return price(t, g, p)
}

func price(t *testing.T, g *dag.Graph, p *platform.Platform) *schedule.Priced {
	t.Helper()
	priced, err := schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
	if err != nil {
		t.Fatal(err)
	}
	return priced
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// papers are the optima of the graph of the HEFT paper: numbers that the search has to meet, and
// that come from outside of it.
var papers = []struct {
	machine   string
	objective Objective
	want      float64
}{
	{"heft", Time, 73}, {"heft", Energy, 1136.2}, {"heft-clocks", Time, 73}, {"heft-clocks", Energy, 1019.2},
}

// TestPaper: the optima are found and proven, twice with equal bytes, and the plans in testdata come to
// the same in the simulator.
func TestPaper(t *testing.T) {
	for _, c := range papers {
		priced := paper(t, c.machine)
		g, p := priced.Program.Graphs[0], priced.Platform
		var first bytes.Buffer
		for range 2 {
			r, err := Search(t.Context(), priced, Options{Objective: c.objective, Nodes: 100_000})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(r.Value-c.want) > 0.05 || !r.Proven || r.Bound != r.Value || r.Gap() != 0 {
				t.Errorf("%s on %s: value %v, bound %v, proven %v; the least is %v", c.objective, c.machine, r.Value, r.Bound, r.Proven, c.want)
			}
			var again bytes.Buffer
			if err := schedule.WritePlan(&again, r.Plan, g, p); err != nil {
				t.Fatal(err)
			}
			if first.Len() > 0 && !bytes.Equal(first.Bytes(), again.Bytes()) {
				t.Errorf("%s on %s: the second plan differs", c.objective, c.machine)
			}
			first = again
		}
		file := c.machine + "-" + string(c.objective) + ".plan.json"
		plan, err := schedule.ReadPlan(bytes.NewReader(read(t, file)), file, g, p)
		if err != nil {
			t.Fatal(err)
		}
		seconds, joules, err := simulated(t, priced, plan)
		if err != nil {
			t.Fatal(err)
		}
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
			r, err := Search(t.Context(), priced, Options{Objective: c.objective, Nodes: nodes})
			if err != nil {
				t.Fatal(err)
			}
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
		clocks []int32
		want   string
		nodes  int
	}{{[]int32{0}, "fast", 100_000}, {[]int32{1}, "slow", 100_000}, {[]int32{0}, "fast", 1}} {
		r, err := Search(t.Context(), priced, Options{Objective: Energy, Nodes: c.nodes, Clocks: [][]int32{c.clocks, c.clocks, c.clocks}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Plan.Clocks) != 10 {
			t.Errorf("%d of 10 tasks have a clock in the plan", len(r.Plan.Clocks))
		}
		for task, clock := range r.Plan.Clocks {
			if clock != c.want {
				t.Errorf("task %s runs at %q, and %q is allowed", task, clock, c.want)
			}
		}
		if c.want == "fast" && c.nodes > 1 && math.Abs(r.Value-1136.2) > 0.05 {
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
	large, err := many.Build()
	if err != nil {
		t.Fatal(err)
	}
	dark := *priced.Platform
	dark.Devices = append([]platform.Device(nil), dark.Devices...)
	dark.Devices[1].PowerSource = ""
	for _, c := range []struct {
		priced *schedule.Priced
		o      Options
		want   string
	}{
		{priced, Options{Objective: "beauty", Nodes: 1}, "write time, energy, edp"},
		{priced, Options{Objective: Time}, "allow at least 1"},
		{price(t, large, priced.Platform), Options{Objective: Time, Nodes: 1}, "has 65 tasks"},
		{price(t, priced.Program.Graphs[0], &dark), Options{Objective: Energy, Nodes: 1}, `the power of device "P2"`},
	} {
		if _, err := Search(t.Context(), c.priced, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Search(ctx, priced, Options{Objective: Energy, Nodes: 100_000}); err == nil {
		t.Error("a search whose context has ended goes on")
	}
}
