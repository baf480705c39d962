package nn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// barrierCase is conv → ReLU → pool → flatten → dense, each by itself, with another split in every
// layer, none of which divides its extent.
func barrierCase(t testing.TB, train bool) (*nn.Model, *dag.Graph) {
	t.Helper()
	m := mustNew(t, "barrier", []int{2, 11, 13}, layers.Conv2D{Filters: 5, Kernel: 3}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Flatten{}, layers.Dense{Outputs: 7})
	l := dag.Lowering{Layers: map[string]dag.LayerLowering{
		"input": {Forward: dag.Cut{Samples: 5}},
		"conv1": {Forward: dag.Cut{Samples: 3, Outputs: 2}, WeightGradient: dag.Cut{Samples: 4, Outputs: 2, Accumulators: 2}},
		"relu1": {Forward: dag.Cut{Samples: 2, Outputs: 3}},
		"pool1": {Forward: dag.Cut{Samples: 4, Outputs: 2}},
		"fc1":   {Forward: dag.Cut{Samples: 3, Outputs: 4}, WeightGradient: dag.Cut{Samples: 9, Outputs: 3}},
		"loss":  {Forward: dag.Cut{Samples: 5}},
	}}
	return m, mustLower(t, m, nn.LowerOptions{Batch: 17, Type: dag.Float32, Train: train, Samples: 19, Lowering: l, Unfused: true})
}

// tile is the samples and the channels, or features, of a task.
type tile struct{ samples, channels dag.Range }

// tilesOf are the tiles of a step of a layer, by task, read from the names.
func tilesOf(g *dag.Graph, step string) map[string]tile {
	tiles := map[string]tile{}
	for i := range g.Tasks {
		var t tile
		name := g.Tasks[i].Name
		if rest, ok := strings.CutPrefix(name, step+"["); ok {
			if n, _ := fmt.Sscanf(rest, "%d:%d,%d:%d]", &t.samples.Lo, &t.samples.Hi, &t.channels.Lo, &t.channels.Hi); n < 4 {
				t.channels = dag.Range{Lo: 0, Hi: 1 << 30} // one range: all channels
			}
			tiles[name] = t
		} else if name == step {
			tiles[name] = t
		}
	}
	return tiles
}

func overlap(a, b dag.Range) bool { return a.Lo < b.Hi && b.Lo < a.Hi }

// TestNoTaskWaitsForMoreThanItReads derives from the tiles alone which tasks each one
// waits for: the producer's tiles that share samples and, for layers that work
// channel by channel, channels with it. The graph must have exactly these edges. At a flatten, a channel of the pool's
// output has features in each of the 4×5 pixels, and so in each tile of features.
func TestNoTaskWaitsForMoreThanItReads(t *testing.T) {
	_, g := barrierCase(t, true)
	for step, producers := range map[string]map[string]overlaps{
		"conv1.forward":      {"input.load": samples, "conv1.forward.hwio": packed},
		"relu1.forward":      {"conv1.forward": both},
		"pool1.forward":      {"relu1.forward": both},
		"fc1.forward":        {"pool1.forward": samples, "fc1.forward.nhwc": packed},
		"loss.softmax_xent":  {"fc1.forward": samples, "labels.load": anyTile},
		"fc1.backward.input": {"loss.softmax_xent": samples, "fc1.forward.nhwc": anyTile},
		"pool1.backward":     {"pool1.forward": both, "fc1.backward.input": samples},
		"relu1.backward":     {"pool1.backward": both, "relu1.forward": both},
	} {
		tasks := tilesOf(g, step)
		if len(tasks) < 4 {
			t.Fatalf("%s: %d tiles; the case should split it", step, len(tasks))
		}
		for name, tl := range tasks {
			var want []string
			for producer, meet := range producers {
				for p, pt := range tilesOf(g, producer) {
					if meet(tl, pt) {
						want = append(want, p)
					}
				}
			}
			got := predNames(g, name)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s waits for %v, reads %v", name, got, want)
			}
		}
	}
}

