package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/nn/weights"
	"dahl/schedule/policy"
)

// smallGPT2 is a GPT-2 of two layers, as [dahl/nn/models] has it.
func smallGPT2(t *testing.T) *nn.Model {
	t.Helper()
	var list []nn.Layer
	last := ""
	add := func(name string, l nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs, StateName: "transformer." + name}), name
	}
	add("wte", layers.Embedding{Tokens: 17, Width: 21})
	add("wpe", layers.Positions{})
	for i := range 2 {
		block, before := fmt.Sprintf("h.%d.", i), last
		add(block+"ln_1", layers.LayerNorm{})
		add(block+"attn.c_attn", layers.Dense{Outputs: 63})
		add(block+"attn", layers.Attention{Heads: 3, Causal: true})
		add(block+"attn.c_proj", layers.Dense{Outputs: 21})
		add(block+"add_1", layers.Add{}, before, last)
		before = last
		add(block+"ln_2", layers.LayerNorm{})
		add(block+"mlp.c_fc", layers.Dense{Outputs: 84})
		add(block+"mlp.gelu", layers.Activation{Function: "gelu_tanh"})
		add(block+"mlp.c_proj", layers.Dense{Outputs: 21})
		add(block+"add_2", layers.Add{}, before, last)
	}
	add("ln_f", layers.LayerNorm{})
	list = append(list, nn.Named{Name: "lm_head", Layer: layers.Dense{Outputs: 17, NoBias: true}, Shares: []string{"transformer.wte.weight"}})
	return must.Get(nn.New("small", []int{13}, list...))(t)
}

// bertBody is a BERT of transformers_fixture.py without a head. The other functions here are the networks of that file.
func bertBody(blocks int) []nn.Layer {
	const of, width = "bert.embeddings.", 21
	norm := layers.LayerNorm{Eps: 1e-12}
	list := []nn.Layer{
		nn.Named{Name: "mask", Layer: layers.Mask{Token: 0}}, nn.Named{Name: "segments", Layer: layers.Segments{Token: 2}, Inputs: []string{"input"}},
		nn.Named{Name: of + "word_embeddings", Layer: layers.Embedding{Tokens: 17, Width: width}, Inputs: []string{"input"}},
		nn.Named{Name: of + "token_type_embeddings", Layer: layers.Embedding{Tokens: 2, Width: width}, Inputs: []string{"segments"}},
		nn.Of(layers.Add{}, of+"word_embeddings", of+"token_type_embeddings"),
		nn.Named{Name: of + "position_embeddings", Layer: layers.Positions{}}, nn.Named{Name: of + "LayerNorm", Layer: norm},
	}
	last := of + "LayerNorm"
	for i := range blocks {
		block := fmt.Sprintf("bert.encoder.layer.%d.", i)
		attended, done := block+"attention.output.LayerNorm", block+"output.LayerNorm"
		list = append(list,
			nn.Named{Name: block + "attention.self.qkv", Layer: layers.Dense{Outputs: 3 * width}},
			nn.Named{Name: block + "attention.self", Layer: layers.Attention{Heads: 3}, Inputs: []string{block + "attention.self.qkv", "mask"}},
			nn.Named{Name: block + "attention.output.dense", Layer: layers.Dense{Outputs: width}}, nn.Of(layers.Add{}, block+"attention.output.dense", last),
			nn.Named{Name: attended, Layer: norm},
			nn.Named{Name: block + "intermediate.dense", Layer: layers.Dense{Outputs: 11}}, layers.Activation{Function: "gelu"},
			nn.Named{Name: block + "output.dense", Layer: layers.Dense{Outputs: width}}, nn.Of(layers.Add{}, block+"output.dense", attended),
			nn.Named{Name: done, Layer: norm})
		last = done
	}
	return list
}

