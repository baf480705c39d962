package models

import (
	"fmt"

	"dahl/nn"
	"dahl/nn/layers"
)

// BERT of Devlin et al., "BERT: Pre-training of deep bidirectional transformers", 2018, arXiv:1810.04805, bert-base-uncased of Hugging Face with the
// names of its state_dict: bert-base with the head that finds hidden tokens is BertForMaskedLM, and bert-base-classifier with the pooler, a dense layer on
// the first position, BertForSequenceClassification. One dense layer, attention.self.qkv, has the rows of
// query, key and value there, in this order. Token 0 fills short samples up and is not seen, token 102 ends each part of a sample, and token 103
// stands for what is hidden. Nothing is dropped out.

// bertAll are their lines of the table of models.
func bertAll() []Info {
	return []Info{
		{"bert-base", "BERT of 110 million weights, 512 tokens", bertBase},
		{"bert-base-classifier", "BERT of 110 million weights with its pooler, two classes of 512 tokens", bertClassifier},
	}
}

const bertWidth, bertTokens, bertPositions, bertDeviation = 768, 30522, 512, 0.02

func bertDense(outputs int) nn.Layer { return layers.Dense{Outputs: outputs, Deviation: bertDeviation} }

// bertBody is the layers of both models up to the last block.
func bertBody() (list []nn.Layer) {
	const blocks, heads, width, deviation = 12, 12, bertWidth, bertDeviation
	const padding, separator = 0, 102
	dense := bertDense
	add := func(name string, l nn.Layer, inputs ...string) {
		list = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs, StateName: "bert." + name})
	}
	norm := layers.LayerNorm{Eps: 1e-12}
	// toSum adds what ends each part of a block.
	toSum := func(part, from string) string {
		add(part+".dense", dense(width))
		add(part+".add", layers.Add{}, part+".dense", from)
		add(part+".LayerNorm", norm)
		return part + ".LayerNorm"
	}
	add("mask", layers.Mask{Token: padding}, nn.InputName)
	add("segments", layers.Segments{Token: separator}, nn.InputName)
	const of = "embeddings."
	add(of+"word_embeddings", layers.Embedding{Tokens: bertTokens, Width: width, Deviation: deviation}, nn.InputName)
	add(of+"token_type_embeddings", layers.Embedding{Tokens: 2, Width: width, Deviation: deviation}, "segments")
	add(of+"add", layers.Add{}, of+"word_embeddings", of+"token_type_embeddings")
	add(of+"position_embeddings", layers.Positions{Deviation: deviation})
	add(of+"LayerNorm", norm)
	last := of + "LayerNorm"
	for i := range blocks {
		block := fmt.Sprintf("encoder.layer.%d.", i)
		add(block+"attention.self.qkv", dense(3*width))
		add(block+"attention.self", layers.Attention{Heads: heads}, block+"attention.self.qkv", "mask")
		last = toSum(block+"attention.output", last)
		add(block+"intermediate.dense", dense(4*width))
		add(block+"intermediate.gelu", layers.Activation{Function: "gelu"})
		last = toSum(block+"output", last)
	}
	return list
}

func bertBase() *nn.Model {
	const mask = 103
	list := append(bertBody(),
		nn.Named{Name: "cls.predictions.transform.dense", Layer: bertDense(bertWidth)},
		nn.Named{Name: "cls.predictions.transform.gelu", Layer: layers.Activation{Function: "gelu"}},
		nn.Named{Name: "cls.predictions.transform.LayerNorm", Layer: layers.LayerNorm{Eps: 1e-12}},
		nn.Named{Name: "cls.predictions.decoder", Layer: bertDense(bertTokens), Shares: []string{"bert.embeddings.word_embeddings.weight"}})
	return builtin("bert-base", []int{bertPositions}, nn.Defaults{
		Batch: 8, ClipNorm: 1, MaskToken: mask, Loss: nn.Loss{Ignored: true}, Optimizer: bertAdam(1e-4),
	}, list...)
}

func bertClassifier() *nn.Model {
	list := append(bertBody(),
		nn.Named{Name: "pooler.select", Layer: layers.Select{}},
		nn.Named{Name: "pooler.flatten", Layer: layers.Flatten{}},
		nn.Named{Name: "pooler.dense", Layer: bertDense(bertWidth), StateName: "bert.pooler.dense"},
		nn.Named{Name: "pooler.tanh", Layer: layers.Activation{Function: "tanh"}},
		nn.Named{Name: "classifier", Layer: bertDense(2)})
	return builtin("bert-base-classifier", []int{bertPositions}, nn.Defaults{Batch: 8, ClipNorm: 1, Optimizer: bertAdam(2e-5)}, list...)
}

func bertAdam(rate float64) nn.Adam {
	return nn.Adam{LearningRate: rate, Beta1: 0.9, Beta2: 0.999, Eps: 1e-6, WeightDecay: 0.01, DecayDims: 2, Decoupled: true}
}
