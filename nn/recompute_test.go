package nn_test

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
)

// TestRecomputedTasks lists what is computed again, by hand, in channels-last fused steps of the networks of
// branchCases.
//
// In "twice" the groups are conv1+relu1, conv2, beside, add1, relu2, conv4, add2, flatten1, fc1. The packed weight of
// conv1 is kept. The gradient of add1 needs no values, and that of relu2 its mask, so that add1 is computed again only for relu2. Since
// fc1 has more outputs than the batch has samples, flatten1 copies its input, of which fc1 reads the copy.
//
// In "joined" conv1 writes its channels of concat1, which copies the input beside them. They stay where only one of
// the two layers is recomputed.
func TestRecomputedTasks(t *testing.T) {
	for _, c := range []struct{ model, layers, want string }{
		{"twice", "conv1", "conv1.recompute"},
		{"twice", "add1", ""},
		{"twice", "relu2", "relu2.recompute"},
		{"twice", "add1 relu2", "add1.recompute relu2.recompute"},
		{"twice", "conv1 conv2 beside add1 relu2", "conv1.recompute conv2.recompute beside.recompute add1.recompute relu2.recompute"},
		{"twice", "conv2 add1 relu2", "conv2.recompute add1.recompute relu2.recompute"},
		{"twice", "add2", ""},
		{"twice", "flatten1", "flatten1.recompute.nchw"},
		{"twice", "fc1 loss", ""},
		{"twice", "relu1", ""}, // part of conv1
		{"twice", "input", "input.recompute"},
		{"joined", "conv1", ""},
		{"joined", "concat1", ""},
		{"joined", "conv1 concat1", "conv1.recompute concat1.recompute.2"},
	} {
		l := dag.Lowering{Layers: map[string]dag.LayerLowering{}}
		for _, layer := range strings.Fields(c.layers) {
			l.Layers[layer] = dag.LayerLowering{Recompute: true}
		}
		m := branchCases(t)[c.model]
		opt := nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 3, Lowering: l}
		var got []string
		g := mustLower(t, m, opt)
		for i := range g.Tasks {
			if g.Tasks[i].Labels.Phase == "recompute" {
				step, _, _ := strings.Cut(g.Tasks[i].Name, "[")
				got = append(got, step)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s, %s: computed again are %q, want %q", c.model, c.layers, text, c.want)
		}
		opt.Train = false
		recomputed := mustLower(t, m, opt)
		if opt.Lowering.Layers = nil; recomputed.Hash() != mustLower(t, m, opt).Hash() {
			t.Errorf("%s, %s: an evaluation is another graph", c.model, c.layers)
		}
	}
}

// TestRecomputedSteps: steps in random lowerings of all networks, in which random layers are recomputed, have the weights of those
// without, bit for bit, and the graph is as it should be.
func TestRecomputedSteps(t *testing.T) {
	const batch, samples = 3, 23
	rng := rand.New(rand.NewPCG(59, 61))
	cases := fusionCases(t)
	maps.Copy(cases, branchCases(t))
	for name, m := range layerCases(t) {
		if slices.Contains([]string{"add", "avgpool", "concat", "maxpool", "tanh", "gelu"}, name) || len(m.Stages) > 9 {
			cases[name] = m // of the others the branching ones have all
		}
	}
	again, tries := 0, 2
	if testing.Short() {
		tries = 1
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		m := cases[name]
		for try := i; try < i+tries; try++ {
			opt := nn.LowerOptions{Batch: batch, Type: []dag.DType{dag.Float32, dag.Float64}[try%2], Train: true, Samples: samples}
			opt.Lowering = randomLowering(m, rng)
			opt.Lowering.MicroBatches = 1 + try/2%2
			graphs := [2]*dag.Graph{mustLower(t, m, opt)}
			opt.Lowering.Default.Recompute = rng.IntN(2) == 0
			for layer, ll := range opt.Lowering.Layers {
				ll.Recompute = rng.IntN(3) > 0
				opt.Lowering.Layers[layer] = ll
			}
			graphs[1] = mustLower(t, m, opt)
			what := fmt.Sprintf("%s %+v", name, opt.Lowering)
			again += checkRecomputed(t, what, graphs)
			var trained [2]*interpreter
			for i, g := range graphs {
				trained[i] = newInterpreter(t, g, map[string][]uint64{})
				trained[i].fill(m, "train", 5)
				for step := range 2 {
					trained[i].step(indices(batch*step, batch), 0.1, step+1)
				}
			}
			for _, p := range m.Parameters() {
				compareWords(t, what, p.Name, trained)
			}
		}
	}
	if again < 250*tries {
		t.Errorf("%d tasks are computed again; the cases should have more", again)
	}
}

