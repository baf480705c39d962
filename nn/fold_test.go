package nn_test

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// TestFoldedStep: of a network of n blocks with two pairs of layers each, an embedding and a last layer, a device of a fold gathers 2n + 1 values forward and again for the
// backward pass, and the gradients of 2n + 1 sums. It scatters as many sums and gradients. Its products are a part of the network's, and so are its weights but those
// of normalisations and the biases behind a sum.
func TestFoldedStep(t *testing.T) {
	const tensor, data, blocks, width, hidden, tokens, positions, micro = 3, 2, 2, 15, 21, 33, 6, 2
	var list []nn.Layer
	last := ""
	add := func(name string, l nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs}), name
	}
	add("wte", layers.Embedding{Tokens: tokens, Width: width})
	for _, h := range []string{"h.0.", "h.1."} {
		before := last
		add(h+"ln_1", layers.RMSNorm{})
		add(h+"qkv", layers.Dense{Outputs: 3 * width})
		add(h+"rotary", layers.Rotary{Heads: 3, Width: 2})
		add(h+"attn", layers.Attention{Heads: 3, Causal: true})
		add(h+"proj", layers.Dense{Outputs: width})
		add(h+"add_1", layers.Add{}, before, last)
		before = last
		add(h+"ln_2", layers.RMSNorm{})
		add(h+"gate", layers.Dense{Outputs: hidden, NoBias: true})
		add(h+"up", layers.Dense{Outputs: hidden, NoBias: true}, h+"ln_2")
		add(h+"multiply", layers.Multiply{}, h+"gate", h+"up")
		add(h+"down", layers.Dense{Outputs: width, NoBias: true})
		add(h+"add_2", layers.Add{}, before, last)
	}
	add("head", layers.Dense{Outputs: tokens, NoBias: true})
	m := mustModel(t, list...)
	stages := []dag.Stage{{From: "input", Device: "gpu"}}
	options := func(f dag.Fold, stages []dag.Stage) nn.LowerOptions {
		return nn.LowerOptions{Batch: data * micro, Type: dag.BFloat16, Samples: 8, Train: true, Optimizer: nn.DefaultAdamW(), Lowering: dag.Lowering{MicroBatches: micro, Stages: stages, Fold: f}}
	}
	whole := mustLower(t, m, options(dag.Fold{}, nil))
	for _, f := range []dag.Fold{{Tensor: tensor, Data: data}, {Tensor: tensor, Data: data, Whole: true}} {
		g := mustLower(t, m, options(f, stages))
		exchanges := 2*blocks + 1
		want := map[string]int{"all_gather": 3*exchanges*micro + 1, "reduce_scatter": 2*exchanges*micro + 1}
		if f.Whole {
			want = map[string]int{"all_reduce": 2 * exchanges * micro, "all_gather": 1, "reduce_scatter": 1}
		}
		for op, n := range want {
			if got := countOf(g, op); got != n {
				t.Errorf("%+v: %d tasks %s, want %d", f, got, op, n)
			}
		}
		// Biases behind sums are added on each device: less than a fiftieth of the work.
		if got, all := productsOf(g), productsOf(whole); got*tensor*data < all || got*tensor*data > all*1.02 {
			t.Errorf("%+v: %v operations of products on a device, and %v of the network", f, got, all)
		}
		weights := tokens*width*2/tensor + blocks*(2*width+3*width*(width+1)/tensor+width*width/tensor+width+3*width*hidden/tensor)
		b, there := g.BufferByName("state.wte.split.m")
		if own := int64((weights + data - 1) / data); !there || g.Buffers[b].Elems() != own {
			t.Errorf("%+v: the moments of the stage do not have %d numbers, a half of %d", f, own, weights)
		}
	}
	if _, err := m.Lower(options(dag.Fold{Tensor: 2, Data: 1}, stages)); err == nil || !strings.Contains(err.Error(), `no equal parts for 2 devices`) {
		t.Errorf("three heads on two devices: %v", err)
	}
}

func mustModel(t *testing.T, list ...nn.Layer) *nn.Model {
	m, err := nn.New("m", []int{6}, list...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func countOf(g *dag.Graph, op string) (n int) {
	for i := range g.Tasks {
		if g.Tasks[i].Op == op {
			n++
		}
	}
	return n
}

func productsOf(g *dag.Graph) (flops float64) {
	for i := range g.Tasks {
		if strings.HasPrefix(g.Tasks[i].Op, "dense") {
			flops += g.Tasks[i].Flops
		}
	}
	return flops
}
