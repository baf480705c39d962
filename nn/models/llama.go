package models

import (
	"fmt"

	"dahl/nn"
	"dahl/nn/layers"
)

// Llama 3 of Grattafiori et al., "The Llama 3 herd of models", 2024, arXiv:2407.21783, table 3, without Llama 3.1's scaling of the angles. Parameters
// have the names of Hugging Face's state_dict. One dense layer, self_attn.qkv_proj, has the rows of self_attn.q_proj, k_proj and v_proj there, in
// this order. Samples have 2048 of the 8192 positions with which it was trained, so that a step has a third of the tasks.

// llamaAll are their lines of the table of models.
func llamaAll() []Info {
	return []Info{
		llamaInfo("llama-8b", "Llama 3 of 8 billion weights, 2048 of its 8192 tokens", llama{layers: 32, heads: 32, width: 4096, hidden: 14336, rate: 3e-4}),
		llamaInfo("llama-70b", "Llama 3 of 70 billion weights, 2048 of its 8192 tokens", llama{layers: 80, heads: 64, width: 8192, hidden: 28672, rate: 1.5e-4}),
	}
}

// llama is the numbers of a model in which they differ. Hidden is the features between the dense layers of a SwiGLU.
type llama struct {
	layers, heads, width, hidden int
	rate                         float64
}

func llamaInfo(name, doc string, l llama) Info {
	return Info{name, doc, func() *nn.Model { return l.model(name) }}
}

func (l llama) model(name string) *nn.Model {
	const keyHeads, tokens, positions, deviation = 8, 128256, 2048, 0.02
	var list []nn.Layer
	last := ""
	add := func(name string, l nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs, StateName: "model." + name}), name
	}
	dense := func(outputs int) nn.Layer {
		return layers.Dense{Outputs: outputs, NoBias: true, Deviation: deviation}
	}
	head, turned := l.width/l.heads, l.heads+keyHeads
	add("embed_tokens", layers.Embedding{Tokens: tokens, Width: l.width, Deviation: deviation})
	for i := range l.layers {
		block, before := fmt.Sprintf("layers.%d.", i), last
		add(block+"input_layernorm", layers.RMSNorm{})
		add(block+"self_attn.qkv_proj", dense((turned+keyHeads)*head))
		add(block+"self_attn.rotary", layers.Rotary{Heads: turned, Width: head, Base: 500000})
		add(block+"self_attn", layers.Attention{Heads: l.heads, KeyHeads: keyHeads, Causal: true})
		add(block+"self_attn.o_proj", dense(l.width))
		add(block+"add_1", layers.Add{}, before, last)
		before = last
		add(block+"post_attention_layernorm", layers.RMSNorm{})
		norm := last
		add(block+"mlp.gate_proj", dense(l.hidden))
		add(block+"mlp.silu", layers.Activation{Function: "silu"})
		gate := last
		add(block+"mlp.up_proj", dense(l.hidden), norm)
		add(block+"mlp.multiply", layers.Multiply{}, gate, last)
		add(block+"mlp.down_proj", dense(l.width))
		add(block+"add_2", layers.Add{}, before, last)
	}
	add("norm", layers.RMSNorm{})
	list = append(list, nn.Named{Name: "lm_head", Layer: dense(tokens)})
	return builtin(name, []int{positions}, nn.Defaults{
		Batch: 1, ClipNorm: 1,
		Optimizer: nn.Adam{LearningRate: l.rate, Beta1: 0.9, Beta2: 0.95, Eps: 1e-5, WeightDecay: 0.1, DecayDims: 2, Decoupled: true},
	}, list...)
}