// checkRecomputed compares a graph that recomputes layers with one that does not, and returns the number of further tasks. Each
// of these is one of the first graph with other buffers, and something reads what it makes. The backward pass reads no
// buffer of which there is a second.
func checkRecomputed(t *testing.T, what string, graphs [2]*dag.Graph) (again int) {
	t.Helper()
	plain, g := graphs[0], graphs[1]
	if err := g.Check(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	checkLateness(t, what, g)
	isRead := make([]bool, len(g.Buffers)) // by storage
	for i := range g.Tasks {
		for _, a := range g.Tasks[i].Accesses {
			storage := g.Storage(a.Buffer)
			isRead[storage] = isRead[storage] || a.Mode.Reads()
			if _, second := g.BufferByName(g.Buffers[storage].Name + ".recomputed"); second && g.Tasks[i].Labels.Phase == "backward" {
				t.Errorf("%s: %s has %s, of which there is a second", what, g.Tasks[i].Name, g.Buffers[storage].Name)
			}
		}
	}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		if _, ok := plain.TaskByName(task.Name); ok {
			continue
		}
		again++
		if !slices.ContainsFunc(task.Accesses, func(a dag.Access) bool { return a.Mode.Writes() && isRead[g.Storage(a.Buffer)] }) {
			t.Errorf("%s: nothing reads what %s makes", what, task.Name)
		}
		first := strings.ReplaceAll(task.Name, ".recomputed", "")
		id, ok := plain.TaskByName(strings.Replace(first, "."+"recompute", "."+"forward", 1))
		if !ok {
			id, ok = plain.TaskByName(strings.Replace(first, "."+"recompute", "."+"load", 1))
		}
		if of := &plain.Tasks[id]; !ok || of.Op != task.Op || of.Shape != task.Shape || of.Flops != task.Flops || of.MovedBytes != task.MovedBytes {
			t.Errorf("%s: %s (%s %s) is no task of the step without recomputation", what, task.Name, task.Op, task.Shape)
		}
	}
	if len(g.Tasks) != len(plain.Tasks)+again {
		t.Errorf("%s: %d tasks, want %d and %d", what, len(g.Tasks), len(plain.Tasks), again)
	}
	return again
}

// checkLateness: what is computed again begins when all tasks of the loss and of the backward pass of its micro-batch have
// ended that come before it. Sums of accumulators say no micro-batch, and are looked at where there are none.
func checkLateness(t *testing.T, what string, g *dag.Graph) {
	t.Helper()
	before := map[int32]*big.Int{} // by micro-batch, a set of tasks
	ancestors := make([]big.Int, len(g.Tasks))
	for i := range g.Tasks {
		of := &ancestors[i]
		for _, p := range g.Preds(dag.TaskID(i)) {
			of.Or(of, &ancestors[p]).SetBit(of, int(p), 1)
		}
		micro, phase := g.Tasks[i].Labels.MicroBatch, g.Tasks[i].Labels.Phase
		if before[micro] == nil {
			before[micro] = new(big.Int)
		}
		so := before[micro]
		switch {
		case phase == "loss" || phase == "backward" || phase == "reduce":
			so.SetBit(so, i, 1)
		case phase == "recompute" && (micro > 0 || before[1] == nil):
			if early := new(big.Int).AndNot(so, of); early.Sign() > 0 {
				t.Errorf("%s: %s may run before %s", what, g.Tasks[i].Name, g.Tasks[early.TrailingZeroBits()].Name)
			}
		}
	}
}
