package exact

import (
	"bytes"
	"fmt"
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
			must.Do(t, schedule.WritePlan(&again, r.Plan, g, p))
			if first.Len() > 0 && !bytes.Equal(first.Bytes(), again.Bytes()) {
				t.Errorf("%s on %s: the second plan differs", c.objective, c.machine)
			}
			first = again
		}
		file := c.machine + "-" + string(c.objective) + ".plan.json"
		plan := must.Get(schedule.ReadPlan(bytes.NewReader(read(t, file)), file, g, p))(t)
		seconds, joules := must.Get2(simulated(t, priced, plan))(t)
		if got := c.objective.Of(time.Duration(math.Round(seconds*1e9)), joules); math.Abs(got-c.want) > 0.05 {
			t.Errorf("%s: comes to %v, the least is %v", file, got, c.want)
		}
	}
}

// cholesky is the factorisation of a matrix of n by n tiles, on nine cores and three GPUs that are nearly
// equal, with links that take no time worth mentioning.
func cholesky(t *testing.T, n int) *schedule.Priced {
	t.Helper()
	p := &platform.Platform{Name: "mirage", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e15}},
		Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU, Count: 9}}}
	for i := range 3 {
		name := fmt.Sprint("cuda", i)
		p.Memories = append(p.Memories, platform.Memory{Name: name, BandwidthBytesPerSec: 1e15})
		p.Devices = append(p.Devices, platform.Device{Name: name, Kind: "cuda", Count: 1, Memory: platform.MemoryID(i + 1)})
		for from := range i + 1 {
			p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(from), To: platform.MemoryID(i + 1), Links: []platform.LinkID{platform.LinkID(len(p.Links))}})
			p.Links = append(p.Links, platform.Link{Name: fmt.Sprint(from, name), BandwidthBytesPerSec: 1e15, Sharing: platform.Fatpipe})
		}
	}
	must.Do(t, p.Complete())
	b := dag.NewBuilder("cholesky")
	tiles := map[[2]int]dag.BufferID{}
	for i := range n {
		for j := range i + 1 {
			tiles[[2]int{i, j}] = b.Buffer(dag.Buffer{Name: fmt.Sprint("a", i, j), Shape: []int{960, 960}, Type: dag.Float32, Role: dag.Parameter, Home: dag.HostHome})
		}
	}
	add := func(op string, updates [2]int, reads ...[2]int) {
		task := dag.Task{Name: fmt.Sprint(op, updates, reads), Accesses: []dag.Access{{Region: dag.Region{Buffer: tiles[updates]}, Mode: dag.ReadWrite}}}
		for _, tile := range reads {
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: tiles[tile]}, Mode: dag.Read})
		}
		for d, ns := range map[string][4]int64{"potrf": {18849690, 5366740, 5557011, 5500099}, "trsm": {45646760, 6393638, 6416842, 6409443}, "gemm": {87780200, 2805491, 2828590, 2828209}}[op] {
			task.Costs = append(task.Costs, dag.Cost{Key: p.Devices[d].Name, Ns: ns})
		}
		b.Task(task)
	}
	for k := range n {
		add("potrf", [2]int{k, k})
		for i := k + 1; i < n; i++ {
			add("trsm", [2]int{i, k}, [2]int{k, k})
		}
		for i := k + 1; i < n; i++ {
			for j := k + 1; j < i; j++ {
				add("gemm", [2]int{i, j}, [2]int{i, k}, [2]int{j, k})
			}
			add("gemm", [2]int{i, i}, [2]int{i, k})
		}
	}
	g := must.Get(b.Build())(t)
	return price(t, g, p)
}

// TestCholesky: the longest chain of 5 by 5 tiles has five potrf, and between two of them trsm and gemm. The
// first GPU is the fastest at each, and 5·5.366740 + 4·(6.393638 + 2.805491) = 63.630216 ms. Copies take a
// few nanoseconds if the chain changes its device.
func TestCholesky(t *testing.T) {
	r := must.Get(Search(t.Context(), cholesky(t, 5), Options{Objective: problem.Time, Nodes: 10_000}))(t)
	if math.Abs(r.Value-63.630216e-3) > 1e-6 || !r.Proven {
		t.Errorf("value %v, bound %v, proven %v; the least is 63.630 ms", r.Value, r.Bound, r.Proven)
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
