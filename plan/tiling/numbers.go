package tiling

import (
	"slices"

	"dahl/dag"
)

// number is one of the numbers of a layer: how much a task of one of its passes has of a dimension, or the accumulators of
// its sum.
type number struct {
	pass dag.Pass
	of   dag.Dimension
}

// numbers are all of them, in the order of texts.
var numbers = func() (all []number) {
	for _, pass := range []dag.Pass{dag.ForwardPass, dag.WeightGradientPass, dag.InputGradientPass} {
		for of := range dag.NumNumbers {
			all = append(all, number{pass, of})
		}
	}
	return all
}()

// in is the number of a layer.
func (n number) in(ll *dag.LayerLowering) *int { return ll.Cut(n.pass).Of(n.of) }

// have returns the number of a layer, at most the given one; 0 stands for the most, or for one accumulator.
func (n number) have(ll *dag.LayerLowering, most int) int {
	switch value := *n.in(ll); {
	case value > 0:
		return min(value, most)
	case n.of == dag.Accumulators:
		return 1
	}
	return most
}

// isUsual reports whether default lowerings choose the number.
func (n number) isUsual() bool {
	return n.pass != dag.InputGradientPass && (n.of == dag.AlongSamples || n.of == dag.AlongOutputs || n.of == dag.Accumulators && n.pass == dag.WeightGradientPass)
}

// sumsParts reports whether a sum of a pass is cut.
func sumsParts(pass dag.Pass, ll, extents *dag.LayerLowering) bool {
	return slices.ContainsFunc(numbers, func(n number) bool {
		tile, extent := *n.in(ll), *n.in(extents)
		return n.pass == pass && pass.Sums(n.of) && tile > 0 && tile < extent
	})
}

// differences lists the numbers in which two layers differ.
func differences(layer string, from, to *dag.LayerLowering) (all []change) {
	for _, n := range numbers {
		if value := *n.in(to); value != *n.in(from) {
			all = append(all, change{layer: layer, number: n, value: value})
		}
	}
	return all
}

// followed is the cut of an input gradient by which it has as many parts as the forward pass, see [dag.LayerLowering].
func followed(forward dag.Cut, extents *dag.LayerLowering) (g dag.Cut) {
	for d := range dag.NumDimensions {
		from := d
		switch d {
		case dag.AlongInputs:
			from = dag.AlongOutputs
		case dag.AlongOutputs:
			from = dag.AlongInputs
		}
		tile, of, extent := *forward.Of(from), *extents.Forward.Of(from), *extents.InputGradient.Of(d)
		switch {
		case tile == 0 || of == 0 || extent == 0:
		case extent == of:
			*g.Of(d) = tile
		default:
			*g.Of(d) = dag.CeilDiv(extent, dag.CeilDiv(of, tile))
		}
	}
	return g
}

// inParts divides and rounds up. It returns the size of each of some parts, or the number of parts of some size.
