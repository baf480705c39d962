package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// splitDifferently is a training step of conv → ReLU → pool → flatten → dense with
// another split in every layer, of which none divides its extent.
func splitDifferently(t testing.TB) *dag.Graph {
	t.Helper()
	m := must.Get(nn.New("split", []int{2, 11, 13}, layers.Conv2D{Filters: 5, Kernel: 3}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Flatten{}, layers.Dense{Outputs: 7}))(t)
	g := must.Get(m.Lower(nn.LowerOptions{Batch: 17, Type: dag.Float32, Train: true, Samples: 19, Lowering: dag.Lowering{Layers: map[string]dag.LayerLowering{
		"input":    {Forward: dag.Cut{Samples: 5}},
		"conv1":    {Forward: dag.Cut{Samples: 3, Outputs: 2}, WeightGradient: dag.Cut{Samples: 4, Outputs: 2, Accumulators: 2}},
		"relu1":    {Forward: dag.Cut{Samples: 2, Outputs: 3}},
		"pool1":    {Forward: dag.Cut{Samples: 4, Outputs: 2}},
		"flatten1": {Forward: dag.Cut{Samples: 7}},
		"fc1":      {Forward: dag.Cut{Samples: 3, Outputs: 4}, WeightGradient: dag.Cut{Samples: 5, Outputs: 3}},
		"loss":     {Forward: dag.Cut{Samples: 5}},
	}}}))(t)
	return g
}

// TestTasksWaitForWhatTheyReadAlone goes through the step element by element: it
// spells out every box as the elements of its storage, which a flattened view
// shares with its original, and notes who wrote and read each one last. A task must
// depend on those tasks and on no other.
func TestTasksWaitForWhatTheyReadAlone(t *testing.T) {
	checkWaits(t, splitDifferently(t))
}

func checkWaits(t *testing.T, g *dag.Graph) {
	writer := make([]map[int]int32, len(g.Buffers)) // by storage and element
	readers := make([]map[int][]int32, len(g.Buffers))
	for i := range g.Buffers {
		writer[i], readers[i] = map[int]int32{}, map[int][]int32{}
	}
	for i := range g.Tasks {
		id := int32(i)
		if len(g.Tasks[i].After) > 0 {
			t.Errorf("%s follows tasks without data", g.Tasks[i].Name)
		}
		wants := map[int32]bool{}
		for k, a := range g.Tasks[i].Accesses {
			s := g.Storage(a.Buffer)
			eachElement(g.Buffers[a.Buffer].Shape, g.Box(dag.TaskID(i), k), func(e int) {
				if w, ok := writer[s][e]; ok {
					wants[w] = true
				}
				if a.Mode.Writes() {
					for _, r := range readers[s][e] {
						wants[r] = true
					}
				}
			})
		}
		for _, p := range g.Preds(dag.TaskID(i)) {
			if !wants[p] {
				t.Errorf("%s waits for %s and shares no element with it that one of them writes", g.Tasks[i].Name, g.Tasks[p].Name)
			}
			delete(wants, p)
		}
		for p := range wants {
			if !reaches(g, p, id) {
				t.Errorf("%s does not wait for %s, which touched its elements last", g.Tasks[i].Name, g.Tasks[p].Name)
			}
		}
		for k, a := range g.Tasks[i].Accesses {
			s := g.Storage(a.Buffer)
			eachElement(g.Buffers[a.Buffer].Shape, g.Box(dag.TaskID(i), k), func(e int) {
				if a.Mode.Writes() {
					writer[s][e], readers[s][e] = id, nil
				} else {
					readers[s][e] = append(readers[s][e], id)
				}
			})
		}
	}
}

// eachElement visits the row-major positions of a box.
func eachElement(shape []int, box dag.Box, visit func(int)) {
	if len(box) == 0 {
		visit(0)
		return
	}
	stride := 1
	for _, e := range shape[1:] {
		stride *= e
	}
	for i := box[0].Lo; i < box[0].Hi; i++ {
		eachElement(shape[1:], box[1:], func(e int) { visit(i*stride + e) })
	}
}

// reaches reports whether a path leads from one task to a later one.
func reaches(g *dag.Graph, from, to int32) bool {
	for _, s := range g.Succs(dag.TaskID(from)) {
		if s == to || s < to && reaches(g, s, to) {
			return true
		}
	}
	return false
}

// TestTilesInFlightTogether: in a simulated step each layer of the forward pass
// starts before the last tile of the layer before it has ended, and with a barrier
// it does not.
func TestTilesInFlightTogether(t *testing.T) {
	checkFlight(t, splitDifferently(t), machine(t, 3), [][2]string{{"conv1", "fc1"}})
}

// checkFlight compares a graph with itself with barriers.
func checkFlight(t *testing.T, g *dag.Graph, p *platform.Platform, pairs [][2]string) {
	t.Helper()
	for g, want := range map[*dag.Graph]bool{g: true, withBarriers(t, g): false} {
		s := simulated(t, decided(t, program(g), how{platform: p, policy: "eager"}), 0, 1)
		for _, pair := range pairs {
			if got := overlap(g, s, pair[0], pair[1]); got != want {
				t.Errorf("graph %q: %s starts before %s has ended: %v, want %v", g.Name, pair[1], pair[0], got, want)
			}
		}
	}
}

// overlap reports whether the forward pass of one layer starts before that of
// another has ended.
func overlap(g *dag.Graph, s *schedule.Schedule, first, second string) bool {
	end, start := s.Spans[0].End, s.Makespan
	for _, span := range s.Spans {
		switch l := g.Tasks[span.Task].Labels; {
		case l.Phase != "forward":
		case l.Layer == first:
			end = max(end, span.End)
		case l.Layer == second:
			start = min(start, span.Start)
		}
	}
	return start < end
}

