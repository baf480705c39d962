package nn_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// fusionCases are networks with every pair and triple of layers that a lowering may
// fuse, and some that it must not: a ReLU before a loss or an average, and one after
// a pooling. Outputs of the last dense layers are below and above the batch of 7, so
// that a flatten after channels-last maps copies weights here and activations there.
func fusionCases(t testing.TB) map[string]*nn.Model {
	t.Helper()
	input := []int{2, 11, 13}
	return map[string]*nn.Model{
		"pools": mustNew(t, "pools", input,
			layers.Conv2D{Filters: 5, Kernel: 3, Pad: 1}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Conv2D{Filters: 7, Kernel: 2}, layers.ReLU{}, layers.MaxPool{Size: 3, Stride: 1},
			layers.Flatten{}, layers.Dense{Outputs: 17}, layers.ReLU{}, layers.Dense{Outputs: 3}),
		"convolutions": mustNew(t, "convolutions", input,
			layers.Conv2D{Filters: 3, Kernel: 3, Pad: 1, Stride: 2}, layers.ReLU{}, layers.Conv2D{Filters: 7, Kernel: 2, NoBias: true}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 5}),
		"averages": mustNew(t, "averages", input,
			layers.Conv2D{Filters: 3, Kernel: 2}, layers.ReLU{}, layers.AvgPool{Size: 2}, layers.Conv2D{Filters: 5, Kernel: 2}, layers.MaxPool{Size: 2}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 11}, layers.ReLU{}),
	}
}

// TestGroups checks what is fused: + joins layers of one group.
func TestGroups(t *testing.T) {
	cases := fusionCases(t)
	maps.Copy(cases, branchCases(t))
	cases["normalised"] = layerCases(t)["normalised"]
	for _, c := range []struct {
		name  string
		train bool
		want  string
	}{
		{"pools", true, "conv1+relu1+pool1 conv2+relu2+pool2 flatten1 fc1+relu3 fc2"},
		{"convolutions", true, "conv1+relu1 conv2+relu2 flatten1 fc1"},
		// averages and the loss pass gradients where the ReLU's output is 0
		{"averages", true, "conv1 relu1 pool1 conv2 pool2 relu2 flatten1 fc1 relu3"},
		{"twice", true, "conv1+relu1 conv2 beside add1 relu2 conv4 add2 flatten1 fc1"},
		{"joined", true, "conv1 concat1 conv2+relu1+pool1 flatten1 fc1 relu2 concat2 fc2"},
		// Sums and the ReLUs behind them are part of the normalisation that comes last before them.
		{"normalised", true, "conv1 bn1+relu1 pool1 conv2 bn2+relu2 conv3 bn3+add1+relu3 conv4 bn4+relu4 conv5 bn5+add2+relu5 flatten1 fc1"},
		// bn4 is behind conv4, and bn5 behind conv5, whose outputs nothing else reads.
		{"normalised", false, "conv1+bn1+relu1 pool1 conv2+bn2+relu2 conv3+bn3 add1 relu3 conv4+bn4+relu4 conv5+bn5 add2 relu5 flatten1 fc1"},
	} {
		var got []string
		for _, group := range cases[c.name].Groups(&dag.Lowering{}, c.train) {
			var names []string
			for _, s := range group {
				names = append(names, s.Name)
			}
			got = append(got, strings.Join(names, "+"))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s, train %v: groups %s, want %s", c.name, c.train, text, c.want)
		}
	}
}

