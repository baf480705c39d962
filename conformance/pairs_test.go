package conformance

import (
	"fmt"
	"testing"
	"time"

	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
)

// blocksOf is a GPT of some blocks without biases.
func blocksOf(t *testing.T, blocks, positions, width, heads int) *nn.Model {
	list, last := []nn.Layer{layers.Embedding{Tokens: 11, Width: width}}, ""
	add := func(name string, of nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: of, Inputs: inputs}), name
	}
	dense := func(outputs int) nn.Layer { return layers.Dense{Outputs: outputs, NoBias: true} }
	add("positions", layers.Positions{})
	for i := range blocks {
		block, before := fmt.Sprint("b", i, "."), last
		add(block+"norm1", layers.LayerNorm{})
		add(block+"qkv", dense(3*width))
		add(block+"attention", layers.Attention{Heads: heads, Causal: true})
		add(block+"projection", dense(width))
		add(block+"sum1", layers.Add{}, before, last)
		before = last
		add(block+"norm2", layers.LayerNorm{})
		add(block+"up", dense(4*width))
		add(block+"gelu", layers.Activation{Function: "gelu"})
		add(block+"down", dense(width))
		add(block+"sum2", layers.Add{}, before, last)
	}
	add("head", dense(11))
	m := must.Get(nn.New("blocks", []int{positions}, list...))(t)
	m.Defaults.Optimizer = nn.SGD{LearningRate: 0.1}
	return m
}

// TestMegatron: a block of a GPT whose weights p devices share costs them two all-reduces of its N·T·C activations forward and two backward, as Megatron-LM has them, and nothing else but
// those of the gradients of its two normalisations, 4C numbers. An all-reduce of b bytes moves 2(p - 1)b in all, in halves: normalisations and residual sums are between them, each device's on its own samples, or
// on its own positions where there are fewer samples than devices.
func TestMegatron(t *testing.T) {
	for _, c := range []struct{ devices, samples, positions, width, heads int }{{2, 6, 40, 96, 4}, {3, 6, 48, 96, 6}, {4, 2, 128, 160, 8}} {
		var moved [2]int64
		for i := range moved {
			w := strategic(t, blocksOf(t, 2+i, c.positions, c.width, c.heads), pairwise(t, c.devices, time.Microsecond, 1e9, 1e18), c.samples, fmt.Sprint("tensor-parallel:", c.devices))
			for _, tr := range simulated(t, w.Decision, 0, 1).Transfers {
				if tr.From != 0 && tr.To != 0 {
					moved[i] += tr.Bytes
				}
			}
		}
		values := 4*c.samples*c.positions*c.width + 4*c.width
		if got, want := moved[1]-moved[0], int64(2*(c.devices-1)*4*values); got != want {
			t.Errorf("%+v: a block moves %d bytes, want %d", c, got, want)
		}
	}
}