// withBarriers is the same step with a barrier after each layer of the forward
// pass, after the loss and after each layer of the backward pass, its reductions
// and updates included: a task without work that follows every task of the layer
// and that every task of the next one follows. The next step waits for the last.
// Metrics, which nothing waits for, stay free.
func withBarriers(t testing.TB, g *dag.Graph) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder(g.Name + " with barriers")
	for _, buf := range g.Buffers {
		if buf.ViewOf == dag.None {
			b.Buffer(buf)
		} else {
			b.View(buf.Name, buf.ViewOf, buf.Shape...)
		}
	}
	token := b.Buffer(dag.Buffer{Name: "barrier", Shape: []int{1}, Type: dag.Uint8, Role: dag.State, Home: dag.HostHome})
	order, group := byLayer(g)
	var waiting, barrier []dag.TaskID // tasks of this layer, and the barrier before it
	for k, old := range order {
		task := g.Tasks[old]
		if k == 0 {
			task.Accesses = append(slices.Clone(task.Accesses), dag.Access{Region: dag.Region{Buffer: token}, Mode: dag.Read})
		}
		if task.Labels.Phase == "metrics" {
			b.Task(task)
			continue
		}
		task.After = barrier
		waiting = append(waiting, b.Task(task))
		if k+1 == len(order) || group[order[k+1]] != group[old] {
			point := dag.Task{Name: fmt.Sprintf("barrier.%d", group[old]), After: waiting}
			if group[old] == group[order[len(order)-1]] {
				point.Accesses = []dag.Access{{Region: dag.Region{Buffer: token}, Mode: dag.Write}}
			}
			barrier, waiting = []dag.TaskID{b.Task(point)}, nil
		}
	}
	return must.Get(b.Build())(t)
}

// byLayer sorts the tasks by layer and direction, in the order in which these
// begin, and returns the place of each task's group in it. That is a program order
// of the same meaning: no task moves before one that it follows.
func byLayer(g *dag.Graph) (order []dag.TaskID, group []int) {
	groups := map[string]int{}
	group = make([]int, len(g.Tasks))
	order = make([]dag.TaskID, len(g.Tasks))
	for i := range g.Tasks {
		l := g.Tasks[i].Labels
		direction := " backward"
		switch l.Phase {
		case "load", "forward", "loss", "metrics":
			direction = ""
		}
		name := l.Layer + direction
		if _, ok := groups[name]; !ok {
			groups[name] = len(groups)
		}
		group[i], order[i] = groups[name], dag.TaskID(i)
		for _, p := range g.Preds(dag.TaskID(i)) {
			if group[p] > group[i] {
				panic("conformance: " + g.Tasks[i].Name + " follows a task of a later layer")
			}
		}
	}
	slices.SortStableFunc(order, func(a, b dag.TaskID) int { return cmp.Compare(group[a], group[b]) })
	return order, group
}

// TestBarriersKeepTheWork: the graph with barriers has every task with its work, and
// every dependence of the original.
func TestBarriersKeepTheWork(t *testing.T) {
	g := splitDifferently(t)
	barred := withBarriers(t, g)
	if g.TotalFlops() != barred.TotalFlops() || g.TotalBytes() != barred.TotalBytes() {
		t.Errorf("%g flops and %d bytes, want %g and %d", barred.TotalFlops(), barred.TotalBytes(), g.TotalFlops(), g.TotalBytes())
	}
	for i := range g.Tasks {
		to, _ := barred.TaskByName(g.Tasks[i].Name)
		for _, p := range g.Preds(dag.TaskID(i)) {
			if from, ok := barred.TaskByName(g.Tasks[p].Name); !ok || !reaches(barred, int32(from), int32(to)) {
				t.Errorf("%s no longer follows %s", g.Tasks[i].Name, g.Tasks[p].Name)
			}
		}
	}
}

// BenchmarkBarrier reports the simulated time of ten training steps with and without
// a barrier after each layer, on durations by roofline. The times of the benchmark
// itself are those of the simulator. bench/barrier.md keeps the results.
func BenchmarkBarrier(b *testing.B) {
	const steps = 10
	for _, machineName := range []string{"laptop", "manycore"} {
		p := shipped(b, machineName)
		for _, c := range []struct {
			model string
			batch int
		}{{"dahl-cnn", 64}, {"dahl32", 64}, {"lenet5", 64}, {"digits-cnn", 64}, {"cifar-cnn", 64}, {"mlp", 64}} {
			free := trainingStep(b, c.model, c.batch, p)
			barred := withBarriers(b, free)
			for _, policy := range []string{"eager", "heft"} {
				b.Run(fmt.Sprintf("%s/%s/%s", machineName, c.model, policy), func(b *testing.B) {
					var without, with float64
					for b.Loop() {
						without = makespanSeconds(b, free, p, policy, steps)
						with = makespanSeconds(b, barred, p, policy, steps)
					}
					b.ReportMetric(1e6*without/steps, "free-us/step")
					b.ReportMetric(1e6*with/steps, "barred-us/step")
					b.ReportMetric(with/without, "barred/free")
				})
			}
		}
	}
}

func makespanSeconds(b *testing.B, g *dag.Graph, p *platform.Platform, policy string, steps int) float64 {
	b.Helper()
	s := must.Get(simulate.Run(context.Background(), decided(b, program(g), how{platform: p, policy: policy}), 0, steps, simulate.Options{}))(b)
	return s.Makespan.Seconds()
}
