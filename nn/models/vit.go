package models

import (
	"fmt"

	"dahl/nn"
	"dahl/nn/layers"
)

// Vision transformers of Dosovitskiy et al., "An image is worth 16×16 words", 2020, arXiv:2010.11929. vit-b16 is their base model of patches of 16×16
// as torchvision has it, with a class token. vit-tiny has the extents that Touvron et al., 2021, arXiv:2012.12877, call tiny. As in Beyer et al.,
// "Better plain ViT baselines", 2022, arXiv:2205.01580, the mean of all positions stands in place of a class token there. Names are as
// in Hugging Face's ViT; attention.attention.qkv has the rows of query, key and value, in this order.

// vitAll are their lines of the table of models.
func vitAll() []Info {
	return []Info{
		vitInfo("vit-tiny", "vision transformer of 12 layers, 3 heads and 192 features, 32×32 colour images in patches of 4×4",
			vit{heads: 3, width: 192, image: 32, patch: 4, classes: 10, eps: 1e-12, decay: 0.05}),
		vitInfo("vit-b16", "vision transformer of 86 million weights with a class token, 224×224 images of 1000 classes",
			vit{heads: 12, width: 768, image: 224, patch: 16, classes: 1000, eps: 1e-6, decay: 0.3, classToken: true}),
	}
}

// vit is the numbers of a model. Images have as many rows as columns, and patches too.
type vit struct {
	heads, width          int
	image, patch, classes int
	eps, decay            float64
	classToken            bool // and not the mean of the positions
}

func vitInfo(name, doc string, v vit) Info {
	return Info{name, doc, func() *nn.Model { return v.model(name) }}
}

func (v vit) model(name string) *nn.Model {
	const blocks, deviation = 12, 0.02
	var list []nn.Layer
	last := ""
	add := func(name string, l nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs, StateName: "vit." + name}), name
	}
	dense := func(outputs int) nn.Layer { return layers.Dense{Outputs: outputs, Deviation: deviation} }
	norm := layers.LayerNorm{Eps: v.eps}
	add("embeddings.patch_embeddings.projection", layers.Conv2D{Filters: v.width, Kernel: v.patch, Stride: v.patch})
	add("embeddings.pixels", layers.Pixels{})
	if v.classToken {
		add("embeddings.cls_token", layers.ClassToken{})
	}
	add("embeddings.position_embeddings", layers.Positions{Deviation: deviation})
	for i := range blocks {
		block, before := fmt.Sprintf("encoder.layer.%d.", i), last
		add(block+"layernorm_before", norm)
		add(block+"attention.attention.qkv", dense(3*v.width))
		add(block+"attention.attention", layers.Attention{Heads: v.heads})
		add(block+"attention.output.dense", dense(v.width))
		add(block+"attention.add", layers.Add{}, before, last)
		before = last
		add(block+"layernorm_after", norm)
		add(block+"intermediate.dense", dense(4*v.width))
		add(block+"intermediate.gelu", layers.Activation{Function: "gelu"})
		add(block+"output.dense", dense(v.width))
		add(block+"output.add", layers.Add{}, before, last)
	}
	add("layernorm", norm)
	if v.classToken {
		add("pooler", layers.Select{})
	} else {
		add("pooler.pixels", layers.Pixels{})
		add("pooler", layers.GlobalAvgPool{})
	}
	add("flatten", layers.Flatten{})
	list = append(list, nn.Named{Name: "classifier", Layer: dense(v.classes)})
	return builtin(name, []int{3, v.image, v.image}, nn.Defaults{
		Batch: 64, ClipNorm: 1,
		Optimizer: nn.Adam{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: v.decay, DecayDims: 2, Decoupled: true},
	}, list...)
}
