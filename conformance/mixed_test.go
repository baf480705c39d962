package conformance

import (
	"maps"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/schedule"
)

// mixedCuts is a training step of conv → conv → ReLU → pool → flatten → dense, the first cut by rows, the second by filters,
// the pooling by samples and the dense layer by inputs. Windows, dilations, strides, paddings, tiles and the cuts of gradients are random.
func mixedCuts(t testing.TB, rng *rand.Rand) *dag.Graph {
	t.Helper()
	upTo := func(n int) int { return 1 + rng.IntN(n) }
	conv := func(filters int) nn.Layer {
		k := upTo(3)
		return layers.Conv2D{Filters: filters, Kernel: k, Dilation: upTo(2), Stride: upTo(3), Pad: rng.IntN(k)}
	}
	size := upTo(3)
	m := must.Get(nn.New("mixed", []int{2, 17, 19}, conv(3), conv(5), layers.ReLU{}, layers.MaxPool{Size: size, Stride: upTo(3), Pad: size / 2}, layers.Flatten{}, layers.Dense{Outputs: 7}))(t)
	g := must.Get(m.Lower(nn.LowerOptions{Batch: 11, Type: dag.Float32, Train: true, Samples: 13, Lowering: dag.Lowering{Layers: map[string]dag.LayerLowering{
		"input": {Forward: dag.Cut{Samples: upTo(11)}},
		"conv1": {Forward: dag.Cut{Rows: upTo(9)}, WeightGradient: dag.Cut{Rows: upTo(9), Accumulators: upTo(3)}},
		"conv2": {Forward: dag.Cut{Outputs: upTo(5)}, InputGradient: dag.Cut{Rows: upTo(9)}, WeightGradient: dag.Cut{Inputs: upTo(3)}},
		"relu1": {Forward: dag.Cut{Columns: upTo(9)}},
		"pool1": {Forward: dag.Cut{Samples: upTo(11)}},
		"fc1":   {Forward: dag.Cut{Inputs: upTo(50)}, InputGradient: dag.Cut{Outputs: upTo(7)}, WeightGradient: dag.Cut{Samples: upTo(11)}},
	}}}))(t)
	return g
}

// TestMixedCutsMoveWhatOverlaps puts each task on a random worker of two memories. What moves in a step is what
// tasks read in one memory and others have written in the other: each element once, whoever else reads it there.
func TestMixedCutsMoveWhatOverlaps(t *testing.T) {
	p := emulatedNode(t, 1)
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 67))
		g := mixedCuts(t, rng)
		plan := &schedule.Plan{Policy: "random", Order: make([][]dag.TaskID, len(p.Workers))}
		for i := range g.Tasks {
			w := rng.IntN(len(p.Workers))
			if g.Tasks[i].Placement != nil {
				w = 0 // what the program itself does
			}
			plan.Order[w] = append(plan.Order[w], dag.TaskID(i))
		}
		moved := map[movement]int64{}
		for _, m := range decided(t, program(g), how{platform: p, plans: []*schedule.Plan{plan}}).Placed.Graphs[0].Moves() {
			if m != nil {
				moved[movement{g.Buffers[m.Buffer].Name, m.From, m.To}] += m.Bytes
			}
		}
		if want := staleBytes(g, p, plan, 1); !maps.Equal(moved, want) {
			t.Errorf("seed %d: in a step move %v, overlaps are %v", seed, moved, want)
		}
	}
}
