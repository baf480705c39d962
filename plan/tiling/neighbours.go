package tiling

import (
	"slices"

	"dahl/dag"
)

// Neighbourhood lists the tilings that differ a little from one, in a layer. They are tilings of the network too.
type Neighbourhood func(n *Network, t Tiling, layer string) ([]Tiling, error)

// neighbours collects tilings that differ from one in one layer.
type neighbours struct {
	*Network
	tiling         Tiling
	layer          string
	lowering, from dag.Lowering // from is the lowering of the base
	extents        dag.LayerLowering
	all            []Tiling
}

// neighboursOf begins with none of the tilings that differ from one in a layer.
func (n *Network) neighboursOf(t Tiling, layer string) (*neighbours, error) {
	l, err := n.Lowering(t)
	if err != nil {
		return nil, err
	}
	from, err := n.base(t.Base)
	return &neighbours{Network: n, tiling: t, layer: layer, lowering: l, from: from, extents: n.Extents[layer]}, err
}

// Neighbours lists the neighbours of a tiling in the numbers of a layer that default lowerings choose: samples, outputs, and samples,
// outputs and accumulators of the weight gradient. The number is half or twice as large, or the
// most. If the weight gradient is split like its layer, there is also a neighbour with other samples for both.
func (n *Network) Neighbours(t Tiling, layer string) ([]Tiling, error) {
	to, err := n.neighboursOf(t, layer)
	if err != nil {
		return nil, err
	}
	of := to.lowering.Layers[layer]
	to.halvedOrDoubled(of, true, func(_ number, ll dag.LayerLowering) {
		to.add(ll)
		if of.WeightGradient.Samples == of.Forward.Samples && ll.WeightGradient.Samples == of.WeightGradient.Samples {
			ll.WeightGradient.Samples = ll.Forward.Samples
			to.add(ll)
		}
	})
	return to.all, nil
}

// Further lists the neighbours of a tiling in any other number of a layer, half or twice as large. It also halves all passes of
// the layer along one dimension. Where a task gets half of a sum's terms,
// there is one with twice the accumulators. Of the layer "", which stands for the network, the micro-batches or the recomputed layers are half or twice as
// many, and the loss is joined with the last layer or apart.
func (n *Network) Further(t Tiling, layer string) ([]Tiling, error) {
	to, err := n.neighboursOf(t, layer)
	if err != nil {
		return nil, err
	}
	if layer == "" {
		to.wholeNetwork()
		return to.all, nil
	}
	of := to.lowering.Layers[layer]
	for along := range dag.NumDimensions {
		to.add(to.halved(of, along))
	}
	to.halvedOrDoubled(of, false, func(of number, ll dag.LayerLowering) {
		to.add(ll)
		if of.pass.Sums(of.of) {
			to.accumulate(&ll, of.pass)
			to.add(ll)
		}
	})
	return to.all, nil
}

// Mixed lists the tilings in which a layer is whole, or in parts along another dimension than in one.
func (n *Network) Mixed(t Tiling, layer string) ([]Tiling, error) {
	to, err := n.neighboursOf(t, layer)
	if err != nil || n.MostParts < 2 {
		return nil, err
	}
	whole := n.OfBatch(1).Layers[layer]
	to.add(whole)
	for _, b := range n.partings(n.MostParts) {
		to.add(cutInParts(b.Number, b.Along, whole, to.extents))
	}
	return to.all, nil
}

// halved is a layer whose passes have half as much of a dimension, and twice the accumulators where they sum over it.
func (n *neighbours) halved(ll dag.LayerLowering, along dag.Dimension) dag.LayerLowering {
	weights := n.extents.WeightGradient != dag.Cut{}
	if weights {
		n.stateInputGradient(&ll)
	}
	for _, of := range numbers {
		most := *of.in(&n.extents)
		if of.of != along || most < 2 || !weights && of.pass == dag.InputGradientPass {
			continue // where there are no weights the gradient follows
		}
		*of.in(&ll) = dag.CeilDiv(of.have(&ll, most), 2)
		if of.pass.Sums(along) {
			n.accumulate(&ll, of.pass)
		}
	}
	return ll
}

// accumulate doubles the accumulators of a pass.
func (n *neighbours) accumulate(ll *dag.LayerLowering, pass dag.Pass) {
	sums := ll.Cut(pass)
	sums.Accumulators = min(2*max(1, sums.Accumulators), n.extents.Cut(pass).Accumulators)
}

// stateInputGradient gives the cut of an input gradient the numbers that follow from the forward pass, if it has none.
func (n *neighbours) stateInputGradient(ll *dag.LayerLowering) {
	if ll.InputGradient == (dag.Cut{}) {
		ll.InputGradient = followed(ll.Forward, &n.extents)
	}
}

// halvedOrDoubled visits a layer with one of its numbers half or twice as large.
func (n *neighbours) halvedOrDoubled(of dag.LayerLowering, usual bool, visit func(number, dag.LayerLowering)) {
	from := n.from.Layers[n.layer]
	for _, one := range numbers {
		ll := of
		if one.pass == dag.InputGradientPass {
			n.stateInputGradient(&ll)
		}
		most := *one.in(&n.extents)
		if most < 2 || one.isUsual() != usual || one.of == dag.Accumulators && !sumsParts(one.pass, &ll, &n.extents) {
			continue
		}
		have, whole := one.have(&ll, most), most
		if *one.in(&from) == 0 && one.pass != dag.InputGradientPass {
			whole = 0
		}
		values := []int{have / 2, 2 * have}
		if usual && one.pass == dag.WeightGradientPass && one.of == dag.AlongSamples {
			values = append(values, most) // a gradient of all samples needs no accumulator
		}
		for _, value := range values {
			switch {
			case value == 0 || value >= most && have == most:
				continue
			case value >= most:
				value = whole
			}
			changed := ll
			*one.in(&changed) = value
			visit(one, changed)
		}
	}
}

// add adds the tiling with this layer changed, unless it was seen before.
func (n *neighbours) add(ll dag.LayerLowering) {
	before, base := n.lowering.Layers[n.layer], n.from.Layers[n.layer]
	if ll = saidAs(base, ll, &n.extents); ll == before {
		return
	}
	if to := n.tiling.with(n.layer, differences(n.layer, &base, &ll)); to != n.tiling && !slices.Contains(n.all, to) {
		n.all = append(n.all, to)
	}
}

// saidAs is a layer whose numbers are said as in a base where they are the same.
func saidAs(base, ll dag.LayerLowering, extents *dag.LayerLowering) dag.LayerLowering {
	for _, of := range numbers {
		switch most := *of.in(extents); {
		case of.pass != dag.InputGradientPass && of.have(&ll, most) == of.have(&base, most):
			*of.in(&ll) = *of.in(&base)
		case of.of == dag.Accumulators && *of.in(&base) > 0:
			*of.in(&ll) = max(*of.in(&ll), 1)
		}
	}
	switch g := &ll.InputGradient; {
	case *g == followed(ll.Forward, extents) && base.InputGradient == (dag.Cut{}):
		*g = dag.Cut{} // it is so without being said
	case *g == (dag.Cut{}) && base.InputGradient != (dag.Cut{}):
		*g = followed(ll.Forward, extents)
	}
	return ll
}
