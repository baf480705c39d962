package nn

import (
	"fmt"

	"dahl/dag"
)

// The cuts of a layer as lowering files name them: that of the forward pass has no name of its own there.
var layerCuts = []struct {
	name string
	of   func(*dag.LayerLowering) *dag.Cut
}{
	{"", func(l *dag.LayerLowering) *dag.Cut { return &l.Forward }},
	{"input_gradient", func(l *dag.LayerLowering) *dag.Cut { return &l.InputGradient }},
	{"weight_gradient", func(l *dag.LayerLowering) *dag.Cut { return &l.WeightGradient }},
}

// cutKey is a number of a cut in a lowering file.
type cutKey struct {
	name  string
	value *int
}

const accumulators = "accumulators"

// cutKeys are the numbers of a cut: its tile in each dimension, and the accumulators.
func cutKeys(c *dag.Cut) []cutKey {
	var all []cutKey
	for d := range dag.NumDimensions {
		all = append(all, cutKey{d.String(), c.Of(d)})
	}
	return append(all, cutKey{accumulators, &c.Accumulators})
}

func checkGranularity(layer string, ll dag.LayerLowering) error {
	for _, c := range layerCuts {
		for _, key := range cutKeys(c.of(&ll)) {
			if *key.value < 0 {
				name := key.name
				if c.name != "" {
					name = c.name + "." + name
				}
				return fmt.Errorf("lowering: layer %q: %s is %d; want at least 0, where 0 is not split", layer, name, *key.value)
			}
		}
	}
	return nil
}

// granularity replaces what a lowering leaves out by numbers: zeros by the full extents of a layer with
// samples of these shapes, and the cut of its input gradient by that of its forward pass.
func granularity(l dag.LayerLowering, batch int, in, out []int) dag.LayerLowering {
	i, o := extents(in), extents(out)
	f := clipped(l.Forward, [...]int{batch, o[0], i[0], o[1], o[2]})
	g := l.InputGradient
	if g == (dag.Cut{}) {
		as := func(extent, of, tile int) int {
			if extent == of {
				return tile
			}
			return parts(extent, parts(of, tile))
		}
		g = dag.Cut{
			Samples: f.Samples, Inputs: as(i[0], o[0], f.Outputs), Outputs: as(o[0], i[0], f.Inputs),
			Rows: as(i[1], o[1], f.Rows), Columns: as(i[2], o[2], f.Columns),
		}
	}
	return dag.LayerLowering{
		Forward:        f,
		InputGradient:  clipped(g, [...]int{batch, o[0], i[0], i[1], i[2]}),
		WeightGradient: clipped(l.WeightGradient, [...]int{batch, o[0], i[0], o[1], o[2]}),
	}
}

// extents are the channels, rows and columns of a sample.
func extents(sample []int) [3]int {
	if len(sample) == 3 {
		return [3]int(sample)
	}
	return [3]int{sample[0], 1, 1}
}

// clipped limits a cut to the extents of its dimensions.
func clipped(c dag.Cut, extents [dag.NumDimensions]int) dag.Cut {
	for d, extent := range extents {
		tile := c.Of(dag.Dimension(d))
		*tile = clip(*tile, extent)
	}
	c.Accumulators = max(c.Accumulators, 1)
	return c
}