// TestFusedTasksWaitForWhatTheyRead does the same for the fused step of two
// convolutions, channels last: a group reads all channels of its samples, and its
// part of the packed weight. Conversions have one range, of samples or outputs.
func TestFusedTasksWaitForWhatTheyRead(t *testing.T) {
	m := mustNew(t, "fused", []int{2, 11, 13}, layers.Conv2D{Filters: 5, Kernel: 3}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Conv2D{Filters: 7, Kernel: 2}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 19})
	g := mustLower(t, m, nn.LowerOptions{Batch: 17, Type: dag.Float32, Train: true, Samples: 19, Lowering: dag.Lowering{
		Layers: map[string]dag.LayerLowering{
			"input":    {Forward: dag.Cut{Samples: 5}},
			"conv1":    {Forward: dag.Cut{Samples: 3, Outputs: 2}, WeightGradient: dag.Cut{Samples: 4, Outputs: 2, Accumulators: 2}},
			"conv2":    {Forward: dag.Cut{Samples: 4, Outputs: 3}, WeightGradient: dag.Cut{Samples: 6, Outputs: 4}},
			"flatten1": {Forward: dag.Cut{Samples: 6}},
			"fc1":      {Forward: dag.Cut{Samples: 3, Outputs: 4}, WeightGradient: dag.Cut{Outputs: 3}},
		}}})
	for _, c := range []struct {
		step   string
		waits  map[string]overlaps // the steps it may wait for, and how tiles of both meet
		number int                 // of its tasks
	}{
		{"conv1.forward", map[string]overlaps{"input.load": samples, "conv1.forward.hwio": packed}, 6 * 3},
		{"conv2.forward", map[string]overlaps{"conv1.forward": samples, "conv2.forward.hwio": packed}, 5 * 3},
		{"flatten1.forward.nchw", map[string]overlaps{"conv2.forward": samples}, 3},
		{"fc1.forward", map[string]overlaps{"flatten1.forward.nchw": samples}, 6 * 5},
		{"flatten1.backward.nhwc", map[string]overlaps{"fc1.backward.input": samples}, 3},
		{"conv2.backward.weight", map[string]overlaps{"flatten1.backward.nhwc": samples, "conv1.forward": samples, "conv2.backward.weight": channels}, 3 * 2},
		{"conv2.backward.oihw", map[string]overlaps{"conv2.backward.weight": unpacked}, 2},
		{"conv1.backward.weight", map[string]overlaps{"conv2.backward.input": samples, "conv1.forward": both, "input.load": samples, "conv1.backward.weight": channels}, 5 * 3},
		// A weight changes behind the tasks that read it as it was: of the gradient of the
		// input all, of the forward pass those of its outputs.
		{"fc1.backward.weight", map[string]overlaps{"loss.softmax_xent": samples, "flatten1.forward.nchw": samples, "feed": anyTile,
			"fc1.backward.input": samples, "fc1.forward": channels}, 7},
	} {
		tasks := tilesOf(g, c.step)
		if len(tasks) != c.number {
			t.Errorf("%s: %d tasks, want %d", c.step, len(tasks), c.number)
		}
		for name, tl := range tasks {
			for _, p := range predNames(g, name) {
				step, _, _ := strings.Cut(p, "[")
				meet, ok := c.waits[step]
				if !ok || !meet(tl, tilesOf(g, step)[p]) {
					t.Errorf("%s waits for %s, which it does not read", name, p)
				}
			}
		}
	}
}

// overlaps says how the tile of a task and that of one it waits for must meet.
type overlaps func(t, p tile) bool

func samples(t, p tile) bool  { return overlap(t.samples, p.samples) }
func channels(t, p tile) bool { return overlap(t.channels, p.channels) }
func anyTile(_, _ tile) bool  { return true }
func both(t, p tile) bool     { return samples(t, p) && channels(t, p) }

