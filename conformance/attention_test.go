package conformance

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
)

// sequences is a network of one block of a transformer on random tokens: 22 of them, 14 positions, three heads of five features. The table of tokens is also the weight of
// the output layer.
func sequences(t testing.TB, dtype dag.DType) *network {
	t.Helper()
	const tokens, positions, width = 22, 14, 15
	m := must.Get(nn.New("sequences", []int{positions},
		nn.Named{Name: "wte", Layer: layers.Embedding{Tokens: tokens, Width: width}}, layers.Positions{}, layers.LayerNorm{},
		nn.Named{Name: "qkv", Layer: layers.Dense{Outputs: 3 * width}}, layers.Attention{Heads: 3, Causal: true}, layers.Dense{Outputs: width},
		nn.Of(layers.Add{}, "positions1", "fc2"), nn.Named{Name: "head", Layer: layers.Dense{Outputs: tokens, NoBias: true}}))(t)
	m.Defaults.Optimizer = nn.SGD{LearningRate: 0.05, Momentum: 0.9}
	n := &network{model: m, dtype: dtype, epochs: 1}
	rng := rand.New(rand.NewPCG(2, 7))
	for _, set := range []struct {
		to **data.Dataset
		n  int
	}{{&n.train, fixtureTrain}, {&n.test, fixtureTest}} {
		d := &data.Dataset{Type: dag.Int32, Shape: []int{positions}, Positions: []int{positions}, Classes: tokens, Divisor: 1}
		for range set.n * positions {
			d.Samples = binary.LittleEndian.AppendUint32(d.Samples, uint32(rng.IntN(tokens)))
			d.Labels = append(d.Labels, int32(rng.IntN(tokens)))
		}
		*set.to = d
	}
	return n
}

// TestSequencesOverDevices cuts a transformer in each of its dimensions over emulated GPUs, with a core beside them or without: heads, positions with the keys of each query in parts, the vocabulary
// of the output layer, and keys alone, whose partial results are merged. Weights have the bits of the same cuts on cores. Every transfer is one that the simulator predicts.
func TestSequencesOverDevices(t *testing.T) {
	const steps = 2
	keys := map[string]dag.LayerLowering{"attn1": {Forward: dag.Cut{Samples: 1, Rows: 7, Columns: 7}}}
	merged := map[string]dag.LayerLowering{"attn1": {Forward: dag.Cut{Samples: 1, Rows: 5, Columns: 3, Accumulators: 2}}}
	for i, c := range []struct {
		what     string
		gpus     []string
		lowering func(devices []string) dag.Lowering
	}{
		{"heads", []string{"gpu", "cpu.0", "gpu1"}, func(devices []string) dag.Lowering {
			return dag.Lowering{Stages: []dag.Stage{{From: "input", Devices: devices, Along: dag.AlongOutputs, Sum: dag.Ring}}}
		}},
		{"positions", []string{"gpu", "gpu1"}, func(devices []string) dag.Lowering {
			return dag.Lowering{Layers: keys, Stages: []dag.Stage{{From: "input", Devices: devices, Along: dag.AlongRows}}}
		}},
		{"vocabulary", []string{"gpu", "gpu1"}, func(devices []string) dag.Lowering {
			return dag.Lowering{Stages: []dag.Stage{{From: "input", Device: devices[0]}, {From: "head", Devices: devices, Along: dag.AlongOutputs}}}
		}},
		{"keys", []string{"gpu", "gpu1"}, func([]string) dag.Lowering { return dag.Lowering{Layers: merged} }},
	} {
		n := sequences(t, []dag.DType{dag.Float32, dag.Float64}[i%2])
		n.lower(t, c.lowering([]string{"cpu.0", "cpu.1", "cpu.2"}[:len(c.gpus)]))
		want := n.execute(t, how{platform: machine(t, 3)})
		n.lower(t, c.lowering(c.gpus))
		on := emulatedNode(t, 2)
		if got := n.execute(t, how{platform: on, poison: true}); got.hash() != want.hash() {
			t.Errorf("%s: weights %.8s, and on cores %.8s", c.what, got.hash(), want.hash())
		}
		executed, d := n.steps(t, how{platform: on}, steps)
		predicted, g := simulated(t, d, 0, steps), n.prog.Graphs[0]
		for step := range int32(steps) {
			if got, want := movedFor(executed, g, step), movedFor(predicted, g, step); !maps.Equal(got, want) || len(want) == 0 && c.what != "keys" {
				t.Errorf("%s, step %d: moved %v, predicted %v", c.what, step, got, want)
			}
		}
	}
}
