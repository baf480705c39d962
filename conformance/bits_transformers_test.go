package conformance

import (
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
)

// TestBitsOfTransformers trains a block of a GPT, of a BERT and of a vision transformer with every number of workers and every way to schedule, on cores and with emulated GPUs. All
// drop weights of keys. Each is cut along all dimensions, keys among them, in micro-batches; the GPT joins its loss with the last layer. Dense layers compute GELU, and normalisations residual sums.
func TestBitsOfTransformers(t *testing.T) {
	attention := layers.Attention{Heads: 5, Dropout: 0.25}
	causal := attention
	causal.Causal = true
	block := func(of nn.Layer, residual string, inputs ...string) []nn.Layer {
		return []nn.Layer{layers.LayerNorm{}, layers.Dense{Outputs: 30}, nn.Named{Name: "attention", Layer: of, Inputs: inputs}, layers.Dense{Outputs: 10}, nn.Named{Name: "residual", Layer: layers.Add{}, Inputs: []string{residual, "fc2"}},
			layers.LayerNorm{}, layers.Dense{Outputs: 14}, layers.Activation{Function: "gelu"}, layers.Dense{Outputs: 10}, nn.Named{Name: "end", Layer: layers.Add{}, Inputs: []string{"residual", "fc4"}}}
	}
	embedding := nn.Named{Name: "wte", Layer: layers.Embedding{Tokens: 13, Width: 10}, Inputs: []string{nn.InputName}}
	for _, c := range []struct {
		name, source string
		input        []int
		dtype        dag.DType
		list         [][]nn.Layer
	}{
		{"gpt", "tokens:7:97:13", []int{7}, dag.Float32, [][]nn.Layer{{embedding, layers.Positions{}}, block(causal, "positions1"),
			{nn.Named{Name: "head", Layer: layers.Dense{Outputs: 13, NoBias: true}, Shares: []string{"wte.weight"}}}}},
		{"bert", "tokens:7:97:13", []int{7}, dag.Float64, [][]nn.Layer{{nn.Of(layers.Mask{Token: 1}, nn.InputName), nn.Of(layers.Segments{Token: 2}, nn.InputName), embedding,
			nn.Named{Name: "segment", Layer: layers.Embedding{Tokens: 2, Width: 10}, Inputs: []string{"segments1"}}, nn.Of(layers.Add{}, "wte", "segment")},
			block(attention, "add1", "fc1", "mask1"), {layers.Dense{Outputs: 13}}}},
		{"vit", "digits", []int{1, 8, 8}, dag.Float32, [][]nn.Layer{{layers.Conv2D{Filters: 10, Kernel: 2, Stride: 2}, layers.Pixels{}, layers.Positions{}}, block(attention, "positions1"),
			{layers.Pixels{}, layers.GlobalAvgPool{}, layers.Flatten{}, layers.Dense{Outputs: 10}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list []nn.Layer
			for _, part := range c.list {
				list = append(list, part...)
			}
			n := &network{model: must.Get(nn.New(c.name, c.input, list...))(t), dtype: c.dtype, epochs: 1}
			n.model.Defaults.Optimizer = nn.DefaultAdamW()
			n.train = must.Get(data.Open(c.source, data.Options{Split: data.Train, Limit: fixtureTrain}))(t)
			n.test = must.Get(data.Open(c.source, data.Options{Split: data.Test, Limit: fixtureTest}))(t)
			l := n.mixedLowering()
			l.JoinLoss, l.Epilogues = n.model.JoinsLoss(), true
			l.Layers["attention"] = dag.LayerLowering{Forward: dag.Cut{Samples: 1, Rows: 3, Columns: 4, Accumulators: 2}, InputGradient: dag.Cut{Samples: 1, Outputs: 4, Rows: 4, Columns: 3}}
			n.lower(t, l)
			n.checkBits(t, "")
		})
	}
}
