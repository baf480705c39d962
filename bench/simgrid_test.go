package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// simGrid is SimGrid's answer: simulated seconds, seconds of its processor, and its most bytes in memory.
type simGrid struct {
	makespan, processor float64
	bytes               int64
}

// buildSimGrid compiles the program of bench/simgrid; without SimGrid the test is skipped.
func buildSimGrid(tb testing.TB) (program string) {
	tb.Helper()
	if _, err := os.Stat("/usr/include/simgrid/s4u.hpp"); err != nil {
		tb.Skip("SimGrid (libsimgrid-dev) is not installed")
	}
	program = filepath.Join(tb.TempDir(), "simgrid")
	if out, err := exec.Command("g++", "-O2", "-std=c++17", "-o", program, "simgrid/main.cpp", "-lsimgrid").CombinedOutput(); err != nil {
		tb.Fatalf("g++: %v\n%s", err, out)
	}
	return program
}

// bySimGrid runs one step of a decided graph in SimGrid: the tasks and transfers of the placed graph, each behind its predecessors and the one before it on its worker or copy engine.
// The options leave flows of unlike latency equal shares of a link, as dahl has them: a flow counts once, whatever its round trip.
func bySimGrid(tb testing.TB, program string, d *schedule.Decision) (s simGrid) {
	tb.Helper()
	var text bytes.Buffer
	writeSimGrid(&text, d)
	cmd := exec.Command(program, "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0", "--cfg=maxmin/precision:1e-13", "--cfg=surf/precision:1e-12", "--log=root.thresh:error")
	cmd.Stdin = &text
	out := must.Get(cmd.Output())(tb)
	must.Get(fmt.Sscan(string(out), &s.makespan, &s.processor, &s.bytes))(tb)
	return s
}

func writeSimGrid(out io.Writer, d *schedule.Decision) {
	w := bufio.NewWriter(out)
	defer w.Flush()
	p, pg := d.Priced.Platform, d.Placed.Graphs[0]
	for i := range p.Links {
		for range 2 {
			fmt.Fprintf(w, "link %g %g\n", p.Links[i].BandwidthBytesPerSec, p.Links[i].Latency.Seconds())
		}
	}
	for range len(p.Memories) + len(p.Workers) {
		fmt.Fprintln(w, "host")
	}
	routes := map[[2]platform.MemoryID]bool{}
	for t := range dag.TaskID(pg.NumTasks()) {
		m := pg.Move(t)
		if m == nil || routes[[2]platform.MemoryID{m.From, m.To}] {
			continue
		}
		routes[[2]platform.MemoryID{m.From, m.To}] = true
		fmt.Fprint(w, "route ", m.From, " ", m.To)
		for _, use := range p.LinkUses(m.From, m.To) {
			fmt.Fprint(w, " ", 2*int32(use.Link)+use.Direction)
		}
		fmt.Fprintln(w)
	}
	before := make([][]dag.TaskID, pg.NumTasks())
	for _, list := range pg.Order {
		for i := 1; i < len(list); i++ {
			before[list[i]] = append(before[list[i]], list[i-1])
		}
	}
	costs := d.Priced.Costs(0)
	worker := map[dag.TaskID]platform.WorkerID{}
	for w, list := range pg.Order[:len(p.Workers)] {
		for _, t := range list {
			worker[t] = platform.WorkerID(w)
		}
	}
	for t := range dag.TaskID(pg.NumTasks()) {
		m := pg.Move(t)
		if m != nil {
			fmt.Fprint(w, "copy")
		} else {
			fmt.Fprint(w, "work")
		}
		for _, other := range pg.Preds(t) {
			fmt.Fprint(w, " ", other)
		}
		for _, other := range before[t] {
			fmt.Fprint(w, " ", other)
		}
		if m != nil {
			fmt.Fprintln(w, " :", m.Bytes, m.From, m.To)
			continue
		}
		cost, _ := costs.Of(pg.TaskOf(t), p.Workers[worker[t]].Device)
		fmt.Fprintln(w, " :", cost.Duration.Seconds(), len(p.Memories)+int(worker[t]))
	}
}