func smallBERT(t *testing.T) *nn.Model {
	t.Helper()
	const head = "cls.predictions."
	list := append(bertBody(2), nn.Named{Name: head + "transform.dense", Layer: layers.Dense{Outputs: 21}}, layers.Activation{Function: "gelu"},
		nn.Named{Name: head + "transform.LayerNorm", Layer: layers.LayerNorm{Eps: 1e-12}}, nn.Named{Name: head + "decoder", Layer: layers.Dense{Outputs: 17}, Shares: []string{"bert.embeddings.word_embeddings.weight"}})
	return must.Get(nn.New("bert", []int{13}, list...))(t)
}

func pooledBERT(t *testing.T) *nn.Model {
	t.Helper()
	return must.Get(nn.New("pooled", []int{13}, append(bertBody(1), layers.Select{}, layers.Flatten{},
		nn.Named{Name: "bert.pooler.dense", Layer: layers.Dense{Outputs: 21}}, layers.Activation{Function: "tanh"},
		nn.Named{Name: "classifier", Layer: layers.Dense{Outputs: 5}})...))(t)
}

// smallViT has what Hugging Face's and torchvision's networks add to variances.
func smallViT(eps float64) func(t *testing.T) *nn.Model {
	return func(t *testing.T) *nn.Model {
		t.Helper()
		const of, width = "vit.embeddings.", 15
		norm := layers.LayerNorm{Eps: eps}
		named := func(name string, l nn.Layer) nn.Layer { return nn.Named{Name: name, Layer: l} }
		last := of + "position_embeddings"
		list := []nn.Layer{named(of+"patch_embeddings.projection", layers.Conv2D{Filters: width, Kernel: 7, Stride: 7}), layers.Pixels{},
			named(of+"cls_token", layers.ClassToken{}), named(last, layers.Positions{})}
		for i := range 2 {
			block := fmt.Sprintf("vit.encoder.layer.%d.", i)
			between, done := fmt.Sprintf("add%d", 2*i+1), fmt.Sprintf("add%d", 2*i+2)
			list = append(list, named(block+"layernorm_before", norm), named(block+"attention.attention.qkv", layers.Dense{Outputs: 3 * width}), layers.Attention{Heads: 3},
				named(block+"attention.output.dense", layers.Dense{Outputs: width}), nn.Of(layers.Add{}, block+"attention.output.dense", last),
				named(block+"layernorm_after", norm), named(block+"intermediate.dense", layers.Dense{Outputs: 11}), layers.Activation{Function: "gelu"},
				named(block+"output.dense", layers.Dense{Outputs: width}), nn.Of(layers.Add{}, block+"output.dense", between))
			last = done
		}
		list = append(list, named("vit.layernorm", norm), layers.Select{}, layers.Flatten{}, named("classifier", layers.Dense{Outputs: 13}))
		return must.Get(nn.New("vit", []int{2, 14, 14}, list...))(t)
	}
}

func smallLlama(t *testing.T) *nn.Model {
	t.Helper()
	dense := func(outputs int) nn.Layer { return layers.Dense{Outputs: outputs, NoBias: true} }
	list := []nn.Layer{nn.Named{Name: "model.embed_tokens", Layer: layers.Embedding{Tokens: 17, Width: 24}}}
	last := "model.embed_tokens"
	for i := range 2 {
		block := fmt.Sprintf("model.layers.%d.", i)
		named := func(name string, l nn.Layer, inputs ...string) nn.Layer {
			return nn.Named{Name: block + name, Layer: l, Inputs: inputs}
		}
		list = append(list,
			named("input_layernorm", layers.RMSNorm{}), named("self_attn.qkv_proj", dense(40)), layers.Rotary{Heads: 8, Width: 4},
			layers.Attention{Heads: 6, KeyHeads: 2, Causal: true}, named("self_attn.o_proj", dense(24)), named("sum", layers.Add{}, last, block+"self_attn.o_proj"),
			named("post_attention_layernorm", layers.RMSNorm{}), named("mlp.gate_proj", dense(11)), named("silu", layers.Activation{Function: "silu"}),
			named("mlp.up_proj", dense(11), block+"post_attention_layernorm"), nn.Of(layers.Multiply{}, block+"silu", block+"mlp.up_proj"),
			named("mlp.down_proj", dense(24)), named("out", layers.Add{}, block+"sum", block+"mlp.down_proj"))
		last = block + "out"
	}
	return must.Get(nn.New("llama", []int{13}, append(list, nn.Named{Name: "model.norm", Layer: layers.RMSNorm{}}, nn.Named{Name: "lm_head", Layer: dense(17)})...))(t)
}

