package models

import (
	"fmt"

	"dahl/nn"
	"dahl/nn/layers"
)

// Vision transformers of Dosovitskiy et al., "An image is worth 16×16 words", 2020, arXiv:2010.11929, with the extents that Touvron et al., 2021,
// arXiv:2012.12877, call tiny. As in Beyer et al., "Better plain ViT baselines", 2022, arXiv:2205.01580, the mean of all positions stands in place of a class token. Names are as
// in Hugging Face's ViT; attention.attention.qkv has the rows of query, key and value, in this order.

// vitAll are their lines of the table of models.
func vitAll() []Info {
	return []Info{{"vit-tiny", "vision transformer of 12 layers, 3 heads and 192 features, 32×32 colour images in patches of 4×4", vitTiny}}
}

func vitTiny() *nn.Model {
	const blocks, heads, width, patch, deviation = 12, 3, 192, 4, 0.02
	var list []nn.Layer
	last := ""
	add := func(name string, l nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs, StateName: "vit." + name}), name
	}
	dense := func(outputs int) nn.Layer { return layers.Dense{Outputs: outputs, Deviation: deviation} }
	add("embeddings.patch_embeddings.projection", layers.Conv2D{Filters: width, Kernel: patch, Stride: patch})
	add("embeddings.pixels", layers.Pixels{})
	add("embeddings.position_embeddings", layers.Positions{Deviation: deviation})
	for i := range blocks {
		block, before := fmt.Sprintf("encoder.layer.%d.", i), last
		add(block+"layernorm_before", layers.LayerNorm{Eps: 1e-12})
		add(block+"attention.attention.qkv", dense(3*width))
		add(block+"attention.attention", layers.Attention{Heads: heads})
		add(block+"attention.output.dense", dense(width))
		add(block+"attention.add", layers.Add{}, before, last)
		before = last
		add(block+"layernorm_after", layers.LayerNorm{Eps: 1e-12})
		add(block+"intermediate.dense", dense(4*width))
		add(block+"intermediate.gelu", layers.Activation{Function: "gelu"})
		add(block+"output.dense", dense(width))
		add(block+"output.add", layers.Add{}, before, last)
	}
	add("layernorm", layers.LayerNorm{Eps: 1e-12})
	add("pooler.pixels", layers.Pixels{})
	add("pooler", layers.GlobalAvgPool{})
	add("flatten", layers.Flatten{})
	list = append(list, nn.Named{Name: "classifier", Layer: dense(10)})
	return builtin("vit-tiny", []int{3, 32, 32}, nn.Defaults{
		Batch: 64, ClipNorm: 1,
		Optimizer: nn.Adam{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.05, DecayDims: 2, Decoupled: true},
	}, list...)
}
