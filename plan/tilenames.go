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

// quantity is a number of the granularity of a layer. Where it is 0, the layer has none.
type quantity struct {
	name string // of one
	of   func(*dag.LayerLowering) *int
	most func(t *Tilings, layer string) int
	// whole says that the most is worth a try from afar: a gradient of all samples needs no accumulator.
	whole bool
}

var quantities = []quantity{
	{"sample", func(l *dag.LayerLowering) *int { return &l.Forward.Samples }, (*Tilings).samplesOf, false},
	{"output", func(l *dag.LayerLowering) *int { return &l.Forward.Outputs }, (*Tilings).outputsOf, false},
	{"gradient sample", func(l *dag.LayerLowering) *int { return &l.WeightGradient.Samples }, (*Tilings).samplesOf, true},
	{"gradient output", func(l *dag.LayerLowering) *int { return &l.WeightGradient.Outputs }, (*Tilings).outputsOf, false},
	{"gradient accumulator", func(l *dag.LayerLowering) *int { return &l.WeightGradient.Accumulators }, (*Tilings).samplesOf, false},
}

// counted is a number of things by the name of one, as "1 sample" and "4 samples".
func counted(n int, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

func (t *Tilings) samplesOf(string) int { return t.Batch }

func (t *Tilings) outputsOf(layer string) int { return t.Outputs[layer] }

// Names lists the default, the whole, those tilings that are neither, and parts of the batch: one for each device with a
// memory of its own, and the powers of two below that.
func (t *Tilings) Names() []string {
	names := []string{DefaultTiles, WholeTiles}
	for _, tiling := range t.All() {
		if tiling.Samples != t.Batch && tiling != (Tiling{Samples: t.of()}) {
			names = append(names, tiling.String())
		}
	}
	for n := 2; n < t.MostParts; n *= 2 {
		names = append(names, PartsTiles(n))
	}
	if t.MostParts > 1 {
		names = append(names, PartsTiles(t.MostParts))
	}
	return names
}

// PartsTiles is the name of the lowering with the batch in so many parts.
func PartsTiles(n int) string { return fmt.Sprintf("%d parts of the batch", n) }

// PartsOf is how many parts the batch has by the name of a lowering; 0: it says none.
func PartsOf(name string) (n int) {
	base, _, _ := strings.Cut(name, layerSeparator)
	if _, err := fmt.Sscanf(base, "%d parts", &n); err != nil || base != PartsTiles(n) {
		return 0
	}
	return n
}

// ByName is the lowering of a name: one of [Tilings.Names], or what [Tilings.Near] makes of one.
func (t *Tilings) ByName(name string) (dag.Lowering, error) {
	base, changes, changed := strings.Cut(name, layerSeparator)
	l, err := t.scaled(base)
	if err != nil || !changed {
		return l, err
	}
	l.Layers = maps.Clone(l.Layers)
	for change := range strings.SplitSeq(changes, layerSeparator) {
		if err := t.change(&l, change); err != nil {
			return l, fmt.Errorf("tiles %q: %w", name, err)
		}
	}
	if own := t.nameOf(base, &l); own != name {
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
	if n := PartsOf(name); n > 1 && n <= t.MostParts {
		return t.InParts(n), nil
	}
	all := t.All()
	i := slices.IndexFunc(all, func(to Tiling) bool { return to.String() == name })
	if i < 0 {
		return dag.Lowering{}, fmt.Errorf("tiles %q: the layers cannot be cut so", name)
	}
	return t.Lowering(all[i]), nil
}

// change gives a layer of a lowering a number, such as "fc1: 32 samples".
func (t *Tilings) change(l *dag.Lowering, text string) error {
	layer, number, _ := strings.Cut(text, ": ")
	digits, name, _ := strings.Cut(number, " ")
	ll, ok := l.Layers[layer]
	i := slices.IndexFunc(quantities, func(q quantity) bool { return q.name == strings.TrimSuffix(name, "s") })
	value, err := strconv.Atoi(digits)
	if !ok || i < 0 || err != nil {
		return fmt.Errorf("%q is none of the numbers of a layer, such as \"%s: %s\"", text, t.Layer, counted(2, quantities[0].name))
	}
	q := &quantities[i]
	if most := q.most(t, layer); *q.of(&ll) == 0 || value < 1 || value > most {
		return fmt.Errorf("layer %s cannot have %d %s", layer, value, name)
	}
	*q.of(&ll) = value
	l.Layers[layer] = ll
	return nil
}

// nameOf is the name of a lowering that has some layers otherwise than one with a name.
func (t *Tilings) nameOf(base string, l *dag.Lowering) string {
	of, err := t.scaled(base)
	if err != nil {
		panic("plan: " + err.Error())
	}
	name := base
	for _, layer := range slices.Sorted(maps.Keys(l.Layers)) {
		from, to := of.Layers[layer], l.Layers[layer]
		for _, q := range quantities {
			if value := *q.of(&to); value != *q.of(&from) {
				name += layerSeparator + layer + ": " + counted(value, q.name)
			}
		}
	}
	return name
}

// Near names the lowerings that differ from one in a number of a layer. The number is half or twice as large, or the
// most. Where a layer gets other samples and its weight gradient was split like it, there is one in which that stays so.
func (t *Tilings) Near(name, layer string) ([]string, error) {
	l, err := t.ByName(name)
	if err != nil {
		return nil, err
	}
	base, _, _ := strings.Cut(name, layerSeparator)
	var names []string
	keep := func(ll dag.LayerLowering) {
		to := l
		to.Layers = maps.Clone(l.Layers)
		to.Layers[layer] = ll
		if near := t.nameOf(base, &to); near != name && !slices.Contains(names, near) {
			names = append(names, near)
		}
	}
	of := l.Layers[layer]
	for _, q := range quantities {
		have, most := *q.of(&of), q.most(t, layer)
		values := []int{have / 2, min(2*have, most)}
		if q.whole {
			values = append(values, most)
		}
		for _, value := range values {
			if have == 0 || value == 0 {
				continue
			}
			ll := of
			*q.of(&ll) = value
			keep(ll)
			if of.WeightGradient.Samples == of.Forward.Samples && ll.WeightGradient.Samples == of.WeightGradient.Samples {
				ll.WeightGradient.Samples = ll.Forward.Samples
				keep(ll)
			}
		}
	}
	return names, nil
}
