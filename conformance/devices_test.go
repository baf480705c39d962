package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/nn"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
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

// tileOf is the number of the tile that a task works on, by the start of a dimension in
// the box of its name; 0 where the box has no such dimension.
func tileOf(task *dag.Task, dimension, tile int) int {
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

// inTurn deals tiles out from both ends of the workers, the last GPU first, so that GPUs
// and cores have a part of two tiles already.
func inTurn(tile, workers int) int {
	if k := tile % workers; k%2 == 1 {
		return k / 2
	} else {
		return workers - 1 - k/2
	}
}

// deviceSplits are the ways to divide a network.
var deviceSplits = []struct {
	name   string
	worker func(task *dag.Task, tiles *dag.LayerLowering, workers int) int
}{
	{"sample", func(task *dag.Task, tiles *dag.LayerLowering, workers int) int {
		return inTurn(tileOf(task, 0, max(tiles.Forward.Samples, 1)), workers)
	}},
	{"filter", func(task *dag.Task, tiles *dag.LayerLowering, workers int) int {
		return inTurn(tileOf(task, 1, max(tiles.Forward.Outputs, 1)), workers)
	}},
	{"stage", func(task *dag.Task, _ *dag.LayerLowering, workers int) int {
		if strings.HasPrefix(task.Labels.Layer, "conv") {
			return workers - 1
		}
		return workers - 2
	}},
	{"all on the last", func(_ *dag.Task, _ *dag.LayerLowering, workers int) int { return workers - 1 }},
}

// splitPlans puts the tasks of all graphs on the workers of a split, in program order, and
// what the caller does on the first.
func (n *network) splitPlans(workers, split int) []*schedule.Plan {
	var plans []*schedule.Plan
	for _, g := range n.prog.Graphs {
		plan := &schedule.Plan{Policy: "split", Order: make([][]dag.TaskID, workers)}
		for t := range g.Tasks {
			w := 0
			if k, err := kernels.KernelByName(g.Tasks[t].Op); err != nil || !k.Host {
				w = deviceSplits[split].worker(&g.Tasks[t], &n.lowering.Default, workers)
			}
			plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
		}
		plans = append(plans, plan)
	}
	return plans
}

// TestSplitsOverDevices trains convolutional networks, one with branches, split by samples, by filters
// and by stages between two cores and one or two emulated GPUs, through two epochs with
// short last batches and evaluations. The weights and losses are those of one core to the last bit, in
// lowerings of which every second cuts layers along all dimensions, in both types, and with an optimiser that
// keeps two states per weight.
func TestSplitsOverDevices(t *testing.T) {
	adam := nn.DefaultAdam()
	for i, c := range []struct {
		model     string
		dtype     dag.DType
		optimizer nn.Optimizer
		epochs    int
		loss      nn.Loss
		clip      float64
	}{
		{"digits-cnn", dag.Float32, nil, 2, nn.Loss{}, 0}, {"digits-cnn", dag.Float32, adam, 1, nn.Loss{}, 0}, {"digits-cnn", dag.Float64, nil, 1, nn.Loss{}, 0},
		{"digits-cnn", dag.Float32, nn.DefaultAdamW(), 1, nn.Loss{LabelSmoothing: 0.125}, 0.5}, {"digits-cnn", dag.Float64, nil, 1, nn.Loss{Name: "mse"}, 0.25},
		{branching, dag.Float64, adam, 1, nn.Loss{}, 0}, {branching, dag.Float32, nil, 1, nn.Loss{}, 0},
	} {
		if testing.Short() && i%3 != 0 {
			continue
		}
		n := newNetwork(t, c.model, c.dtype, c.epochs)
		n.optimizer, n.model.Defaults.Loss, n.model.Defaults.ClipNorm = c.optimizer, c.loss, c.clip
		n.lower(t, []dag.Lowering{fixtureLowering(), n.mixedLowering()}[i%2])
		want := n.execute(t, how{platform: machine(t, 1), policy: "heft"})
		for gpus := 1; gpus <= 2; gpus++ {
			if testing.Short() && gpus != 1+i%2 {
				continue
			}
			for split := range deviceSplits {
				t.Run(fmt.Sprintf("%s %v %v, %v, clipped at %v, %d GPUs, %s", c.model, c.dtype, c.optimizer, c.loss, c.clip, gpus, deviceSplits[split].name), func(t *testing.T) {
					got := n.execute(t, how{platform: emulatedNode(t, gpus), plans: n.splitPlans(2+gpus, split)})
					if got.hash() != want.hash() || !slices.Equal(got.losses, want.losses) {
						t.Error("weights or losses differ from those of one core")
					}
					for _, r := range got.runs {
						onGPUs(t, r, gpus, deviceSplits[split].name)
					}
				})
			}
		}
	}
}

// onGPUs fails unless every GPU of a split had tasks, of which the short batch and the
// evaluation may be too small.
func onGPUs(t *testing.T, r run, gpus int, split string) {
	t.Helper()
	count := make([]int, len(r.problem.Platform.Workers))
	for _, s := range r.schedule.Spans {
		count[s.Worker]++
	}
	for w := len(count) - 1; w >= len(count)-gpus; w-- {
		if count[w] == 0 && (w == len(count)-1 || r.graph == 0 && split != "all on the last") {
			t.Errorf("graph %d: worker %d had no task: %v", r.graph, w, count)
		}
	}
}

// TestPredictionMovesWhatIsMoved compares every transfer of executed steps with those that the
// simulator predicts for the same plan: with two GPUs, too, between which contents go
// through the host memory, which is two transfers in both worlds.
func TestPredictionMovesWhatIsMoved(t *testing.T) {
	const steps = 3
	for gpus := 1; gpus <= 2; gpus++ {
		for i, dtype := range []dag.DType{dag.Float32, dag.Float64}[:gpus] {
			n := newNetwork(t, []string{"digits-cnn", branching}[i], dtype, 1)
			if gpus == 2 {
				n.lower(t, n.mixedLowering())
			}
			for split := range deviceSplits {
				plans := n.splitPlans(2+gpus, split)
				executed, d := n.steps(t, how{platform: emulatedNode(t, gpus), plans: plans}, steps)
				predicted, g := simulated(t, d, 0, steps), n.prog.Graphs[0]
				name := fmt.Sprintf("%v, %d GPUs, %s", dtype, gpus, deviceSplits[split].name)
				for step := range int32(steps) {
					got, want := movedFor(executed, g, step), movedFor(predicted, g, step)
					if len(want) == 0 || !maps.Equal(got, want) {
						t.Errorf("%s, step %d: moved %v, predicted %v", name, step, got, want)
					}
				}
				if len(executed.Transfers) != len(predicted.Transfers) {
					t.Errorf("%s: %d transfers, predicted %d", name, len(executed.Transfers), len(predicted.Transfers))
				}
				if got, want := movedBytes(executed, g, 1), staleBytes(g, d.Priced.Platform, plans[0], 1); !maps.Equal(got, want) {
					t.Errorf("%s: in a step moved %v, counted %v", name, got, want)
				}
			}
		}
	}
}

// TestStagedMovesInParts trains a network on two emulated GPUs that reach each other only through
// the host memory, by a bus of so little latency that results go from one to the other in parts.
// The weights are those of one core to the last bit, and every part is the plan's and in the prediction, in its order.
func TestStagedMovesInParts(t *testing.T) {
	n := newNetwork(t, "digits-cnn", dag.Float32, 1)
	want := n.execute(t, how{platform: machine(t, 1), policy: "heft"})
	for split := range deviceSplits[:2] { // what stages exchange here is less than two parts
		name, p := deviceSplits[split].name, emulatedNode(t, 2)
		p.Links[0].Latency = 50 // at 4 GB/s 1,800 bytes are a part
		if err := p.Complete(); err != nil {
			t.Fatal(err)
		}
		got := n.execute(t, how{platform: p, plans: n.splitPlans(4, split)})
		if got.hash() != want.hash() || !slices.Equal(got.losses, want.losses) {
			t.Errorf("%s: weights or losses differ from those of one core", name)
		}
		for _, r := range got.runs {
			parts, placed := 0, got.decision.Placed
			for _, m := range placed.Graphs[r.graph].Moves() {
				if m != nil && m.Share.Of > 0 {
					parts++
				}
			}
			if parts == 0 && r.graph == 0 {
				t.Errorf("%s: no result goes in parts", name)
			}
			predicted := simulated(t, got.decision, r.graph, r.schedule.Steps)
			for _, s := range []*schedule.Schedule{r.schedule, predicted} {
				if err := audit.FollowsTransfers(s, placed, r.graph); err != nil {
					t.Errorf("%s, %s: %v", name, s.World, err)
				}
			}
			t.Logf("%s, graph %d: %d parts in a step, the run took %v, predicted %v", name, r.graph, parts, r.schedule.Makespan, predicted.Makespan)
		}
	}
}

// movement is a storage and where it moves.
type movement struct {
	storage  string
	from, to platform.MemoryID
}

// movedBytes is what moved for a step, by storage and memories.
func movedBytes(s *schedule.Schedule, g *dag.Graph, step int32) map[movement]int64 {
	moved := map[movement]int64{}
	for _, tr := range s.Transfers {
		if tr.Step == step {
			moved[movement{g.Buffers[tr.Buffer].Name, tr.From, tr.To}] += tr.Bytes
		}
	}
	return moved
}

// staleBytes counts what has to move for a step without atoms, copies or plans of them: tasks run one after the
// other in program order, and each element that a task reads where it is stale comes from where it is not, by
// way of the host memory. All is at home in the host memory; what a step does not carry to
// the next is nowhere when that begins.
func staleBytes(g *dag.Graph, p *platform.Platform, plan *schedule.Plan, step int) map[movement]int64 {
	worker := make([]platform.WorkerID, len(g.Tasks))
	for w, list := range plan.Order {
		for _, t := range list {
			worker[t] = platform.WorkerID(w)
		}
	}
	fresh := map[dag.BufferID][][]bool{} // by storage, memory and element
	for b := range g.Buffers {
		if g.Buffers[b].ViewOf == dag.None {
			fresh[dag.BufferID(b)] = make([][]bool, len(p.Memories))
			for m := range p.Memories {
				fresh[dag.BufferID(b)][m] = slices.Repeat([]bool{m == 0}, int(g.Buffers[b].Elems()))
			}
		}
	}
	moved := map[movement]int64{}
	bring := func(owner dag.BufferID, e int, to platform.MemoryID, count bool) {
		if fresh[owner][to][e] {
			return
		}
		at := platform.MemoryID(slices.IndexFunc(fresh[owner], func(f []bool) bool { return f[e] }))
		for _, hop := range []platform.MemoryID{0, to} {
			if !fresh[owner][hop][e] {
				fresh[owner][hop][e] = true
				if count {
					moved[movement{g.Buffers[owner].Name, at, hop}] += g.Buffers[owner].Type.SizeBytes()
				}
			}
			at = hop
		}
	}
	for s := range step + 1 {
		for t := range g.Tasks {
			here := p.Devices[p.Workers[worker[t]].Device].Memory
			for _, reads := range []bool{true, false} {
				for _, a := range g.Tasks[t].Accesses {
					if reads && !a.Mode.Reads() || !reads && !a.Mode.Writes() {
						continue
					}
					owner := a.Buffer
					if of := g.Buffers[owner].ViewOf; of != dag.None {
						owner = of
					}
					for _, e := range elementsOf(&g.Buffers[a.Buffer], a.Box) {
						if reads {
							bring(owner, e, here, s == step)
							continue
						}
						for m := range fresh[owner] {
							fresh[owner][m][e] = platform.MemoryID(m) == here
						}
					}
				}
			}
		}
	}
	return moved
}

// elementsOf are the row-major indices of the elements of a box.
func elementsOf(b *dag.Buffer, box dag.Box) []int {
	at := []int{0}
	for d, extent := range b.Shape {
		r := dag.Range{Lo: 0, Hi: extent}
		if box != nil {
			r = box[d]
		}
		var next []int
		for _, e := range at {
			for i := r.Lo; i < r.Hi; i++ {
				next = append(next, e*extent+i)
			}
		}
		at = next
	}
	return at
}

// steps executes steps of the first graph by themselves.
func (n *network) steps(t *testing.T, h how, steps int) (*schedule.Schedule, *schedule.Decision) {
	t.Helper()
	tr := &training{network: n, samples: make([]int32, steps*fixtureBatch)}
	tr.open(t, h, map[string]execute.Hook{"feed": tr.feed, "fetch": tr.fetch})
	defer tr.runner.Close()
	s, err := tr.runner.Run(context.Background(), 0, steps, true)
	if err != nil {
		t.Fatal(err)
	}
	return s, tr.decision
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
