package nn_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
)

// TestMicroBatches: a micro-batch has ⌈batch/number⌉ samples, and the last one what is left. So 7 samples in 5 micro-batches are
// two, two, two and one. One micro-batch is the batch.
func TestMicroBatches(t *testing.T) {
	for _, c := range []struct {
		number int
		sizes  []int
		suffix string // of the first
	}{{0, []int{7}, ""}, {1, []int{7}, ""}, {2, []int{4, 3}, ".micro1"}, {3, []int{3, 3, 1}, ".micro1"}, {5, []int{2, 2, 2, 1}, ".micro1"}} {
		opt := nn.LowerOptions{Batch: 7, FullBatch: 7, Lowering: dag.Lowering{MicroBatches: c.number}}
		all, suffixes := opt.MicroBatches()
		var sizes []int
		for _, samples := range all {
			sizes = append(sizes, samples.Len())
		}
		if !slices.Equal(sizes, c.sizes) || suffixes[0] != c.suffix || all[len(all)-1].Hi != 7 {
			t.Errorf("%d micro-batches are %+v, want of %v samples", c.number, all, c.sizes)
		}
	}
}

// microCases are networks with all layers, fusions and branches.
func microCases(t testing.TB) map[string]*nn.Model {
	cases := fusionCases(t)
	maps.Copy(cases, branchCases(t))
	for _, kind := range []string{"avgpool", "conv2d", "gelu", "globalavgpool", "mask", "maxpool", "pixels"} {
		cases[kind] = layerCases(t)[kind]
	}
	return cases
}

// cutSamples gives every cut of a lowering the same tile of samples.
func cutSamples(l *dag.Lowering, tile int) {
	cut := func(ll dag.LayerLowering) dag.LayerLowering {
		ll.Forward.Samples, ll.WeightGradient.Samples = tile, tile
		if ll.InputGradient != (dag.Cut{}) { // else it follows the forward pass
			ll.InputGradient.Samples = tile
		}
		return ll
	}
	l.Default = cut(l.Default)
	for name, ll := range l.Layers {
		l.Layers[name] = cut(ll)
	}
}

// TestMicroBatchesEqualTheStep: where tiles do not cross the bounds of micro-batches, a step in micro-batches has the tasks of the
// step without them, with the same names and shapes. Both list the parts of each sum in the order of the samples, so
// that weights, states and results are the same to the bit, whatever else is cut. (What copies weights to other layouts may
// be in fewer tasks, and is exact.) The first of 3 micro-batches of 7 samples has 3, the last 1, and of 4 they have 2, 2, 2 and 1.
func TestMicroBatchesEqualTheStep(t *testing.T) {
	const batch, samples = 7, 23
	rng := rand.New(rand.NewPCG(71, 73))
	cases := microCases(t)
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		try := i % 4
		m, number := cases[name], []int{3, 4, 7, 3}[try]
		if try%2 > 0 {
			m = clippedAt(m, 0x1p-6)
		}
		opt := nn.LowerOptions{Batch: batch, Type: []dag.DType{dag.Float32, dag.Float64}[try%2], Train: true, Samples: samples, Lowering: randomLowering(m, rng)}
		opt.Optimizer = nn.SGD{LearningRate: 0.1, Momentum: 0.9, WeightDecay: 0.01}
		if try > 2 {
			opt.Optimizer = nn.DefaultAdamW()
		}
		size := (batch + number - 1) / number
		cutSamples(&opt.Lowering, []int{1, size}[rng.IntN(2)])
		what := fmt.Sprintf("%s in %d: %+v", name, number, opt.Lowering)

		whole := mustLower(t, m, opt)
		opt.Lowering.MicroBatches = number
		micro := mustLower(t, m, opt)
		counts := tasksOf(micro)
		for task, n := range tasksOf(whole) {
			counts[task] -= n
		}
		for task, more := range counts {
			if more != 0 {
				t.Errorf("%s: %d more tasks %q than without micro-batches", what, more, task)
			}
		}
		var trained [2]*interpreter
		for i, g := range []*dag.Graph{micro, whole} {
			trained[i] = newInterpreter(t, g, map[string][]uint64{})
			trained[i].fill(m, "train", 5)
			for step := range 2 {
				trained[i].step(indices(batch*step, batch), 0.1/float64(step+1), step+1)
			}
		}
		names := []string{"loss", "correct"}
		for _, p := range m.Parameters() {
			names = append(names, p.Name)
			for _, state := range nn.StatesOf(opt.Optimizer) {
				names = append(names, "state."+p.Name+"."+state)
			}
		}
		for _, name := range names {
			compareWords(t, what, name, trained)
		}
	}
}

