package tiling

import (
	"maps"

	"dahl/dag"
)

// inParts lists the ways to cut layers in parts: along each dimension as many as the most, and the powers of two below
// that, but no more than samples, and along the others if a layer can be cut so.
func (n *Network) partings(mostParts int) (all []Base) {
	for along := range dag.NumDimensions {
		most := 1
		for _, of := range n.Extents {
			most = max(most, min(mostParts, *of.Forward.Of(along)))
		}
		for parts := 2; parts/2 < most; parts *= 2 {
			all = append(all, Base{Kind: Parts, Number: min(parts, most), Along: along})
		}
	}
	return all
}

// parts is the lowering in parts. Of the batch, each device has its part of a layer, unless that has large weights. Along another
// dimension all layers are cut.
func (n *Network) parts(b Base) dag.Lowering {
	if b.Along == dag.AlongSamples {
		return n.OfBatch(b.Number)
	}
	return n.Uniform(b.Number, b.Along)
}

// Uniform returns the lowering with all layers in parts along one dimension, except layers that cannot be cut so. The gradients
// of a layer
// with weights are cut along the same dimension, with an accumulator for each part where they sum over it. So each device has its part of the weights,
// and along outputs and inputs these never move (M. Shoeybi and others, Megatron-LM, arXiv:1909.08053, 2019).
func (n *Network) Uniform(parts int, along dag.Dimension) dag.Lowering {
	l := n.OfBatch(1)
	for layer, of := range n.Extents {
		if *of.Forward.Of(along) > 1 {
			l.Layers[layer] = cutInParts(parts, along, l.Layers[layer], of)
		}
	}
	return l
}

// Alone is the lowering in which one layer is in parts, and the others are whole.
func (n *Network) Alone(layer string, parts int, along dag.Dimension) dag.Lowering {
	l := n.OfBatch(1)
	l.Layers = maps.Clone(l.Layers)
	l.Layers[layer] = cutInParts(parts, along, l.Layers[layer], n.Extents[layer])
	return l
}

// cutInParts is a layer of such extents in parts.
func cutInParts(parts int, along dag.Dimension, ll, extents dag.LayerLowering) dag.LayerLowering {
	for pass := range dag.NumPasses {
		if pass != dag.ForwardPass && extents.WeightGradient == (dag.Cut{}) {
			break // the gradient of its input follows
		}
		to, extent := ll.Cut(pass), *extents.Cut(pass).Of(along)
		if extent < 2 {
			continue
		}
		tile := dag.CeilDiv(extent, parts)
		*to.Of(along) = tile
		if pass.Sums(along) {
			to.Accumulators = dag.CeilDiv(extent, tile)
		}
	}
	return ll
}
