package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// clippedAt is a model whose gradients are clipped at a norm.
func clippedAt(m *nn.Model, norm float64) *nn.Model {
	next := *m
	next.Defaults.ClipNorm = norm
	return &next
}

// TestClippingWaitsForGradientsOnly: clip follows the sums of squares alone, one for each part of a
// gradient that is updated, the sum of a part of a weight follows the task that wrote it, and an update follows clip. No task
// computes a gradient and updates by it. So no task waits for more than the definition asks.
func TestClippingWaitsForGradientsOnly(t *testing.T) {
	m := clippedAt(mustNew(t, "clipped", []int{2, 5, 7}, layers.Conv2D{Filters: 3, Kernel: 2}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 11}, layers.ReLU{}, layers.Dense{Outputs: 5}), 1)
	g := mustLower(t, m, nn.LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 7,
		Lowering: dag.Lowering{Default: dag.LayerLowering{WeightGradient: dag.Cut{Outputs: 2}}}})
	before := func(task dag.TaskID) (ops []string) {
		for _, p := range g.Preds(task) {
			ops = append(ops, g.Tasks[p].Op)
		}
		slices.Sort(ops)
		return slices.Compact(ops)
	}
	clip, ok := g.TaskByName("clip")
	if !ok {
		t.Fatal("no task clips")
	}
	// Filters and rows two by two: 2, 6 and 3 parts of weights, and 3 biases.
	if ops := before(clip); countOp(g, "squares") != 14 || len(g.Preds(clip)) != 15 || !slices.Equal(ops, []string{"feed", "squares"}) {
		t.Errorf("clip follows %d tasks %v of %d sums", len(g.Preds(clip)), ops, countOp(g, "squares"))
	}
	for i := range g.Tasks {
		switch op := g.Tasks[i].Op; {
		case op == "sgd" && !slices.Contains(before(dag.TaskID(i)), "clip"):
			t.Errorf("%s does not follow clip", g.Tasks[i].Name)
		case op == "squares" && len(g.Preds(dag.TaskID(i))) != 1 && !strings.Contains(g.Tasks[i].Name, ".bias["):
			t.Errorf("%s follows %v", g.Tasks[i].Name, before(dag.TaskID(i)))
		case strings.HasSuffix(op, ".sgd"):
			t.Errorf("%s updates at once", g.Tasks[i].Name)
		}
	}
}

// TestClippedSteps: where no norm comes near the limit, weights and states are those without clipping,
// bit for bit, in random lowerings of all layers. Otherwise the norm of the first step's change, of a
// rate of 1 without momentum, is the limit less a share of 10⁻⁶/norm: as many roundings as there are
// weights are far below a thousandth.
func TestClippedSteps(t *testing.T) {
	const batch, samples, limit = 7, 23, 0x1p-6
	rng := rand.New(rand.NewPCG(43, 47))
	cases := layerCases(t)
	for _, name := range []string{"add", "avgpool", "concat", "conv2d", "dense", "flatten"} { // the others learn in the same layers
		m := cases[name]
		for try := range 3 {
			opt := nn.LowerOptions{Batch: batch, Type: []dag.DType{dag.Float32, dag.Float64}[try%2], Train: true, Samples: samples}
			opt.Lowering = randomLowering(m, rng)
			opt.Optimizer = apart{nn.SGD{LearningRate: 0.1, Momentum: 0.9, WeightDecay: 0.01}}
			if try%3 == 2 {
				opt.Optimizer = nn.DefaultAdamW()
			}
			var trained [2]*interpreter
			for i, m := range []*nn.Model{m, clippedAt(m, 1e30)} {
				trained[i] = newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
				trained[i].fill(m, "train", 5)
				for step := range 3 {
					trained[i].step(indices(batch*step, batch), 0.1/float64(step+1), step+1)
				}
			}
			what := fmt.Sprintf("%s %T %+v", name, opt.Optimizer, opt.Lowering)
			for _, p := range m.Parameters() {
				compareWords(t, what, p.Name, trained)
				compareWords(t, what, "state."+p.Name+".v", trained)
			}

			opt.Optimizer = nn.SGD{LearningRate: 1}
			in := newInterpreter(t, mustLower(t, clippedAt(m, limit), opt), map[string][]uint64{})
			in.fill(m, "train", 5)
			sum := 0.0
			before := map[string][]float64{}
			for _, p := range m.Parameters() {
				before[p.Name] = in.floats(p.Name)
			}
			in.step(indices(0, batch), 1, 1)
			for _, p := range m.Parameters() {
				for i, w := range in.floats(p.Name) {
					sum += (w - before[p.Name][i]) * (w - before[p.Name][i])
				}
			}
			if norm := math.Sqrt(sum); !(math.Abs(norm-limit) <= 1e-3*limit) {
				t.Errorf("%s: the step has a norm of %g, want %g", what, norm, limit)
			}
		}
	}
}
