package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
)

// The names of two lowerings of [Tilings]. Others are the texts of tilings.
const (
	DefaultTiles = "default" // what the devices suggest
	WholeTiles   = "whole"   // a task for all samples of a layer
)

// layerSeparator comes before what a layer has otherwise than the lowering whose name stands first, as in
// "4 samples per task; fc1: 32 samples; conv2: 2 gradient accumulators".
const layerSeparator = "; "

// microBatches ends the number of the network that stands before those of layers, as in "whole; 2 micro-batches".
const microBatches = " micro-batches"

// Names lists the default, the whole, those tilings that are neither, and parts along each dimension: one for each device
// with a memory of its own, and the powers of two below that.
func (t *Tilings) Names() []string {
	names := []string{DefaultTiles, WholeTiles}
	for _, tiling := range t.All() {
		if tiling.Samples != t.Batch && tiling != (Tiling{Samples: t.of()}) {
			names = append(names, tiling.String())
		}
	}
	for _, p := range t.Parts() {
		names = append(names, p.String())
	}
	return names
}

// ByName is the lowering of a name: one of [Tilings.Names], or what [Tilings.Near], [Tilings.Further] or
// [Tilings.Mixed] makes of one.
func (t *Tilings) ByName(name string) (dag.Lowering, error) {
	base, changes, changed := strings.Cut(name, layerSeparator)
	of, err := t.scaled(base)
	if err != nil || !changed {
		return of, err
	}
	l := of
	l.Layers = maps.Clone(of.Layers)
	for change := range strings.SplitSeq(changes, layerSeparator) {
		if number, ok := strings.CutSuffix(change, microBatches); ok {
			l.MicroBatches, err = strconv.Atoi(number)
			if err != nil || l.MicroBatches < 2 || l.MicroBatches > t.Batch {
				return l, fmt.Errorf("tiles %q: a batch of %d cannot have %s", name, t.Batch, change)
			}
			continue
		}
		if err := t.change(&l, change); err != nil {
			return l, fmt.Errorf("tiles %q: %w", name, err)
		}
	}
	if own := nameOf(base, &of, &l); own != name {
		return l, fmt.Errorf("tiles %q: their name is %q", name, own)
	}
	return l, nil
}

// scaled is the lowering of one of the names.
func (t *Tilings) scaled(name string) (dag.Lowering, error) {
	switch name {
	case DefaultTiles:
		return t.Base, nil
	case WholeTiles:
		return t.Lowering(Tiling{Samples: t.Batch}), nil
	}
	if p, ok := PartsOf(name); ok && slices.Contains(t.Parts(), p) {
		return t.InParts(p), nil
	}
	all := t.All()
	i := slices.IndexFunc(all, func(to Tiling) bool { return to.String() == name })
	if i < 0 {
		return dag.Lowering{}, fmt.Errorf("tiles %q: the layers cannot be cut so", name)
	}
	return t.Lowering(all[i]), nil
}

// change gives a layer of a lowering a number, such as "fc1: 32 samples" or "conv2: all rows".
func (t *Tilings) change(l *dag.Lowering, text string) error {
	layer, number, _ := strings.Cut(text, ": ")
	digits, name, _ := strings.Cut(number, " ")
	ll, ok := l.Layers[layer]
	i := slices.IndexFunc(quantities, func(q quantity) bool { return q.name == strings.TrimSuffix(name, "s") })
	value, err := strconv.Atoi(digits)
	all := digits == "all"
	if !ok || i < 0 || err != nil && !all {
		return fmt.Errorf("%q is none of the numbers of a layer, such as \"%s: %s\"", text, t.Layer, quantities[0].text(2))
	}
	q, extents := &quantities[i], t.Extents[layer]
	if most := *q.in(&extents); value > most || !all && value < 1 || all && (most == 0 || q.along == ofSums) {
		return fmt.Errorf("layer %s cannot have %s %s", layer, digits, name)
	}
	*q.in(&ll) = value
	l.Layers[layer] = ll
	return nil
}

// nameOf is the name of a lowering that has some layers otherwise than one with a name.
func nameOf(name string, of, l *dag.Lowering) string {
	if l.MicroBatches != of.MicroBatches {
		name += layerSeparator + strconv.Itoa(l.MicroBatches) + microBatches
	}
	for _, layer := range slices.Sorted(maps.Keys(l.Layers)) {
		from, to := of.Layers[layer], l.Layers[layer]
		if from == to {
			continue
		}
		for _, q := range quantities {
			if value := *q.in(&to); value != *q.in(&from) {
				name += layerSeparator + layer + ": " + q.text(value)
			}
		}
	}
	return name
}
