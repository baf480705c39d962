package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
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
	for range p.Memories {
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
		fmt.Fprintln(w, " :", cost.Duration.Seconds(), p.MemoryOf(worker[t]))
	}
}

// allReduce sums a vector over devices by an exchange, and lets each device read all of the sum, if all want it. Additions and the reading tasks take no time.
func allReduce(tb testing.TB, p *platform.Platform, devices []string, of dag.Stage, elems int, wanted bool) *schedule.Decision {
	tb.Helper()
	of.Devices = devices
	b := dag.NewBuilder("all-reduce")
	g := b.Buffer(dag.Buffer{Name: "g", Shape: []int{elems}, Type: dag.Float32, Role: dag.Gradient})
	nothing := []dag.Cost{{Key: dag.AnyDevice}}
	b.OpCosts("add", nothing)
	b.OpCosts("sum", nothing)
	for _, mode := range []dag.Mode{dag.Reduce, dag.Read} {
		if mode == dag.Read && !wanted {
			break
		}
		for _, device := range devices {
			b.Task(dag.Task{Name: fmt.Sprint(mode, device), Costs: nothing, Placement: &dag.Placement{Device: device}, Accesses: []dag.Access{{Region: dag.Region{Buffer: g}, Mode: mode}}})
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

// processor is the time that the process has used.
func processor(tb testing.TB) time.Duration {
	var u syscall.Rusage
	must.Do(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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

// TestSimGrid compares all-reduces of 8 GiB with SimGrid. Copies share adaptors, leaves and wires between them. Ends of transfers are whole nanoseconds here, so that makespans differ by up to
// 150 ns, whatever the bytes; shorter sums are therefore further off (bench/scale.md).
func TestSimGrid(t *testing.T) {
	program := buildSimGrid(t)
	for _, c := range []struct {
		nodes, each int
		of          dag.Stage
	}{{2, 2, dag.Stage{Sum: dag.Ring}}, {10, 2, dag.Stage{Sum: dag.Tree}}, {5, 3, dag.Stage{Sum: dag.Direct}}, {10, 3, dag.Stage{Sum: dag.Hierarchical, PerNode: 3}}} {
		p := equalLatencies(t, c.nodes, c.each)
		d := allReduce(t, p, gpusOf(p), c.of, 1<<31, true)
		s := must.Get(simulate.Run(context.Background(), d, 0, 1, simulate.Options{}))(t)
		by := bySimGrid(t, program, d)
		if off := s.Makespan.Seconds()/by.makespan - 1; math.Abs(off) > 1e-6 {
			t.Errorf("%d nodes of %d, %v: %v, and SimGrid has %.9f s: off by %g", c.nodes, c.each, c.of.Sum, s.Makespan, by.makespan, off)
		}
	}
}

// equalLatencies is a fat tree without latencies: SimGrid's shares of a link are weighted by them.
func equalLatencies(tb testing.TB, nodes, each int) *platform.Platform {
	p := fatTree(tb, nodes, each)
	for i := range p.Links {
		p.Links[i].Latency = 0
	}
	for i := range p.Devices {
		p.Devices[i].Dispatch = 0
	}
	must.Do(tb, p.Complete())
	return p
}

// TestSumsByFormula: where no link is shared the sum of B bytes over devices takes, by ring, (n-1)(a + B/(nb)); by tree, log2 n (a + B/b); and hierarchically over g devices on each of
// q nodes, (g-1)(a + B/(gb)) and then (q-1)(A + B/(gqN)). Within a node b is 250 GB/s and a is 5 us, between nodes of a
// leaf N is 25 GB/s and A 4 us. Each message is rounded up to a nanosecond.
func TestSumsByFormula(t *testing.T) {
	message := func(a, bytes, perSecond float64) float64 { return a*1e-6 + bytes/perSecond }
	for _, c := range []struct {
		nodes, each, elems int
		of                 dag.Stage
		want               func(bytes float64) float64
	}{
		{1, 8, 1 << 26, dag.Stage{Sum: dag.Ring}, func(b float64) float64 { return 7 * message(5, b/8, 250e9) }},
		{1, 8, 1 << 26, dag.Stage{Sum: dag.Tree}, func(b float64) float64 { return 3 * message(5, b, 250e9) }},
		{5, 1, 1 << 26, dag.Stage{Sum: dag.Ring}, func(b float64) float64 { return 4 * message(4, b/5, 25e9) }},
		{4, 8, 1 << 26, dag.Stage{Sum: dag.Hierarchical, PerNode: 8}, func(b float64) float64 { return 7*message(5, b/8, 250e9) + 3*message(4, b/32, 25e9) }},
	} {
		p := fatTree(t, c.nodes, c.each)
		for i := range p.Devices {
			p.Devices[i].Dispatch = 0
		}
		must.Do(t, p.Complete())
		d := allReduce(t, p, gpusOf(p), c.of, c.elems, false)
		s := must.Get(simulate.Run(context.Background(), d, 0, 1, simulate.Options{}))(t)
		sum := time.Duration(0)
		for _, span := range s.Spans {
			if op := d.Priced.Program.Graphs[0].Tasks[span.Task].Op; op == "add" || op == "sum" {
				sum = max(sum, span.End)
			}
		}
		if want := c.want(float64(4 * c.elems)); math.Abs(sum.Seconds()-want) > 20e-9 {
			t.Errorf("%d nodes of %d, %v of %d elements: %v, want %.9f s", c.nodes, c.each, c.of.Sum, c.elems, sum, want)
		}
	}
}