// packed: p is a conversion, with one range, of the outputs that t reads.
func packed(t, p tile) bool { return overlap(t.channels, p.samples) }

// unpacked: t is a conversion, with one range, of the outputs that p writes.
func unpacked(t, p tile) bool { return overlap(t.samples, p.channels) }

// TestUpdatesWaitForTheirPart checks that the update of some rows of a weight waits
// for the gradients of these rows only: rows of other tiles never appear among its
// ancestors' weight gradients. The update of a bias is one task and waits for all.
func TestUpdatesWaitForTheirPart(t *testing.T) {
	_, g := barrierCase(t, true)
	for _, layer := range []string{"conv1", "fc1"} {
		grads := tilesOf(g, layer+".backward.weight")
		for param, parts := range map[string]int{"weight": 3, "bias": 1} { // 5 rows by 2, 7 rows by 3
			updates := tilesOf(g, layer+".update."+param)
			if len(updates) != parts {
				t.Fatalf("%s.%s: %d updates, want %d", layer, param, len(updates), parts)
			}
			for name, rows := range updates {
				seen := 0
				for _, p := range ancestors(g, name) {
					if gt, ok := grads[p]; ok {
						seen++
						if gt.channels != rows.samples && parts > 1 {
							t.Errorf("%s waits for %s", name, p)
						}
					}
				}
				if want := len(grads) / parts; seen != want {
					t.Errorf("%s sums %d tiles of samples, want %d", name, seen, want)
				}
			}
		}
	}
}

// TestMetricsBlockNothing checks that whatever follows a metric is a metric, and
// that the gradient of the first layer's input does not exist.
func TestMetricsBlockNothing(t *testing.T) {
	_, g := barrierCase(t, true)
	for i := range g.Tasks {
		if g.Tasks[i].Labels.Phase != "metrics" {
			continue
		}
		for _, s := range g.Succs(dag.TaskID(i)) {
			if g.Tasks[s].Labels.Phase != "metrics" {
				t.Errorf("%s waits for %s", g.Tasks[s].Name, g.Tasks[i].Name)
			}
		}
		if n := len(g.CarriedSuccs(dag.TaskID(i))); n > 0 {
			t.Errorf("%d tasks of the next step wait for %s", n, g.Tasks[i].Name)
		}
	}
	if n := len(tilesOf(g, "conv1.backward.input")); n != 0 {
		t.Errorf("%d tasks compute the gradient of the network's input", n)
	}
	if n := len(tilesOf(g, "flatten1.forward")); n != 0 {
		t.Errorf("flatten has %d tasks", n)
	}
}

// TestEvaluationChangesNothing checks that an evaluation has no gradient and writes
// no parameter.
func TestEvaluationChangesNothing(t *testing.T) {
	_, g := barrierCase(t, false)
	for i := range g.Tasks {
		for _, a := range g.Tasks[i].Accesses {
			if role := g.Buffers[a.Buffer].Role; role == dag.Gradient || a.Mode.Writes() && (role == dag.Parameter || role == dag.State) {
				t.Errorf("%s has %v access to %s", g.Tasks[i].Name, a.Mode, g.Buffers[a.Buffer].Name)
			}
		}
	}
}

func predNames(g *dag.Graph, name string) []string {
	id, _ := g.TaskByName(name)
	var names []string
	for _, p := range g.Preds(id) {
		names = append(names, g.Tasks[p].Name)
	}
	return names
}

func ancestors(g *dag.Graph, name string) []string {
	id, _ := g.TaskByName(name)
	seen := make([]bool, g.NumTasks())
	var names []string
	var walk func(int32)
	walk = func(t int32) {
		for _, p := range g.Preds(dag.TaskID(t)) {
			if !seen[p] {
				seen[p] = true
				names = append(names, g.Tasks[p].Name)
				walk(p)
			}
		}
	}
	walk(int32(id))
	return names
}
