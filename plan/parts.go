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

// allParts are as many parts as there are memories, and the powers of two below that.
func (t *Tilings) allParts(along dag.Dimension) (all []Parts) {
	most := t.MostParts
	if along == dag.AlongSamples {
		most = min(most, t.Batch)
	}
	for n := 2; n/2 < most; n *= 2 {
		all = append(all, Parts{min(n, most), along})
	}
	return all
}

// canHave reports whether there are such parts: enough memories, and along samples enough of these, else a layer that can be
// cut so.
func (t *Tilings) canHave(p Parts) bool {
	if p.Number < 2 || p.Number > t.MostParts {
		return false
	}
	if p.Along == dag.AlongSamples {
		return p.Number <= t.Batch
	}
	for _, of := range t.Extents {
		if *of.Forward.Of(p.Along) > 1 {
			return true
		}
	}
	return false
}

// parts is the lowering in parts. Of the batch, each device has its part of a layer, unless that has large weights. Along another
// dimension all layers are cut.
func (t *Tilings) parts(p Parts) dag.Lowering {
	if p.Along == dag.AlongSamples {
		return t.InParts(p.Number)
	}
	return t.Uniform(p)
}

// Uniform is the lowering in which each layer that can be cut so is in parts, and the others are whole. The gradients of a layer
// with weights are cut along the same dimension, with an accumulator for each part where they sum over it. So each device has its part of the weights,
// and along outputs and inputs these never move (M. Shoeybi and others, Megatron-LM, arXiv:1909.08053, 2019).
func (t *Tilings) Uniform(p Parts) dag.Lowering {
	l := t.InParts(1)
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
		*to.Of(p.Along) = inParts(extent, p.Number)
		if slices.Contains(o.over, p.Along) {
			to.Accumulators = min(p.Number, extent)
		}
	}
	return ll
}
