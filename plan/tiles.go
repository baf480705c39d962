package plan

import (
	"maps"
	"slices"

	"dahl/dag"
)

// Tiling is a variation of a default lowering: what the tile of one layer becomes when those
// of all do.
type Tiling struct {
	Samples int `json:"samples"` // per task of the layer
	// WholeSums leaves the weight gradients whole that are so in the default, instead of
	// splitting them like their layers: a sum that is split has its parts at once, and one
	// that is whole can be taken from the weights by the task that has it.
	WholeSums bool `json:"whole_sums,omitempty"`
}

func (t Tiling) String() string {
	name := counted(t.Samples, "sample") + " per task"
	if t.WholeSums {
		name += " and whole gradients"
	}
	return name
}

// Tilings are the variations of a default lowering: the samples per task of all layers times
// powers of two.
type Tilings struct {
	Layer string // the one whose tile stands for all
	Base  dag.Lowering
	Batch int // samples of a step
	// Extents say how far each layer can be cut: by dimension, 0 where it cannot, and how many terms its sums can have.
	Extents map[string]dag.LayerLowering
	// MostParts is how many parts layers may have by names such as "4 parts of the batch", one for each device with a memory
	// of its own. OfBatch is the lowering with so many of the batch. In one part all layers are whole.
	MostParts int
	OfBatch   func(parts int) dag.Lowering
}

// of is the tile of the layer by default.
func (t *Tilings) of() int { return t.Base.Layers[t.Layer].Forward.Samples }

// All are those of every size, ascending, and those that differ from them by their sums.
func (t *Tilings) All() []Tiling {
	var all []Tiling
	for _, samples := range tileSizes(t.of(), t.Batch) {
		split, whole := Tiling{Samples: samples}, Tiling{samples, true}
		all = append(all, split)
		if !maps.Equal(t.Lowering(split).Layers, t.Lowering(whole).Layers) {
			all = append(all, whole)
		}
	}
	return all
}

// Lowering is that of a tiling.
func (t *Tilings) Lowering(to Tiling) dag.Lowering {
	l := t.Base
	t.Adapt(to)(&l, t.Batch)
	return l
}

// Adapt is what turns a default lowering, of this machine or of a part of it, into that of a
// tiling.
func (t *Tilings) Adapt(to Tiling) func(l *dag.Lowering, batch int) {
	return func(l *dag.Lowering, batch int) {
		scaled := ScaleTiles(l, to.Samples, t.of(), batch)
		for name, ll := range l.Layers {
			if of := scaled.Layers[name]; to.WholeSums && ll.WeightGradient.Samples >= batch {
				of.WeightGradient.Samples = ll.WeightGradient.Samples
				scaled.Layers[name] = of
			}
		}
		*l = scaled
	}
}

// tileSizes are the powers of two times a tile between one sample and the batch,
// both included.
func tileSizes(tile, batch int) []int {
	sizes := []int{batch}
	for t := tile; t < batch; t *= 2 {
		sizes = append(sizes, t)
	}
	for t := tile / 2; t >= 1; t /= 2 {
		sizes = append(sizes, t)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// ScaleTiles multiplies the samples per task of every layer by tile/of, to at least
// one sample and at most the batch. Weight gradients that are split otherwise than their
// layer stay as they are.
func ScaleTiles(base *dag.Lowering, tile, of, batch int) dag.Lowering {
	scale := func(samples int) int {
		if samples == 0 {
			return 0
		}
		return min(max(1, samples*tile/of), batch)
	}
	scaled := *base
	scaled.Layers = maps.Clone(base.Layers)
	for name, ll := range scaled.Layers {
		if ll.WeightGradient.Samples == ll.Forward.Samples {
			ll.WeightGradient.Samples = scale(ll.WeightGradient.Samples)
		}
		ll.Forward.Samples = scale(ll.Forward.Samples)
		scaled.Layers[name] = ll
	}
	return scaled
}
