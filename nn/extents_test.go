package nn_test

import (
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/models"
)

// TestExtents: with 7 images lenet5's conv2 turns 6 maps of 14×14 pixels into 16 of 10×10 and pools these to 5×5. So its forward pass has 5
// rows, or as a convolution by itself a sum of 6 terms, and so it has in an evaluation. The gradient of its input has 14 rows and a sum of 16 terms, that of its weight
// a sum over 7·10·10. fc1 has 400 inputs and 120 outputs. No gradient of the images is needed, and a flatten has copies at most.
func TestExtents(t *testing.T) {
	m := must.Get(models.ByName("lenet5"))(t)
	all, predicting := must.Get(m.Extents(7, true))(t), must.Get(m.Extents(7, false))(t)
	for layer, want := range map[string]dag.LayerLowering{
		"conv1": {Forward: dag.Cut{Samples: 7, Outputs: 6, Inputs: 1, Rows: 14, Columns: 14},
			WeightGradient: dag.Cut{Samples: 7, Outputs: 6, Inputs: 1, Rows: 14, Columns: 14, Accumulators: 7 * 14 * 14}},
		"conv2": {Forward: dag.Cut{Samples: 7, Outputs: 16, Inputs: 6, Rows: 5, Columns: 5, Accumulators: 6},
			InputGradient:  dag.Cut{Samples: 7, Outputs: 16, Inputs: 6, Rows: 14, Columns: 14, Accumulators: 16},
			WeightGradient: dag.Cut{Samples: 7, Outputs: 16, Inputs: 6, Rows: 10, Columns: 10, Accumulators: 7 * 10 * 10}},
		"fc1": {Forward: dag.Cut{Samples: 7, Outputs: 120, Inputs: 400, Accumulators: 400},
			InputGradient:  dag.Cut{Samples: 7, Outputs: 120, Inputs: 400, Accumulators: 120},
			WeightGradient: dag.Cut{Samples: 7, Outputs: 120, Inputs: 400, Accumulators: 7}},
		"pool1":    {Forward: dag.Cut{Samples: 7, Outputs: 6, Rows: 14, Columns: 14}, InputGradient: dag.Cut{Samples: 7, Inputs: 6, Rows: 28, Columns: 28}},
		"flatten1": {Forward: dag.Cut{Samples: 7}},
		"input":    {Forward: dag.Cut{Samples: 7}},
		"loss":     {Forward: dag.Cut{Samples: 7}},
	} {
		if got := all[layer]; got != want {
			t.Errorf("%s: %+v, want %+v", layer, got, want)
		}
		if got := predicting[layer]; got != (dag.LayerLowering{Forward: want.Forward}) {
			t.Errorf("%s in an evaluation: %+v, want %+v", layer, got, want.Forward)
		}
	}
}

// TestExtentsAreOfCuts: a tile smaller than an extent makes another graph, and one where there is none leaves the layer whole. This is tried in
// all dimensions of all operations of networks with and without branches. An input gradient with numbers of its own has all samples.
func TestExtentsAreOfCuts(t *testing.T) {
	residual := must.Get(files.LoadModel("examples/residual.toml"))(t)
	lenet := must.Get(models.ByName("lenet5"))(t)
	const batch = 3
	for _, m := range []*nn.Model{lenet, residual} {
		hash := func(l dag.Lowering, alone bool) string {
			g := must.Get(m.Lower(nn.LowerOptions{Batch: batch, Samples: batch, Type: dag.Float32, Train: true, Lowering: l, Unfused: alone}))(t)
			return g.Hash()
		}
		all := must.Get(m.Extents(batch, true))(t)
		fused := nn.WholeLowering(m, batch, 0, dag.Float32)
		heads := map[string]bool{"input": true, "loss": true}
		for _, g := range m.Groups(&fused, true) {
			heads[g[0].Name] = true
		}
		whole := map[bool]string{}
		for _, is := range []bool{false, true} { // layers alone
			whole[is] = hash(dag.Lowering{}, is)
		}
		for layer, of := range all {
			for pass := range dag.NumPasses {
				for d := range dag.NumDimensions {
					extent := *of.Cut(pass).Of(d)
					ll := dag.LayerLowering{InputGradient: dag.Cut{Samples: batch}}
					*ll.Cut(pass).Of(d) = max(1, (extent+1)/2)
					l, alone := dag.Lowering{Layers: map[string]dag.LayerLowering{layer: ll}}, !heads[layer]
					if changes := hash(l, alone) != whole[alone]; changes != (extent > 1) {
						t.Errorf("%s of %s, %s: extent %d, and a cut changes the graph: %v", pass, layer, d, extent, changes)
					}
				}
			}
		}
	}
}
