package nn_test

import (
	"maps"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// TestKeptBytes: of a sequence of 7 tokens and 5 features, in 3 samples, the backward pass of a dense layer with 11 outputs reads its input, that
// of a GELU what it reads, and that of the last layer what the GELU wrote. The embedding reads the tokens again. All numbers have 8 bytes, and tokens 4.
// If the GELU is computed twice, its output is not kept, whether its own cut or a pattern of names says so. A pattern that no layer is like is refused.
func TestKeptBytes(t *testing.T) {
	m := mustNew(t, "m", []int{7}, layers.Embedding{Tokens: 13, Width: 5}, layers.Dense{Outputs: 11}, layers.Activation{Function: "gelu"}, layers.Dense{Outputs: 13})
	opt := nn.LowerOptions{Batch: 3, Samples: 3, Type: dag.Float64, Train: true}
	want := map[string]int64{"input": 3 * 7 * 4, "embed1": 3 * 7 * 5 * 8, "fc1": 3 * 7 * 11 * 8, "gelu1": 3 * 7 * 11 * 8}
	if got := nn.KeptBytes(mustLower(t, m, opt)); !maps.Equal(got, want) {
		t.Errorf("kept are %v, want %v", got, want)
	}
	delete(want, "gelu1")
	for _, l := range []dag.Lowering{{Layers: map[string]dag.LayerLowering{"gelu1": {Recompute: true}}}, {Recompute: []string{"ge?u*"}}} {
		opt.Lowering = l
		if got := nn.KeptBytes(mustLower(t, m, opt)); !maps.Equal(got, want) {
			t.Errorf("%+v: kept are %v, want %v", l, got, want)
		}
	}
	for _, pattern := range []string{"relu*", "["} {
		opt.Lowering = dag.Lowering{Recompute: []string{pattern}}
		if _, err := m.Lower(opt); err == nil || !strings.Contains(err.Error(), "no layer of the model is like \""+pattern+"\"") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
