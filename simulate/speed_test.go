package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// hosts is a platform of n single cores; with messages each has a memory of its own, joined
// to the others by one backbone.
func hostsOf(t testing.TB, n int, messages bool) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "hosts", Memories: []platform.Memory{{Name: "m0", BandwidthBytesPerSec: 1e9}}}
	if messages {
		p.Links = []platform.Link{{Name: "backbone", BandwidthBytesPerSec: 1e9, Latency: 10 * time.Microsecond, Sharing: platform.Shared, PowerSource: platform.Guess}}
	}
	for i := range n {
		m := platform.MemoryID(0)
		if messages && i > 0 {
			m = platform.MemoryID(i)
			p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprint("m", i), BandwidthBytesPerSec: 1e9})
			for from := range m {
				p.Routes = append(p.Routes, platform.Route{From: from, To: m, Links: []platform.LinkID{0}})
			}
		}
		p.Devices = append(p.Devices, platform.Device{Name: fmt.Sprint("d", i), Kind: "cpu", Count: 1, Memory: m, PowerSource: platform.Guess})
	}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

// cholesky is the tiled factorisation of n by n tiles, one buffer each.
func choleskyOf(n int) *dag.Builder {
	b := dag.NewBuilder("cholesky")
	tile := make([][]dag.BufferID, n)
	for i := range tile {
		for j := range i + 1 {
			tile[i] = append(tile[i], b.Buffer(dag.Buffer{Name: fmt.Sprintf("a%d.%d", i, j), Shape: []int{1 << 14}, Type: dag.Float32, Role: dag.Activation}))
		}
	}
	acc := func(buf dag.BufferID, m dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: buf}, Mode: m}
	}
	add := func(name string, ns int64, a ...dag.Access) {
		b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: ns}}, Accesses: a})
	}
	for i := range tile {
		for j := range tile[i] {
			add(fmt.Sprintf("make%d.%d", i, j), 1000, acc(tile[i][j], dag.Write))
		}
	}
	for k := range n {
		add(fmt.Sprintf("potrf%d", k), 50_000, acc(tile[k][k], dag.ReadWrite))
		for i := k + 1; i < n; i++ {
			add(fmt.Sprintf("trsm%d.%d", i, k), 100_000, acc(tile[k][k], dag.Read), acc(tile[i][k], dag.ReadWrite))
		}
		for i := k + 1; i < n; i++ {
			for j := k + 1; j < i; j++ {
				add(fmt.Sprintf("gemm%d.%d.%d", i, j, k), 200_000, acc(tile[i][k], dag.Read), acc(tile[j][k], dag.Read), acc(tile[i][j], dag.ReadWrite))
			}
			add(fmt.Sprintf("syrk%d.%d", i, k), 120_000, acc(tile[i][k], dag.Read), acc(tile[i][i], dag.ReadWrite))
		}
	}
	return b
}

// layered is layers of width tasks, each of which reads one to three of the layer before.
func randomLayers(n, width int) *dag.Builder {
	r := rand.New(rand.NewPCG(1, 2))
	b := dag.NewBuilder("layered")
	var before, now []dag.BufferID
	for i := range n {
		if i%width == 0 {
			before, now = now, nil
		}
		y := b.Buffer(dag.Buffer{Name: fmt.Sprint("y", i), Shape: []int{1000 + r.IntN(50_000)}, Type: dag.Float32, Role: dag.Activation})
		now = append(now, y)
		task := dag.Task{Name: fmt.Sprint("t", i), Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 10_000 + r.Int64N(1_000_000)}},
			Accesses: []dag.Access{{Region: dag.Region{Buffer: y}, Mode: dag.Write}}}
		if len(before) > 0 {
			for _, k := range r.Perm(len(before))[:1+r.IntN(3)] {
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: before[k]}, Mode: dag.Read})
			}
		}
		b.Task(task)
	}
	return b
}

type speedCase struct {
	name     string
	graph    func() *dag.Builder
	messages bool
}

var speedCases = []speedCase{
	{"layered/10000", func() *dag.Builder { return randomLayers(10_000, 50) }, false},
	{"layered/10000/messages", func() *dag.Builder { return randomLayers(10_000, 50) }, true},
	{"cholesky/38", func() *dag.Builder { return choleskyOf(38) }, false},
	{"cholesky/38/messages", func() *dag.Builder { return choleskyOf(38) }, true},
	{"layered/100000", func() *dag.Builder { return randomLayers(100_000, 50) }, false},
	{"layered/100000/messages", func() *dag.Builder { return randomLayers(100_000, 50) }, true},
	{"cholesky/84", func() *dag.Builder { return choleskyOf(84) }, false},
	{"cholesky/84/messages", func() *dag.Builder { return choleskyOf(84) }, true},
	{"cholesky/181", func() *dag.Builder { return choleskyOf(181) }, false},
	{"cholesky/181/messages", func() *dag.Builder { return choleskyOf(181) }, true},
}

func (c speedCase) problem(b *testing.B) (*dag.Graph, *platform.Platform, *schedule.Plan) {
	g, err := c.graph().Build()
	if err != nil {
		b.Fatal(err)
	}
	p := hostsOf(b, 10, c.messages)
	plan := &schedule.Plan{Order: make([][]dag.TaskID, len(p.Workers))}
	for t := range g.Tasks {
		w := (t * 7919 / 13) % len(p.Workers)
		plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
	}
	return g, p, plan
}

// BenchmarkPlan replays a plan for one step, from the graph to the schedule.
func BenchmarkPlan(b *testing.B) {
	for _, c := range speedCases {
		b.Run(c.name, func(b *testing.B) {
			g, p, plan := c.problem(b)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				simulateSpeed(b, g, p, plan)
			}
			runtime.ReadMemStats(&after)
			n := float64(b.N * len(g.Tasks))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/task")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/task")
		})
	}
}

// simulateSpeed decides by the plan and simulates.
func simulateSpeed(b *testing.B, g *dag.Graph, p *platform.Platform, plan *schedule.Plan) {
	priced, err := schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
	if err != nil {
		b.Fatal(err)
	}
	d, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := Run(context.Background(), d, 0, 1, Options{}); err != nil {
		b.Fatal(err)
	}
}
