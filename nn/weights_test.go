package nn_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// apart is stochastic gradient descent by tasks of its own in every lowering.
type apart struct{ nn.SGD }

// TestUpdatesAtOnce trains three steps of every network and fusion with random
// lowerings, once with updates by the tasks that compute a gradient and once apart. The
// rate changes and every step is on other samples. Parameters and velocities are equal
// bit for bit: sums and steps are the same, and gradients of inputs read the weight
// before it changes.
func TestUpdatesAtOnce(t *testing.T) {
	const batch, samples = 7, 23
	rng := rand.New(rand.NewPCG(37, 41))
	all, cases := layerCases(t), fusionCases(t)
	for _, kind := range []string{"conv2d", "dense", "flatten", "avgpool", "add"} { // the others learn in the same layers
		cases[kind] = all[kind]
	}
	cases["no biases"] = mustNew(t, "no-biases", []int{2, 11, 13},
		layers.Conv2D{Filters: 5, Kernel: 3, Pad: 1, NoBias: true}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Conv2D{Filters: 7, Kernel: 2, NoBias: true}, layers.ReLU{},
		layers.Flatten{}, layers.Dense{Outputs: 3, NoBias: true})
	cases["normalised"] = mustNew(t, "normalised", []int{2, 7, 5}, layers.Conv2D{Filters: 3, Kernel: 2, NoBias: true}, layers.BatchNorm{}, layers.ReLU{},
		layers.Conv2D{Filters: 11, Kernel: 2, NoBias: true}, layers.BatchNorm{}, layers.ReLU{}, layers.Conv2D{Filters: 13, Kernel: 2}, layers.Flatten{}, layers.Dense{Outputs: 3})
	found, tries := map[string]int{}, 6
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		m := cases[name]
		for try := range tries {
			optimizer := nn.SGD{LearningRate: 0.1}
			if try%3 > 0 {
				optimizer = nn.SGD{LearningRate: 0.1, Momentum: 0.9, WeightDecay: 0.01, Nesterov: try%3 > 1}
			}
			opt := nn.LowerOptions{Batch: batch, Type: []dag.DType{dag.Float32, dag.Float64}[try%2], Train: true, Samples: samples}
			opt.Lowering = randomLowering(m, rng)
			if try >= 4 {
				sumAtOnce(&opt.Lowering)
			}
			var trained [2]*interpreter
			for i, o := range []nn.Optimizer{optimizer, apart{optimizer}} {
				opt.Optimizer = o
				trained[i] = newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
				trained[i].fill(m, "train", 5)
				for step := range 3 {
					trained[i].step(indices(batch*step, batch), 0.1/float64(step+1), step+1)
				}
			}
			for _, op := range descents {
				found[op] += countOp(trained[0].g, op)
				if n := countOp(trained[1].g, op); n > 0 {
					t.Fatalf("%d tasks %s are not apart", n, op)
				}
			}
			for _, p := range m.Parameters() {
				compareWords(t, fmt.Sprintf("%s %+v %+v", name, optimizer, opt.Lowering), p.Name, trained)
				if optimizer.Momentum > 0 {
					compareWords(t, fmt.Sprintf("%s %+v %+v", name, optimizer, opt.Lowering), "state."+p.Name+".v", trained)
				}
			}
		}
	}
	for _, op := range descents {
		if found[op] < tries/2 {
			t.Errorf("%d tasks %s; the lowerings are no test", found[op], op)
		}
	}
}

// sumAtOnce makes every gradient one of the whole batch.
func sumAtOnce(l *dag.Lowering) {
	l.Default.WeightGradient = dag.Cut{Outputs: l.Default.WeightGradient.Outputs}
	for name, ll := range l.Layers {
		ll.WeightGradient = dag.Cut{Outputs: ll.WeightGradient.Outputs}
		l.Layers[name] = ll
	}
}