// tasksOf counts the tasks of a graph by name and shape, except those that copy weights to other layouts. Those that merge
// accumulators are named after buffers, which micro-batches have of their own.
func tasksOf(g *dag.Graph) map[string]int {
	all := map[string]int{}
	for i := range g.Tasks {
		name := g.Tasks[i].Name
		if g.Tasks[i].Labels.Phase == "reduce" {
			name = "reduce"
		}
		if op := g.Tasks[i].Op; op != "hwio" && op != "hwoi" {
			all[name+" "+op+" "+g.Tasks[i].Shape]++
		}
	}
	return all
}

// TestMicroBatchesHaveNoBarrier: a task of a micro-batch follows tasks of another only where it adds to a sum of gradients. What all
// share is before all (what is fed, labels, copies of weights) or behind all (updates, results). That holds for
// layers that are recomputed, too.
func TestMicroBatchesHaveNoBarrier(t *testing.T) {
	const number = 3
	cases := microCases(t)
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		m := cases[name]
		l := dag.Lowering{MicroBatches: number}
		l.Default = dag.LayerLowering{Forward: dag.Cut{Samples: 2, Outputs: 2, Inputs: 2, Accumulators: 2}, Recompute: i%3 == 0}
		g := mustLower(t, m, nn.LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 11, Lowering: l})
		joins, seen := 0, map[int32]bool{}
		for i := range g.Tasks {
			task := &g.Tasks[i]
			own := task.Labels.MicroBatch
			seen[own] = true
			if _, of, found := strings.Cut(task.Name, ".micro"); found && !strings.HasPrefix(of, fmt.Sprint(own, ".")) {
				t.Errorf("%s: %s has the label of micro-batch %d", name, task.Name, own)
			}
			for _, p := range g.Preds(dag.TaskID(i)) {
				before := &g.Tasks[p]
				other := before.Labels.MicroBatch
				switch adds := task.Accesses[0].Mode == dag.ReadWrite && g.Buffers[g.Storage(task.Accesses[0].Buffer)].Role == dag.Gradient; {
				case own == 0 || other == 0 || own == other:
				case adds && other == own-1 && before.Labels.Phase == "backward":
					joins++
				default:
					t.Errorf("%s: %s of micro-batch %d follows %s of %d", name, task.Name, own, before.Name, other)
				}
			}
		}
		if len(seen) != number+1 || joins < number-1 {
			t.Errorf("%s: micro-batches %v, with %d sums", name, seen, joins)
		}
		for _, op := range descents {
			if n := countOp(g, op); n > 0 {
				t.Errorf("%s: %d tasks %s update before all micro-batches have passed", name, n, op)
			}
		}
	}
}

// TestMicroBatchesOfAProgram: of 18 samples in batches of 7, two steps have 3, 3 and 1 samples at a time, and the 4 samples that are left
// are 3 and 1. Evaluations have no micro-batches.
func TestMicroBatchesOfAProgram(t *testing.T) {
	m := mustNew(t, "one dense layer", []int{5}, layers.Dense{Outputs: 2})
	opt := nn.ProgramOptions{Batch: 7, TrainSamples: 18, TestSamples: 11, Type: dag.Float32, Lowering: dag.Lowering{MicroBatches: 3}}
	p := must.Get(nn.NewProgram(m, opt))(t)
	want := map[string][]int{nn.GraphTrain: {3, 3, 1}, nn.GraphTrainTail: {3, 1}, nn.GraphEval: nil, nn.GraphEvalTail: nil}
	for _, g := range p.Graphs {
		var sizes []int
		for i := range nn.MicroBatchesOf(g) {
			input, _ := g.BufferByName(fmt.Sprintf("input.micro%d", i+1))
			sizes = append(sizes, g.Buffers[input].Shape[0])
		}
		if !slices.Equal(sizes, want[g.Name]) {
			t.Errorf("%s: micro-batches of %v samples, want %v", g.Name, sizes, want[g.Name])
		}
	}
	opt.Lowering.MicroBatches = 8
	if _, err := nn.NewProgram(m, opt); err == nil || err.Error() != `lower model "one dense layer": lowering: micro_batches is 8; want 1 to 7, the samples of a batch, or 0 for one` {
		t.Errorf("8 micro-batches of 7 samples: %v", err)
	}
}
