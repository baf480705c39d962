package execute

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
)

// node is a platform of cores and a number of emulated GPUs, each with a memory of its
// own, fast enough for tests.
func node(t testing.TB, cores, gpus int) *platform.Platform {
	t.Helper()
	p := machine(t, cores)
	for i := range gpus {
		name := fmt.Sprint("gpu", i)
		m := platform.MemoryID(len(p.Memories))
		p.Memories = append(p.Memories, platform.Memory{Name: name + ".mem", BandwidthBytesPerSec: 1e11, CapacityBytes: 1 << 20})
		p.Devices = append(p.Devices, platform.Device{Name: name, Kind: "emulated", Count: 1, Memory: m, Dispatch: 100,
			FlopsPerSec: map[string]float64{"float32": 1e10, "float64": 1e10}, CopyEnginesIn: 1, CopyEnginesOut: 1})
		p.Links = append(p.Links, platform.Link{Name: name + ".link", BandwidthBytesPerSec: 1e9, Latency: time.Microsecond, Sharing: platform.Duplex})
		p.Routes = append(p.Routes, platform.Route{From: 0, To: m, Links: []platform.LinkID{platform.LinkID(i)}})
	}
	must.Do(t, p.Complete())
	return p
}

// spreadPlan puts every task on a worker that choose gives for it, what the caller does
// on worker 0, in program order.
func spreadPlan(g *dag.Graph, workers int, choose func(task *dag.Task) int) *schedule.Plan {
	plan := &schedule.Plan{Policy: "test", Order: make([][]dag.TaskID, workers)}
	for t := range g.Tasks {
		w := 0
		if k, ok := operation(g.Tasks[t].Op); !ok || !k.Host {
			w = choose(&g.Tasks[t])
		}
		plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
	}
	return plan
}

func spreadPlans(prog *dag.Program, workers int, choose func(task *dag.Task) int) []*schedule.Plan {
	var plans []*schedule.Plan
	for _, g := range prog.Graphs {
		plans = append(plans, spreadPlan(g, workers, choose))
	}
	return plans
}

// splits are ways to divide the test network among the workers of a node.
var splits = []struct {
	name string
	of   func(task *dag.Task, workers int) int
}{
	{"all on the last", func(_ *dag.Task, workers int) int { return workers - 1 }},
	{"by samples", func(task *dag.Task, workers int) int { // by the tile in the name
		_, at, ok := strings.Cut(task.Name, "[")
		if !ok {
			return 0
		}
		return int(at[0]-'0') / testTile % workers
	}},
	{"by stages", func(task *dag.Task, workers int) int {
		if strings.Contains(task.Name, "fc1") || strings.Contains(task.Name, "relu1") || strings.HasSuffix(task.Name, "w1") || strings.HasSuffix(task.Name, "b1") {
			return workers - 1
		}
		return min(1, workers-2)
	}},
	{"at random", func(task *dag.Task, workers int) int {
		rng := rand.New(rand.NewPCG(uint64(len(task.Name)), uint64(task.Name[0])))
		return rng.IntN(workers)
	}},
}

// trained runs steps of training, in two runs with an evaluation between them, checks
// the schedules, and returns a digest of the weights.
func trained(t *testing.T, prog *dag.Program, opt how, steps int) string {
	t.Helper()
	opt.Hooks = testHooks(nil)
	r := newRunner(t, prog, opt)
	for _, run := range [][2]int{{0, steps}, {1, 2}, {0, 2}} {
		s := must.Get(r.Run(context.Background(), run[0], run[1], true))(t)
		if err := audit.Check(s, r.Problem(run[0], run[1])); err != nil {
			t.Error(err)
		}
	}
	return weights(r)
}
