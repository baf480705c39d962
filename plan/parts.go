package plan

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
)

// Parts is a lowering with layers in so many parts along a dimension, for as many devices with memories of their own.
type Parts struct {
	Number int
	Along  dag.Dimension
}

func (p Parts) String() string {
	what := p.Along.String()
	if p.Along == dag.AlongSamples {
		what = "batch"
	}
	return fmt.Sprintf("%d parts of the %s", p.Number, what)
}

// PartsOf is the parts by the name of a lowering, perhaps with other numbers of single layers; false: it says none.
func PartsOf(name string) (p Parts, ok bool) {
	base, _, _ := strings.Cut(name, layerSeparator)
	if _, err := fmt.Sscanf(base, "%d parts", &p.Number); err != nil {
		return Parts{}, false
	}
	for p.Along = range dag.NumDimensions {
		if p.String() == base {
			return p, true
		}
	}
	return Parts{}, false
}

// Parts lists those that there are: along each dimension as many as memories, and the powers of two below that, but no more than
// samples, and along the others if a layer can be cut so.
func (t *Tilings) Parts() (all []Parts) {
	for along := range dag.NumDimensions {
		most := 1
		for _, of := range t.Extents {
			most = max(most, min(t.MostParts, *of.Forward.Of(along)))
		}
		for n := 2; n/2 < most; n *= 2 {
			all = append(all, Parts{min(n, most), along})
		}
	}
	return all
}

// InParts is the lowering in parts. Of the batch, each device has its part of a layer, unless that has large weights. Along another
// dimension all layers are cut.
func (t *Tilings) InParts(p Parts) dag.Lowering {
	if p.Along == dag.AlongSamples {
		return t.OfBatch(p.Number)
	}
	return t.Uniform(p)
}

// Uniform is the lowering in which each layer that can be cut so is in parts, and the others are whole. The gradients of a layer
// with weights are cut along the same dimension, with an accumulator for each part where they sum over it. So each device has its part of the weights,
// and along outputs and inputs these never move (M. Shoeybi and others, Megatron-LM, arXiv:1909.08053, 2019).
func (t *Tilings) Uniform(p Parts) dag.Lowering {
	l := t.OfBatch(1)
	for layer, of := range t.Extents {
		if *of.Forward.Of(p.Along) > 1 {
			l.Layers[layer] = p.of(l.Layers[layer], of)
		}
	}
	return l
}

// of is a layer of such extents in parts.
func (p Parts) of(ll, extents dag.LayerLowering) dag.LayerLowering {
	some := operations
	if extents.WeightGradient == (dag.Cut{}) {
		some = some[:1] // the gradient of its input follows
	}
	for i := range some {
		o := &some[i]
		to, extent := o.of(&ll), *o.of(&extents).Of(p.Along)
		if extent < 2 {
			continue
		}
		tile := inParts(extent, p.Number)
		*to.Of(p.Along) = tile
		if slices.Contains(o.over, p.Along) {
			to.Accumulators = inParts(extent, tile)
		}
	}
	return ll
}