// TestHuggingFace: transformers of Hugging Face and of torchvision, whose weights are read from their files, have the outputs that they have there, and a GPT-2 its likeliest tokens. Outputs
// are sums of some hundred terms, whose rounding in float64 stays far below 1e-12 of the greatest.
func TestHuggingFace(t *testing.T) {
	for name, model := range map[string]func(*testing.T) *nn.Model{
		"gpt2": smallGPT2, "bert": smallBERT, "bert-classifier": pooledBERT, "llama": smallLlama, "vit": smallViT(1e-12), "vit-torchvision": smallViT(1e-6),
	} {
		t.Run(name, func(t *testing.T) { compareWithHuggingFace(t, name, model(t)) })
	}
}

func compareWithHuggingFace(t *testing.T, name string, m *nn.Model) {
	t.Helper()
	said := map[string][]float64{}
	for _, a := range must.Get(weights.Read("../nn/weights/testdata/"+name+"_outputs.safetensors", nil))(t) {
		said[a.Name] = a.Float64s()
	}
	init := must.Get(FromFile("../nn/weights/testdata/"+name+".safetensors", m, dag.Float64))(t)
	w := must.Get(New(m, oneSample(m, said), load(t, "emulated"), Options{Type: dag.Float64, Batch: 1, Init: init, Evaluate: true, Outputs: true, Policy: policy.HEFT}))(t)
	run := must.Get(w.Start())(t)
	defer run.Close()
	must.Do(t, run.prepare(context.Background()))
	evaluation := slices.IndexFunc(w.Program.Graphs, func(g *dag.Graph) bool { return nn.BatchOf(g) > 0 })
	must.Get(run.RunSteps(context.Background(), evaluation, 1, []int32{0}, false))(t)
	outputs := run.Outputs()
	heard := outputs.Float64s()
	top := max(slices.Max(said["logits"]), -slices.Min(said["logits"]))
	for i, want := range said["logits"] {
		if !(math.Abs(heard[i]-want) <= 1e-12*top) {
			t.Fatalf("output %d is %.17g, want %.17g", i, heard[i], want)
		}
	}
	greedy := tokensOf(said["greedy"])
	if greedy == nil {
		return
	}
	if err := run.Generate(context.Background(), nil, 1, Sampling{}, nil); !errors.As(err, new(InputError)) {
		t.Errorf("a prompt of no tokens: %v", err)
	}
	got := slices.Clone(greedy[:3])
	must.Do(t, run.Generate(context.Background(), got, 10, Sampling{}, func(token int32) error { got = append(got, token); return nil }))
	if !slices.Equal(got, greedy) {
		t.Errorf("it says %v, want %v", got, greedy)
	}
}

// oneSample is the tokens or the pixels of a file of outputs.
func oneSample(m *nn.Model, said map[string][]float64) Data {
	if tokens := said["tokens"]; tokens != nil {
		d := PromptData(len(tokens), m.Classes())
		setPrompt(d.Test, tokensOf(tokens))
		if len(m.Positions()) == 0 {
			d.Test.Positions, d.Test.Labels = nil, d.Test.Labels[:1]
		}
		return d
	}
	d := &data.Dataset{Name: "image", Type: dag.Uint8, Shape: m.Input, Classes: m.Classes(), Labels: []int32{0}, Divisor: 255}
	for _, pixel := range said["pixels"] {
		d.Samples = append(d.Samples, byte(pixel))
	}
	return Data{Train: d, Test: d}
}

func tokensOf(numbers []float64) (tokens []int32) {
	for _, token := range numbers {
		tokens = append(tokens, int32(token))
	}
	return tokens
}