// TestLayoutsInTheGraph checks, for a step of each network, which conversions
// there are: weights once per convolution, turned ones where a
// gradient of the input is needed, and flattened maps or weights. Where layers are split,
// turned weights and gradients have tasks of their own (-).
func TestLayoutsInTheGraph(t *testing.T) {
	const batch = 7
	for name, want := range map[string]string{
		// fc1 has 17 outputs, more than the batch: the maps are copied, and their gradient back.
		"pools": "conv1.forward.hwio conv2.forward.hwio flatten1.forward.nchw flatten1.backward.nhwc -conv2.backward.oihw -conv2.backward.hwoi -conv1.backward.oihw",
		// fc1 has 5: its weights are, and their gradient.
		"convolutions": "conv1.forward.hwio conv2.forward.hwio fc1.forward.nhwc -fc1.backward.nchw -conv2.backward.oihw -conv2.backward.hwoi -conv1.backward.oihw",
		"averages":     "conv1.forward.hwio conv2.forward.hwio flatten1.forward.nchw flatten1.backward.nhwc -conv2.backward.oihw -conv2.backward.hwoi -conv1.backward.oihw",
	} {
		for _, split := range []dag.LayerLowering{{}, {Forward: dag.Cut{Samples: 3}, WeightGradient: dag.Cut{Samples: 3}}} {
			g := mustLower(t, fusionCases(t)[name], nn.LowerOptions{Batch: batch, Type: dag.Float32, Train: true, Samples: batch,
				Lowering: dag.Lowering{Default: split}})
			got, want := conversions(g), strings.Fields(want)
			if split.Forward.Samples == 0 {
				want = slices.DeleteFunc(want, func(step string) bool { return step[0] == '-' })
			}
			if text, want := strings.Join(got, " "), strings.ReplaceAll(strings.Join(want, " "), "-", ""); text != want {
				t.Errorf("%s: conversions %s, want %s", name, text, want)
			}
			for i := range g.Buffers {
				b := &g.Buffers[i]
				if (b.Role == dag.Parameter || b.Role == dag.State) && b.Layout != "" {
					t.Errorf("%s: %s has layout %s; parameters are as PyTorch has them", name, b.Name, b.Layout)
				}
			}
		}
	}
}

// conversions are the steps of a graph whose tasks change layouts, in order.
func conversions(g *dag.Graph) []string {
	var all []string
	for i := range g.Tasks {
		if step, _, _ := strings.Cut(g.Tasks[i].Name, "["); strings.HasSuffix(step, "."+g.Tasks[i].Op) && strings.Count(step, ".") == 2 {
			all = append(all, step)
		}
	}
	return slices.Compact(all)
}

// TestTurnedWeights checks which task fills the turned weight of a convolution whose input has
// a gradient: where neither samples nor filters are split, in a step of training, the
// one that packs it, with either optimiser.
func TestTurnedWeights(t *testing.T) {
	m := mustNew(t, "turned", []int{2, 11, 13}, layers.Conv2D{Filters: 3, Kernel: 3}, layers.ReLU{}, layers.Conv2D{Filters: 5, Kernel: 2}, layers.Flatten{}, layers.Dense{Outputs: 7})
	for _, c := range []struct {
		optimizer nn.Optimizer
		lowering  dag.Lowering
		train     bool
		writes    int // of the tasks "conv2.forward.hwio"
		turns     int // tasks of their own
	}{
		{nn.SGD{}, dag.Lowering{}, true, 2, 0},
		{nn.DefaultAdam(), dag.Lowering{}, true, 2, 0},
		{nn.SGD{}, dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 17, Outputs: 400}, WeightGradient: dag.Cut{Outputs: 2}}}, true, 2, 0},
		{nn.SGD{}, dag.Lowering{Layers: map[string]dag.LayerLowering{"conv2": {Forward: dag.Cut{Samples: 16}}}}, true, 1, 1},
		{nn.SGD{}, dag.Lowering{Layers: map[string]dag.LayerLowering{"conv2": {Forward: dag.Cut{Outputs: 3}}}}, true, 1, 2},
		{nn.SGD{}, dag.Lowering{}, false, 1, 0},
	} {
		g := mustLower(t, m, nn.LowerOptions{Batch: 17, Type: dag.Float32, Train: c.train, Samples: 17, Optimizer: c.optimizer, Lowering: c.lowering})
		for i := range g.Tasks {
			task := &g.Tasks[i]
			if n := len(task.Accesses) - 1; task.Op == "hwio" && task.Labels.Layer == "conv2" && n != c.writes || task.Op == "hwio" && task.Labels.Layer == "conv1" && n != 1 {
				t.Errorf("%T %+v: %s writes %d copies", c.optimizer, c.lowering, task.Name, n)
			}
		}
		if n := countOp(g, "hwoi"); n != c.turns {
			t.Errorf("%T %+v: %d tasks turn the weight, want %d", c.optimizer, c.lowering, n, c.turns)
		}
	}
}