// allReduce sums a vector over devices by an exchange, and lets each device read all of the sum, if all want it. Additions and the reading tasks take no time. As in a training no device contributes to
// the next sum before this one is there. Otherwise nodes with fewer messages would be ahead of others in the steps for which lists are made, and the first sum would wait for their messages.
func allReduce(tb testing.TB, p *platform.Platform, devices []string, of dag.Stage, elems int, wanted bool) *schedule.Decision {
	tb.Helper()
	of.Devices = devices
	b := dag.NewBuilder("all-reduce")
	g := b.Buffer(dag.Buffer{Name: "g", Shape: []int{elems}, Type: dag.Float32, Role: dag.Gradient})
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{1}, Type: dag.Uint8, Role: dag.State})
	nothing := []dag.Cost{{Key: dag.AnyDevice}}
	b.OpCosts("add", nothing)
	b.OpCosts("sum", nothing)
	task := func(name, device string, accesses ...dag.Access) {
		b.Task(dag.Task{Name: name, Costs: nothing, Placement: &dag.Placement{Device: device}, Accesses: accesses})
	}
	whole := func(b dag.BufferID, mode dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: b}, Mode: mode}
	}
	for _, device := range devices {
		task("reduce"+device, device, whole(g, dag.Reduce), whole(w, dag.Read))
	}
	task("update", devices[0], whole(g, dag.Read), whole(w, dag.ReadWrite))
	if wanted {
		for _, device := range devices {
			task("read"+device, device, whole(g, dag.Read))
		}
	}
	graph := must.Get(b.BuildExpanded(func(string) *dag.Stage { return &of }))(tb)
	priced := must.Get(schedule.Price(&dag.Program{Name: "all-reduce", Graphs: []*dag.Graph{graph}}, p, schedule.Unbound))(tb)
	depth := make([]int, len(graph.Tasks))
	order := make([]dag.TaskID, len(graph.Tasks))
	for t := range order {
		order[t] = dag.TaskID(t)
		for _, before := range graph.Preds(dag.TaskID(t)) {
			depth[t] = max(depth[t], depth[before]+1)
		}
	}
	slices.SortStableFunc(order, func(a, b dag.TaskID) int { return depth[a] - depth[b] })
	plan := &schedule.Plan{Order: make([][]dag.TaskID, len(p.Workers))}
	workers := map[string]int{}
	for w := range p.Workers {
		workers[p.Workers[w].Name] = w
	}
	for _, t := range order {
		w := workers[graph.Tasks[t].Placement.Device]
		plan.Order[w] = append(plan.Order[w], t)
	}
	return must.Get(priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}}))(tb)
}

// gpusOf are the names of all accelerators.
func gpusOf(p *platform.Platform) (names []string) {
	for i := range p.Devices {
		if !p.Devices[i].IsProcessor() {
			names = append(names, p.Devices[i].Name)
		}
	}
	return names
}

// TestSimGrid compares sums of 8 GiB on up to 30 GPUs, which all read the result, and of 64 GiB on up to a thousand, with SimGrid. Copies share adaptors, leaves and wires between them. Ends of transfers
// are whole nanoseconds here, so that makespans differ by up to 700 ns, whatever the bytes; shorter sums are therefore further off (bench/scale.md).
func TestSimGrid(t *testing.T) {
	program := buildSimGrid(t)
	for _, c := range []struct {
		nodes, each int
		of          dag.Stage
	}{{2, 2, dag.Stage{Sum: dag.Ring}}, {10, 2, dag.Stage{Sum: dag.Tree}}, {5, 3, dag.Stage{Sum: dag.Direct}}, {10, 3, dag.Stage{Sum: dag.Hierarchical, PerNode: 3}},
		{32, 2, dag.Stage{Sum: dag.Hierarchical, PerNode: 2}}, {125, 1, dag.Stage{Sum: dag.Ring}}, {1000, 1, dag.Stage{Sum: dag.Tree}}, {125, 8, dag.Stage{Sum: dag.Hierarchical, PerNode: 8}}} {
		p := equalLatencies(t, c.nodes, c.each)
		elems, few := 1<<31, c.nodes*c.each <= 30
		if !few {
			elems *= 8
		}
		d := allReduce(t, p, gpusOf(p), c.of, elems, few)
		s := must.Get(simulate.Run(context.Background(), d, 0, 1, simulate.Options{}))(t)
		by := bySimGrid(t, program, d)
		t.Logf("%d nodes of %d, %v: %d tasks and transfers, %.9f s, SimGrid in %.2f s", c.nodes, c.each, c.of.Sum, len(s.Spans)+len(s.Transfers), s.Makespan.Seconds(), by.processor)
		if off := s.Makespan.Seconds()/by.makespan - 1; math.Abs(off) > 1e-6 {
			t.Errorf("%d nodes of %d, %v: %v, and SimGrid has %.9f s: off by %g", c.nodes, c.each, c.of.Sum, s.Makespan, by.makespan, off)
		}
	}
}

