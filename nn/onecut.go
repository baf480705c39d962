package nn

import (
	"slices"

	"dahl/dag"
)

// LayerCut is a layer of which every operation is cut into some parts along one dimension, and along no other one.
type LayerCut struct {
	Layer string // the first of those that one task computes
	Along dag.Dimension
	dag.LayerLowering
}

// LayerCuts lists the cuts of all layers in so many parts along each dimension, for a fused step channels last. Sums have an
// accumulator for each part. Some cuts change nothing: an operation is only cut along the dimensions that it has.
func LayerCuts(m *Model, batch, parts int) (cuts []LayerCut) {
	groups := m.groups(&dag.Lowering{Layout: dag.NHWC, Fused: true})
	for i := range groups {
		for along := range dag.NumDimensions {
			cuts = append(cuts, m.layerCut(&groups[i], along, batch, parts))
		}
	}
	return cuts
}

func (m *Model) layerCut(g *group, along dag.Dimension, batch, parts int) LayerCut {
	cut := LayerCut{Layer: g.Name, Along: along}
	set := func(c *dag.Cut, image []int, sums ...dag.Dimension) {
		i := extents(image)
		whole := dag.Cut{Samples: batch, Outputs: g.Out[0], Inputs: g.In[0][0], Rows: i[1], Columns: i[2]}
		*c.Of(along) = (*whole.Of(along) + parts - 1) / parts
		if slices.Contains(sums, along) {
			c.Accumulators = parts
		}
	}
	set(&cut.Forward, g.last().Out, dag.AlongInputs)
	if len(g.Params) > 0 { // else the input gradient has as many parts without being told
		set(&cut.InputGradient, g.In[0], dag.AlongOutputs)
		set(&cut.WeightGradient, m.written(g).Out, dag.AlongSamples, dag.AlongRows, dag.AlongColumns)
	}
	return cut
}
