package tiling

import (
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
)

// Network describes the layers of a network, for tilings to cut: the layers of a network, and their default lowering on some devices.
type Network struct {
	Layer   string       // the one whose samples per task stand for all
	Default dag.Lowering // on the devices
	Batch   int          // samples of a step
	// Extents say how far each layer can be cut: by dimension, 0 where it cannot, and how many terms its sums can have.
	Extents map[string]dag.LayerLowering
	// MostParts is how many parts layers may have, one for each device with a memory of its own.
	MostParts int
	// Recomputable are layers to compute twice, all or the first ones. JoinsLoss says that the last layer may compute the loss, too.
	Recomputable []string
	JoinsLoss    bool
	// OfBatch returns the lowering with a number of parts of the batch. In one part all layers are whole.
	OfBatch func(parts int) dag.Lowering
}

// samplesPerTask is the number of samples per task of the layer by default.
func (n *Network) samplesPerTask() int { return n.Default.Layers[n.Layer].Forward.Samples }

// All lists the default, the whole, those samples per task that are neither, and parts along each dimension: one for each device
// with a memory of its own, and the powers of two below that.
func (n *Network) All() []Tiling {
	all := []Tiling{Of(Base{Kind: Default}), Of(Base{Kind: Whole})}
	for _, b := range n.Scaled() {
		if b.Number != n.Batch && b != (Base{Kind: Samples, Number: n.samplesPerTask()}) {
			all = append(all, Of(b))
		}
	}
	for _, b := range n.partings(n.MostParts) {
		all = append(all, Of(b))
	}
	return all
}

// Scaled lists the samples per task of every size, ascending, and those that differ from them by their sums.
func (n *Network) Scaled() (all []Base) {
	for _, samples := range tileSizes(n.samplesPerTask(), n.Batch) {
		split, whole := Base{Kind: Samples, Number: samples}, Base{Kind: Samples, Number: samples, WholeSums: true}
		all = append(all, split)
		if !maps.Equal(n.scaled(split).Layers, n.scaled(whole).Layers) {
			all = append(all, whole)
		}
	}
	return all
}

// Lowering returns the lowering of a tiling. It fails where the layers cannot be cut so, and where another tiling says the same.
func (n *Network) Lowering(t Tiling) (dag.Lowering, error) {
	of, err := n.base(t.Base)
	if err != nil || t.changes == "" {
		return of, err
	}
	l := of
	l.Layers = maps.Clone(of.Layers)
	for _, c := range t.changes.list() {
		if err := n.change(&l, &c); err != nil {
			return l, fmt.Errorf("tiles %q: %w", t, err)
		}
	}
	own := Of(t.Base).with("", t.ofNetwork())
	for layer, ll := range l.Layers {
		if from := of.Layers[layer]; from != ll {
			own = own.with(layer, differences(layer, &from, &ll))
		}
	}
	if own != t {
		return l, fmt.Errorf("tiles %q: their name is %q", t, own)
	}
	return l, nil
}

// base is the lowering that cuts all layers in one way.
func (n *Network) base(b Base) (dag.Lowering, error) {
	switch b.Kind {
	case Default:
		return n.Default, nil
	case Whole:
		return n.scaled(Base{Kind: Samples, Number: n.Batch}), nil
	case Samples:
		if 1 <= b.Number && b.Number <= n.Batch {
			return n.scaled(b), nil
		}
	case Parts: // of a plan that uses fewer devices than there are parts as well
		if slices.Contains(n.partings(max(n.MostParts, b.Number)), b) {
			return n.parts(b), nil
		}
	}
	return dag.Lowering{}, fmt.Errorf("tiles %q: the layers cannot be cut so", Of(b))
}

// change gives a layer of a lowering a number.
func (n *Network) change(l *dag.Lowering, c *change) error {
	if c.layer == "" {
		return n.changeNetwork(l, c)
	}
	ll, ok := l.Layers[c.layer]
	if !ok {
		return fmt.Errorf("%q is none of the numbers of a layer, such as \"%s: %s\"", c, n.Layer, example)
	}
	extents := n.Extents[c.layer]
	if most := *c.in(&extents); c.value > most || c.value == 0 && (most == 0 || c.of == dag.Accumulators) {
		return fmt.Errorf("layer %s cannot have %s", c.layer, c.text(c.value))
	}
	*c.in(&ll) = c.value
	l.Layers[c.layer] = ll
	return nil
}

// scaled is the default with other samples per task.
func (n *Network) scaled(b Base) dag.Lowering {
	l := Scale(&n.Default, b.Number, n.samplesPerTask(), n.Batch)
	for name, ll := range n.Default.Layers {
		if of := l.Layers[name]; b.WholeSums && ll.WeightGradient.Samples >= n.Batch {
			of.WeightGradient.Samples = ll.WeightGradient.Samples
			l.Layers[name] = of
		}
	}
	return l
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

// Scale multiplies the samples per task of every layer by tile/of, to at least
// one sample and at most the batch. Weight gradients with another split than their layer stay as they are.
func Scale(base *dag.Lowering, tile, of, batch int) dag.Lowering {
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

// From is the tiling of a base with other cuts of some layers. [Network.Lowering] checks their numbers.
func (n *Network) From(b Base, layers map[string]dag.LayerLowering) (Tiling, error) {
	of, err := n.base(b)
	var all []change
	for _, layer := range slices.Sorted(maps.Keys(layers)) {
		if from, ok := of.Layers[layer]; ok { // else it is fused with another one
			extents := n.Extents[layer]
			to := saidAs(from, layers[layer], &extents)
			all = append(all, differences(layer, &from, &to)...)
		}
	}
	return Tiling{Base: b, changes: pack(all)}, err
}