// equalLatencies is a fat tree without latencies, by which SimGrid's shares of a link are weighted, and with memories of any size.
func equalLatencies(tb testing.TB, nodes, each int) *platform.Platform {
	p := fatTree(tb, nodes, each)
	for i := range p.Links {
		p.Links[i].Latency = 0
	}
	for i := range p.Memories {
		p.Memories[i].CapacityBytes = 0
	}
	for i := range p.Devices {
		p.Devices[i].Dispatch = 0
	}
	must.Do(tb, p.Complete())
	return p
}

// sumCase is a sum of some elements over nodes of some devices each, and its seconds.
type sumCase struct {
	sum         dag.Exchange
	each, elems int
	want        float64
}

// TestSumsByFormula: where no link is shared the sum of B bytes over n devices takes, by ring, (n-1)(a + B/(nb)); by tree, ⌈log2 n⌉(a + B/b); and hierarchically over g devices on each of
// q nodes, (g-1)(a + B/(gb)) and then (q-1)(A + B/(gqN)), or of a small sum ⌈log2 q⌉(A + B/(gN)). Within a node b is 250 GB/s and a is 5 us, between nodes N is 25 GB/s and A 4 us. All slices take whole
// nanoseconds.
func TestSumsByFormula(t *testing.T) {
	within := func(bytes int) float64 { return 5e-6 + float64(bytes)/250e9 }
	between := func(bytes int) float64 { return 4e-6 + float64(bytes)/25e9 }
	levels := func(n int) float64 { return float64(bits.Len(uint(n - 1))) }
	const g = 4 // devices of a node
	for _, n := range []int{2, 3, 5, 8, 32, 125, 1000} {
		large, small := 25_000*n, 16_000*g // elements, in slices of the devices and of the devices of a node
		cases := []sumCase{
			{dag.Tree, 1, large, levels(n) * between(4*large)},
			{dag.Hierarchical, g, small, (g-1)*within(4*small/g) + levels(n)*between(4*small/g)},
		}
		if n < 1000 || !testing.Short() {
			cases = append(cases, sumCase{dag.Ring, 1, large, float64(n-1) * between(4*large/n)})
		}
		if n < 1000 { // a thousand rings of as many slices take too long
			elems := g * large
			cases = append(cases, sumCase{dag.Hierarchical, g, elems, (g-1)*within(4*elems/g) + float64(n-1)*between(4*elems/(g*n))})
		}
		for _, c := range cases {
			p := oneLeaf(t, n, c.each)
			for i := range p.Devices {
				p.Devices[i].Dispatch = 0
			}
			must.Do(t, p.Complete())
			got := sumSeconds(t, allReduce(t, p, gpusOf(p), dag.Stage{Sum: c.sum, PerNode: c.each}, c.elems, false))
			if off := got/c.want - 1; math.Abs(off) > 1e-6 {
				t.Errorf("%d nodes of %d, %v of %d elements: %.9f s, want %.9f s, off by %g", n, c.each, c.sum, c.elems, got, c.want, off)
			}
		}
	}
	p := oneLeaf(t, 1, 8) // one node
	for i := range p.Devices {
		p.Devices[i].Dispatch = 0
	}
	must.Do(t, p.Complete())
	if got, want := sumSeconds(t, allReduce(t, p, gpusOf(p), dag.Stage{Sum: dag.Ring}, 2_000_000, false)), 7*within(1_000_000); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("ring within a node: %.9f s, want %.9f s", got, want)
	}
}

// sumSeconds is the time from the last contribution to the last addition.
func sumSeconds(tb testing.TB, d *schedule.Decision) float64 {
	s := must.Get(simulate.Run(context.Background(), d, 0, 1, simulate.Options{}))(tb)
	var begin, end time.Duration
	for _, span := range s.Spans {
		switch task := &d.Priced.Program.Graphs[0].Tasks[span.Task]; {
		case task.Op == "add" || task.Op == "sum":
			end = max(end, span.End)
		case strings.HasPrefix(task.Name, "reduce"):
			begin = max(begin, span.End)
		}
	}
	return (end - begin).Seconds()
}
