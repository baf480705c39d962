package dahl_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// emulatedNode is the shipped platform of two cores and an emulated GPU, or of one more
// GPU like it.
func emulatedNode(t testing.TB, gpus int) *platform.Platform {
	t.Helper()
	p := shipped(t, "emulated")
	for i := 1; i < gpus; i++ {
		memory, gpu := p.Memories[1], p.Devices[1]
		memory.Name, gpu.Name, gpu.Memory = fmt.Sprint("vram", i), fmt.Sprint("gpu", i), platform.MemoryID(len(p.Memories))
		p.Memories, p.Devices = append(p.Memories, memory), append(p.Devices, gpu)
		p.Routes = append(p.Routes, platform.Route{From: 0, To: gpu.Memory, Links: p.Routes[0].Links})
	}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

// begins is where the range of a dimension in the box of a task's name begins, in units
// of a tile; 0 where it has none.
func begins(task *dag.Task, dimension, tile int) int {
	_, box, _ := strings.Cut(task.Name, "[")
	ranges := strings.Split(strings.TrimSuffix(box, "]"), ",")
	if dimension >= len(ranges) {
		return 0
	}
	begin, _, _ := strings.Cut(ranges[dimension], ":")
	n, err := strconv.Atoi(begin)
	if err != nil {
		return 0
	}
	return n / tile
}

// deviceSplits are the ways to divide a network that the fixture's lowering has tiles
// for.
var deviceSplits = []struct {
	name   string
	worker func(task *dag.Task, workers int) int
}{
	{"sample", func(task *dag.Task, workers int) int { return begins(task, 0, 3) % workers }},
	{"filter", func(task *dag.Task, workers int) int { return begins(task, 1, 11) % workers }},
	{"stage", func(task *dag.Task, workers int) int {
		if strings.HasPrefix(task.Labels.Layer, "conv") {
			return workers - 1
		}
		return workers - 2
	}},
}

// splitPlans puts the tasks of all graphs on the workers of a split, in program order, and
// what the caller does on the first.
func splitPlans(prog *dag.Program, workers int, worker func(task *dag.Task, workers int) int) []*schedule.Plan {
	var plans []*schedule.Plan
	for _, g := range prog.Graphs {
		plan := &schedule.Plan{Policy: "split", Order: make([][]dag.TaskID, workers)}
		for t := range g.Tasks {
			w := 0
			if k, ok := kernels.Lookup(g.Tasks[t].Op); !ok || !k.Host {
				w = worker(&g.Tasks[t], workers)
			}
			plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
		}
		plans = append(plans, plan)
	}
	return plans
}

// TestSplitsOverDevices trains a convolutional network, split by samples, by filters
// and by stages between two cores and one or two emulated GPUs. The weights are those of
// one core to the last bit, in every form of lowering.
func TestSplitsOverDevices(t *testing.T) {
	for _, form := range forms {
		n := newNetwork(t, "digits-cnn", dag.Float32, false, 1)
		n.lower(t, fixtureLowering(form.layout, form.fused))
		want := n.execute(t, execute.Options{Platform: machine(t, 1), Policy: "heft"}).hash()
		for gpus := 1; gpus <= 2; gpus++ {
			for _, split := range deviceSplits {
				t.Run(fmt.Sprintf("%s fused %v, %d GPUs, %s", form.layout, form.fused, gpus, split.name), func(t *testing.T) {
					got := n.execute(t, execute.Options{Platform: emulatedNode(t, gpus), Plans: splitPlans(n.prog, 2+gpus, split.worker)})
					if got.hash() != want {
						t.Error("the weights differ from those of one core")
					}
				})
			}
		}
	}
}

// TestDevicesMoveWhatTheEngineMoves compares what an executed step moves with what the
// Engine of the simulator moves for the same plan where nothing limits it, region by
// region. With one GPU, since between two the executor stages in the host memory what the
// Engine moves at once.
func TestDevicesMoveWhatTheEngineMoves(t *testing.T) {
	const steps = 3
	n := newNetwork(t, "digits-cnn", dag.Float32, true, 1)
	for _, split := range deviceSplits {
		plans := splitPlans(n.prog, 3, split.worker)
		executed, problem := n.steps(t, execute.Options{Platform: emulatedNode(t, 1), Plans: plans}, steps)
		problem.Platform = emulatedNode(t, 1)
		gpu := &problem.Platform.Devices[1]
		gpu.CopyEnginesIn, gpu.CopyEnginesOut = 0, 0
		simulated, err := simulate.Run(context.Background(), problem, simulate.Options{Plan: plans[0]})
		if err != nil {
			t.Fatal(err)
		}
		got, want := movedFor(executed, problem.Graph, 1), movedFor(simulated, problem.Graph, 1)
		if len(want) == 0 || len(got) != len(want) {
			t.Errorf("%s: %d regions moved, by the Engine %d", split.name, len(got), len(want))
		}
		for what, bytes := range want {
			if got[what] != bytes {
				t.Errorf("%s: %s: %d bytes moved, by the Engine %d", split.name, what, got[what], bytes)
			}
		}
	}
}

// steps executes steps of the first graph by themselves.
func (n *network) steps(t *testing.T, opt execute.Options, steps int) (*schedule.Schedule, *schedule.Problem) {
	t.Helper()
	tr := &training{network: n, samples: make([]int32, steps*fixtureBatch)}
	opt.Hooks = map[string]execute.Hook{"feed": tr.feed, "fetch": tr.fetch}
	var err error
	if tr.runner, err = execute.New(n.prog, opt); err != nil {
		t.Fatal(err)
	}
	defer tr.runner.Close()
	tr.fill()
	s, err := tr.runner.Run(context.Background(), 0, steps, true)
	if err != nil {
		t.Fatal(err)
	}
	return s, tr.runner.Problem(0, steps)
}

// movedFor is the bytes that moved for a step, by storage, memories and pieces.
func movedFor(s *schedule.Schedule, g *dag.Graph, step int32) map[string]int64 {
	moved := map[string]int64{}
	for _, tr := range s.Transfers {
		if tr.Step == step {
			moved[fmt.Sprint(g.Buffers[tr.Buffer].Name, tr.From, tr.To, tr.Atoms)] += tr.Bytes
		}
	}
	return moved
}
