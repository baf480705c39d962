package nn

import (
	"fmt"

	"dahl/dag"
)

func checkGranularity(layer string, ll dag.LayerLowering) error {
	for pass := range dag.NumPasses {
		for d := range dag.NumNumbers {
			if n := *ll.Cut(pass).Of(d); n < 0 {
				name := d.String()
				if pass != dag.ForwardPass {
					name = pass.String() + "." + name
				}
				return fmt.Errorf("lowering: layer %q: %s is %d; want at least 0, where 0 is not split", layer, name, n)
			}
		}
	}
	return nil
}

// granularity replaces what a lowering leaves out. Samples, outputs and inputs become the extents of the layer, where in
// and out are the shapes of a sample before and after it. The cut of the input gradient follows the cut of the forward
// pass. Rows and
// columns stay 0, since the operations of one layer may differ in them.
func granularity(l dag.LayerLowering, batch int, in, out []int) dag.LayerLowering {
	clipped := func(c dag.Cut) dag.Cut {
		c.Samples, c.Outputs, c.Inputs = clip(c.Samples, batch), clip(c.Outputs, Channels(out)), clip(c.Inputs, Channels(in))
		if len(out) == 2 && clip(c.Rows, out[0]) < out[0] {
			c.Samples = 1 // so that a part is a range among the positions of all samples
		}
		c.Accumulators = max(c.Accumulators, 1)
		return c
	}
	f, g := clipped(l.Forward), l.InputGradient
	if g == (dag.Cut{}) {
		g = mirrored(f, out, in)
	}
	return dag.LayerLowering{Forward: f, InputGradient: clipped(g), WeightGradient: clipped(l.WeightGradient)}
}

// mirrored is the cut of an input gradient that has as many parts as the forward pass: out and in are the shapes of a sample
// after and before the layer.
func mirrored(f dag.Cut, out, in []int) dag.Cut {
	as := func(d, of, tile int) int {
		if tile == 0 || d == of {
			return tile
		}
		return dag.CeilDiv(d, dag.CeilDiv(of, tile))
	}
	i, o := extents(in), extents(out)
	g := dag.Cut{Samples: f.Samples, Inputs: as(i[0], o[0], f.Outputs), Outputs: as(o[0], i[0], f.Inputs)}
	g.Rows, g.Columns = as(i[1], o[1], f.Rows), as(i[2], o[2], f.Columns)
	return g
}

// extents are the channels, rows and columns of a sample. The rows of a sequence are its positions.
func extents(sample []int) [3]int {
	switch len(sample) {
	case 3:
		return [3]int(sample)
	case 2:
		return [3]int{sample[1], sample[0], 1}
	}
	return [3]int{sample[0], 1, 1}
}

// Channels is the channels of an image, the features of each position of a sequence, or the first extent of any other sample. They
// are the inputs and the outputs of layers.
func Channels(sample []int) int { return extents(sample)[0] }
