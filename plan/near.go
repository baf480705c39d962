package plan

import (
	"maps"
	"slices"
	"strings"

	"dahl/dag"
)

// neighbours collects the names of lowerings that differ from one in one layer.
type neighbours struct {
	*Tilings
	name, base, layer string
	lowering, from    dag.Lowering // from is that of the base
	extents           dag.LayerLowering
	names             []string
}

// near begins with none of the lowerings that differ from one in a layer.
func (t *Tilings) near(name, layer string) (*neighbours, error) {
	l, err := t.ByName(name)
	if err != nil {
		return nil, err
	}
	base, _, _ := strings.Cut(name, layerSeparator)
	from, err := t.scaled(base)
	return &neighbours{Tilings: t, name: name, base: base, layer: layer, lowering: l, from: from, extents: t.Extents[layer]}, err
}

// Near names the lowerings that differ from one in a number of a layer that default lowerings choose: samples, outputs, those
// of its weight gradient, and the accumulators of that. The number is half or twice as large, or the
// most. Where a layer gets other samples and its weight gradient was split like it, there is one in which that stays so.
func (t *Tilings) Near(name, layer string) ([]string, error) {
	n, err := t.near(name, layer)
	if err != nil {
		return nil, err
	}
	of := n.lowering.Layers[layer]
	n.halvedOrDoubled(of, true, func(q *quantity, ll dag.LayerLowering) {
		n.keep(ll)
		if of.WeightGradient.Samples == of.Forward.Samples && ll.WeightGradient.Samples == of.WeightGradient.Samples {
			ll.WeightGradient.Samples = ll.Forward.Samples
			n.keep(ll)
		}
	})
	return n.names, nil
}

// Further names the lowerings that differ from one in any other number of a layer, half or twice as large, and those in which
// all operations of the layer have half of what they had along one dimension. Where a task gets half of a sum's terms,
// there is one with twice the accumulators. Of the layer "", which stands for the network, the micro-batches are half or twice as many.
func (t *Tilings) Further(name, layer string) ([]string, error) {
	n, err := t.near(name, layer)
	if err != nil {
		return nil, err
	}
	if layer == "" {
		n.microBatches()
		return n.names, nil
	}
	of := n.lowering.Layers[layer]
	for along := range dag.NumDimensions {
		n.keep(n.halved(of, along))
	}
	n.halvedOrDoubled(of, false, func(q *quantity, ll dag.LayerLowering) {
		n.keep(ll)
		if slices.Contains(q.over, q.along) {
			n.accumulate(&ll, q)
			n.keep(ll)
		}
	})
	return n.names, nil
}

// Mixed names the lowerings in which a layer is in parts along another dimension than in one, see [Parts], or whole.
func (t *Tilings) Mixed(name, layer string) ([]string, error) {
	n, err := t.near(name, layer)
	if err != nil || t.MostParts < 2 {
		return nil, err
	}
	whole := t.OfBatch(1).Layers[layer]
	n.keep(whole)
	for _, p := range t.Parts() {
		n.keep(p.of(whole, n.extents))
	}
	return n.names, nil
}

// microBatches names the lowerings with half or twice the micro-batches.
func (n *neighbours) microBatches() {
	have := max(n.lowering.MicroBatches, 1)
	for _, number := range []int{have / 2, 2 * have} {
		if number < 1 || number > n.Batch {
			continue
		}
		to := n.lowering
		if to.MicroBatches = number; number == 1 {
			to.MicroBatches = 0
		}
		n.names = append(n.names, nameOf(n.base, &n.from, &to))
	}
}

// halved is a layer whose operations have half as much of a dimension, and twice the accumulators where they sum over it.
func (n *neighbours) halved(ll dag.LayerLowering, along dag.Dimension) dag.LayerLowering {
	weights := n.extents.WeightGradient != dag.Cut{}
	if weights {
		n.say(&ll)
	}
	for i := range quantities {
		q := &quantities[i]
		most := *q.in(&n.extents)
		if q.along != along || most < 2 || !weights && q.operation == ofInputGradient {
			continue // where there are no weights the gradient follows
		}
		*q.in(&ll) = inParts(q.have(&ll, most), 2)
		if slices.Contains(q.over, along) {
			n.accumulate(&ll, q)
		}
	}
	return ll
}

// accumulate doubles the accumulators of an operation's sums.
func (n *neighbours) accumulate(ll *dag.LayerLowering, q *quantity) {
	sums := q.of(ll)
	sums.Accumulators = min(2*max(1, sums.Accumulators), q.of(&n.extents).Accumulators)
}

// say gives the cut of an input gradient the numbers that follow from the forward pass, if it has none.
func (n *neighbours) say(ll *dag.LayerLowering) {
	if ll.InputGradient == (dag.Cut{}) {
		ll.InputGradient = followed(ll.Forward, &n.extents)
	}
}

// halvedOrDoubled visits a layer with one of its numbers half or twice as large.
func (n *neighbours) halvedOrDoubled(of dag.LayerLowering, usual bool, visit func(*quantity, dag.LayerLowering)) {
	from := n.from.Layers[n.layer]
	for i := range quantities {
		q, ll := &quantities[i], of
		if q.operation == ofInputGradient {
			n.say(&ll)
		}
		most := *q.in(&n.extents)
		if most < 2 || q.isUsual() != usual || q.along == ofSums && !q.sums(&ll, &n.extents) {
			continue
		}
		have, whole := q.have(&ll, most), most
		if *q.in(&from) == 0 && q.operation != ofInputGradient {
			whole = 0
		}
		values := []int{have / 2, 2 * have}
		if usual && q.operation == ofWeightGradient && q.along == dag.AlongSamples {
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
			*q.in(&changed) = value
			visit(q, changed)
		}
	}
}

// keep names a lowering with another one of the layer, if it is a new one.
func (n *neighbours) keep(ll dag.LayerLowering) {
	before, base := n.lowering.Layers[n.layer], n.from.Layers[n.layer]
	for i := range quantities { // what is as in the base is said as there
		q := &quantities[i]
		switch most := *q.in(&n.extents); {
		case q.operation != ofInputGradient && q.have(&ll, most) == q.have(&base, most):
			*q.in(&ll) = *q.in(&base)
		case q.along == ofSums && *q.in(&base) > 0:
			*q.in(&ll) = max(*q.in(&ll), 1)
		}
	}
	switch g := &ll.InputGradient; {
	case *g == followed(ll.Forward, &n.extents) && base.InputGradient == (dag.Cut{}):
		*g = dag.Cut{} // it is so without being said
	case *g == (dag.Cut{}) && base.InputGradient != (dag.Cut{}):
		*g = followed(ll.Forward, &n.extents)
	}
	if ll == before {
		return
	}
	to := n.lowering
	to.Layers = maps.Clone(to.Layers)
	to.Layers[n.layer] = ll
	if name := nameOf(n.base, &n.from, &to); name != n.name && !slices.Contains(n.names, name) {
		n.names = append(n.names, name)
	}
}
