package conformance

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/schedule/layout"
)

// sequences is a network of one block of a transformer on random tokens: 22 of them, 14 positions, three heads of five features. The output layer has weights of
// its own.
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

// TestRing spreads a sequence of T = 840 positions over p GPUs. With keys and values of C = 15 features each a device receives, of each of p - 1 other parts of T/p positions, the keys and values
// forward, again for the gradients of the queries, and for those of the keys and values the queries, the gradients of the output and two numbers for each of H = 3 heads: 6C + 2H numbers of
// a position. (In the paper's order the gradients of keys and values go around instead: 6C.)
//
// A device holds its part of all that one GPU holds. Of others it holds at most two pairs that it reads, and two that it passes on. Whole it holds the two numbers of each head for all positions, its gradients of weights,
// and others' that it adds.
func TestRing(t *testing.T) {
	const positions, width, heads = 840, 15, 3
	alone := int64(0)
	for _, p := range []int{1, 2, 4, 8} {
		m := must.Get(nn.New("long", []int{positions}, layers.Embedding{Tokens: 22, Width: width}, layers.Dense{Outputs: 3 * width}, layers.Attention{Heads: heads}, layers.Dense{Outputs: 22}))(t)
		l := dag.Lowering{Stages: []dag.Stage{{From: "input", Device: "gpu0"}}}
		if p > 1 {
			stage := dag.Stage{From: "input", Along: dag.AlongRows, Sum: dag.Ring}
			for k := range p {
				stage.Devices = append(stage.Devices, fmt.Sprint("gpu", k))
			}
			cut := dag.Cut{Samples: 1, Rows: positions / p, Columns: positions / p}
			l = dag.Lowering{Stages: []dag.Stage{stage}, Layers: map[string]dag.LayerLowering{"attn1": {Forward: cut}}}
		}
		prog := must.Get(nn.NewProgram(m, nn.ProgramOptions{Batch: 1, TrainSamples: 1, TestSamples: 1, Epochs: 1, Type: dag.Float32, Lowering: l, Optimizer: nn.SGD{LearningRate: 1}}))(t)
		d := decided(t, prog, how{platform: pairwise(t, p, time.Microsecond, 1e9, 1e12)})
		s := simulated(t, d, 0, 3)
		weights := int64(0)
		for _, w := range m.Parameters() {
			weights += layout.Align(4 * int64(w.Elems()))
		}
		received := make([]int, p)
		for _, move := range s.Transfers {
			if strings.HasPrefix(prog.Graphs[0].Buffers[move.Buffer].Name, "attn1.") && move.Step == 1 && move.From > 0 {
				received[move.To-1] += int(move.Bytes)
			}
		}
		part := 4 * positions / p
		for k, got := range received {
			if want := (p - 1) * part * (6*width + 2*heads); got != want {
				t.Errorf("%d GPUs: GPU %d receives %d bytes of attention, want %d", p, k, got, want)
			}
		}
		held := d.Layouts(0)[p].ArenaBytes[layout.StepArena] // of the last GPU, which has no loss
		if p == 1 {
			alone = held
		} else if most := alone/int64(p) + int64(8*part*width+2*4*heads*positions) + 2*weights; held > most {
			t.Errorf("%d GPUs: the last one holds %d bytes in a step, want at most %d; one alone holds %d", p, held, most, alone)
		}
	}
}
