package bench_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// hostsOf is a platform of n single cores. With messages each has a memory of its own, which one backbone of
// some latency joins to the others.
func hostsOf(t testing.TB, n int, messages bool, latency time.Duration) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "hosts", Memories: []platform.Memory{{Name: "m0", BandwidthBytesPerSec: 1e9}}}
	if messages {
		p.Links = []platform.Link{{Name: "backbone", BandwidthBytesPerSec: 1e9, Latency: latency, Sharing: platform.Shared, PowerSource: platform.Guess}}
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
	must.Do(t, p.Complete())
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
	inTurn   bool // tasks go to the workers in turn, as stages do; else they are scattered
	hosts    int
}

var speedCases = []speedCase{
	{"layered/10000", func() *dag.Builder { return randomLayers(10_000, 50) }, false, false, 10},
	{"messages/layered/10000", func() *dag.Builder { return randomLayers(10_000, 50) }, true, false, 10},
	{"cholesky/38", func() *dag.Builder { return choleskyOf(38) }, false, false, 10},
	{"messages/cholesky/38", func() *dag.Builder { return choleskyOf(38) }, true, false, 10},
	{"layered/100000", func() *dag.Builder { return randomLayers(100_000, 50) }, false, false, 10},
	{"messages/layered/100000", func() *dag.Builder { return randomLayers(100_000, 50) }, true, false, 10},
	{"cholesky/84", func() *dag.Builder { return choleskyOf(84) }, false, false, 10},
	{"messages/cholesky/84", func() *dag.Builder { return choleskyOf(84) }, true, false, 10},
	{"cholesky/181", func() *dag.Builder { return choleskyOf(181) }, false, false, 10},
	{"messages/cholesky/181", func() *dag.Builder { return choleskyOf(181) }, true, false, 10},
	{"messages/layered/20000 on 64", func() *dag.Builder { return randomLayers(20_000, 50) }, true, false, 64},
	{"pipe/10000", func() *dag.Builder { return stagesOf(10_000) }, false, true, 10},
	{"messages/pipe/10000", func() *dag.Builder { return stagesOf(10_000) }, true, true, 10},
	{"pipe/1000000", func() *dag.Builder { return stagesOf(1_000_000) }, false, true, 10},
	{"messages/pipe/1000000", func() *dag.Builder { return stagesOf(1_000_000) }, true, true, 10},
}

func (c speedCase) problem(b *testing.B) (*dag.Graph, *platform.Platform, *schedule.Plan) {
	g := must.Get(c.graph().Build())(b)
	p := hostsOf(b, c.hosts, c.messages, 10*time.Microsecond)
	plan := &schedule.Plan{Order: make([][]dag.TaskID, len(p.Workers))}
	for t := range g.Tasks {
		w := t * 7919 / 13 % len(p.Workers)
		if c.inTurn {
			w = t % len(p.Workers)
		}
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
			debug.FreeOSMemory()
			runtime.ReadMemStats(&before)
			resident, cpu := resetPeak(b), processorTime(b)
			for b.Loop() {
				must.Get(simulate.Run(b.Context(), decided(b, g, p, plan), 0, 1, simulate.Options{}))(b)
			}
			n := float64(b.N * len(g.Tasks))
			b.ReportMetric(float64((processorTime(b)-cpu).Nanoseconds())/n, "cpu-ns/task")
			b.ReportMetric(float64(statusBytes(b, "VmHWM")-resident)/float64(len(g.Tasks)), "peak-B/task")
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/task")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/task")
		})
	}
}

// resetPeak makes the bytes in memory now the most that there ever were, and returns them.
func resetPeak(b *testing.B) int64 {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Skip(err)
	}
	return statusBytes(b, "VmRSS")
}