// descents are the operations that update by the gradient that they compute.
var descents = []string{
	"dense.dw.sgd", "dense.nhwc.dw.sgd", "conv2d.nhwc.dw.sgd", "conv2d.nhwc.pool.dw.sgd",
	"dense.dw.sgd.nobias", "dense.nhwc.dw.sgd.nobias", "conv2d.nhwc.dw.sgd.nobias", "conv2d.nhwc.pool.dw.sgd.nobias",
	"conv2d.nhwc.norm.dw.sgd", "conv2d.nhwc.norm.dw.sgd.nobias",
}

func compareWords(t *testing.T, what, buffer string, both [2]*interpreter) {
	t.Helper()
	if !slices.Equal(both[0].storage[buffer], both[1].storage[buffer]) {
		t.Errorf("%s: %s is %v, updated apart %v", what, buffer, both[0].floats(buffer), both[1].floats(buffer))
	}
}

func countOp(g *dag.Graph, op string) int {
	n := 0
	for i := range g.Tasks {
		if g.Tasks[i].Op == op {
			n++
		}
	}
	return n
}

// TestUpdatesAtOnceWhereOneTaskHasTheGradient checks in which layers a weight's
// gradient has no buffer: those, with a bias or without, whose gradient is not summed over tasks,
// under stochastic gradient descent.
func TestUpdatesAtOnceWhereOneTaskHasTheGradient(t *testing.T) {
	m := mustNew(t, "updates", []int{2, 5, 7}, layers.Conv2D{Filters: 3, Kernel: 2}, layers.Flatten{},
		layers.Dense{Outputs: 11}, layers.ReLU{}, layers.Dense{Outputs: 13, NoBias: true}, layers.ReLU{}, layers.Dense{Outputs: 5})
	for _, c := range []struct {
		optimizer nn.Optimizer
		lowering  dag.Lowering
		tasks     [10]int // of descents
	}{
		{nn.SGD{}, dag.Lowering{}, [10]int{1, 1, 1, 4: 1}},                                                                                     // fc3, fc1, which reads a copy, and conv1; fc2 has no bias
		{nn.SGD{}, dag.Lowering{Default: dag.LayerLowering{WeightGradient: dag.Cut{Outputs: 2}}}, [10]int{3, 6, 2, 4: 7}},                      // of 5, of 11 and of 13 rows, and of 3 filters
		{nn.SGD{}, dag.Lowering{Layers: map[string]dag.LayerLowering{"fc3": {WeightGradient: dag.Cut{Samples: 6}}}}, [10]int{0, 1, 1, 4: 1}},   // two sums
		{nn.SGD{}, dag.Lowering{Layers: map[string]dag.LayerLowering{"fc2": {WeightGradient: dag.Cut{Samples: 6}}}}, [10]int{1, 1, 1}},         // of fc2
		{nn.SGD{}, dag.Lowering{Layers: map[string]dag.LayerLowering{"fc3": {WeightGradient: dag.Cut{Samples: 400}}}}, [10]int{1, 1, 1, 4: 1}}, // one
		{nn.SGD{}, dag.Lowering{Layers: map[string]dag.LayerLowering{"conv1": {WeightGradient: dag.Cut{Samples: 16}}}}, [10]int{1, 1, 4: 1}},
		{nn.DefaultAdam(), dag.Lowering{}, [10]int{}},
	} {
		g := mustLower(t, m, nn.LowerOptions{Batch: 17, Type: dag.Float32, Train: true, Samples: 17, Optimizer: c.optimizer, Lowering: c.lowering})
		for i, op := range descents {
			if n := countOp(g, op); n != c.tasks[i] {
				t.Errorf("%T %+v: %d tasks %s, want %d", c.optimizer, c.lowering, n, op, c.tasks[i])
			}
		}
		_, hasGradient := g.BufferByName("grad.fc3.weight")
		_, hasUpdate := g.TaskByName("fc3.update.bias[0:5]")
		if atOnce := len(tilesOf(g, "fc3.backward.weight")) > 0 && !hasGradient; hasUpdate == atOnce {
			t.Errorf("%T %+v: fc3 has a gradient: %v, an update of its own: %v", c.optimizer, c.lowering, hasGradient, hasUpdate)
		}
	}
}
