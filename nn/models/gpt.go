package models

import (
	"fmt"
	"math"

	"dahl/nn"
	"dahl/nn/layers"
)

// GPT-2 of Radford et al., "Language models are unsupervised multitask learners", 2019, with the names of Hugging Face's and nanoGPT's state_dict,
// but for a layer of its own for each residual sum. The last layer has the table of the embedding. Weights begin as nanoGPT's: by a normal
// distribution of deviation 0.02, and 0.02/√(2·layers) in front of a residual sum.

// gptAll are their lines of the table of models.
func gptAll() []Info {
	return []Info{
		gptInfo("gpt-tiny", "GPT of 4 layers, 4 heads and 128 features, 64 bytes", gpt{layers: 4, heads: 4, width: 128, positions: 64, tokens: 256, batch: 12, rate: 1e-3}),
		gptInfo("gpt-char", "GPT of 6 layers, 6 heads and 384 features, 256 bytes", gpt{layers: 6, heads: 6, width: 384, positions: 256, tokens: 256, batch: 64, rate: 1e-3}),
		gptInfo("gpt2", "GPT-2 of 124 million weights, 1024 tokens", gpt{layers: 12, heads: 12, width: 768, positions: 1024, tokens: 50257, batch: 4, rate: 6e-4}),
		gptInfo("gpt2-medium", "GPT-2 of 355 million weights", gpt{layers: 24, heads: 16, width: 1024, positions: 1024, tokens: 50257, batch: 4, rate: 6e-4}),
		gptInfo("gpt2-large", "GPT-2 of 774 million weights", gpt{layers: 36, heads: 20, width: 1280, positions: 1024, tokens: 50257, batch: 4, rate: 6e-4}),
		gptInfo("gpt2-xl", "GPT-2 of 1558 million weights", gpt{layers: 48, heads: 25, width: 1600, positions: 1024, tokens: 50257, batch: 4, rate: 6e-4}),
	}
}

// gpt is the numbers of a model.
type gpt struct {
	layers, heads, width     int
	positions, tokens, batch int
	rate                     float64
}

func gptInfo(name, doc string, g gpt) Info {
	return Info{name, doc, func() *nn.Model { return g.model(name) }}
}

func (g gpt) model(name string) *nn.Model {
	const deviation = 0.02
	residual := deviation / math.Sqrt(2*float64(g.layers))
	var list []nn.Layer
	last := ""
	add := func(name string, l nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs, StateName: "transformer." + name}), name
	}
	dense := func(outputs int, deviation float64) nn.Layer {
		return layers.Dense{Outputs: outputs, Deviation: deviation}
	}
	add("wte", layers.Embedding{Tokens: g.tokens, Width: g.width, Deviation: deviation})
	add("wpe", layers.Positions{Deviation: deviation})
	for i := range g.layers {
		block, before := fmt.Sprintf("h.%d.", i), last
		add(block+"ln_1", layers.LayerNorm{})
		add(block+"attn.c_attn", dense(3*g.width, deviation))
		add(block+"attn", layers.Attention{Heads: g.heads, Causal: true})
		add(block+"attn.c_proj", dense(g.width, residual))
		add(block+"add_1", layers.Add{}, before, last)
		before = last
		add(block+"ln_2", layers.LayerNorm{})
		add(block+"mlp.c_fc", dense(4*g.width, deviation))
		add(block+"mlp.gelu", layers.Activation{Function: "gelu_tanh"})
		add(block+"mlp.c_proj", dense(g.width, residual))
		add(block+"add_2", layers.Add{}, before, last)
	}
	add("ln_f", layers.LayerNorm{})
	list = append(list, nn.Named{Name: "lm_head", Layer: layers.Dense{Outputs: g.tokens, NoBias: true}, Shares: []string{"transformer.wte.weight"}})
	return builtin(name, []int{g.positions}, nn.Defaults{
		Batch: g.batch, ClipNorm: 1,
		Optimizer: nn.Adam{LearningRate: g.rate, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1, DecayDims: 2, Decoupled: true},
	}, list...)
}
