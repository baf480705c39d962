package layerwise

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
)

// point is a lowering in a search, by layer.
type point struct {
	layers []dag.LayerLowering
	value  float64
}

// search looks for good cuts on a set.
type search struct {
	*worker
	ctx  context.Context
	set  *set
	aim  problem.Aim
	left int // tiles that may still be simulated

	brief bool // it looks at fewer positions
}

// of estimates a lowering; infinity means that it cannot run.
func (s *search) of(layers []dag.LayerLowering) float64 {
	e, tiles, err := s.estimate(s.set, layers, s.aim.Steady)
	s.left -= tiles
	if err != nil {
		return math.Inf(1)
	}
	return e.Value(s.aim)
}

// uniform cuts all layers in equal numbers of parts: of the samples, and of the outputs in gradients of weights. Sums of
// gradients are cut along samples too, or whole. If it is light, layers are whole from the first one on with many weights: to move the samples takes less
// than to move the gradients of all parts.
type uniform struct {
	samples, gradients int
	sums, light        bool
}

// layers is the lowering.
func (m *Model) layersOf(u uniform) []dag.LayerLowering {
	layers, heavy := make([]dag.LayerLowering, len(m.layers)), len(m.layers)
	if u.light {
		heavy = m.firstHeavy(u.samples)
	}
	for i := range m.knobs {
		k := &m.knobs[i]
		cut := layers[k.layer].Cut(k.pass)
		if k.layer >= heavy {
			continue
		}
		if k.pass == dag.InputGradientPass { // it follows the forward pass, which may have no operation of its own
			cut = &layers[k.layer].Forward
		}
		for _, s := range k.sides {
			parts := 1
			switch {
			case s.Along == dag.AlongSamples && (k.pass != dag.WeightGradientPass || u.sums):
				parts = u.samples
			case s.Along == dag.AlongOutputs && k.pass == dag.WeightGradientPass:
				parts = u.gradients
			}
			if parts = min(parts, s.Extent); parts > 1 {
				*cut.Of(s.Along) = dag.CeilDiv(s.Extent, parts)
				if s.Summed {
					cut.Accumulators = min(parts, 4)
				}
			}
		}
	}
	return layers
}

// firstHeavy is the first layer with weights that, once in each of some parts, have more bytes than the input of the layer.
func (m *Model) firstHeavy(parts int) int {
	for layer := range m.layers {
		if w := m.weightsOf[layer]; float64(parts)*w.bytes > w.reads {
			return layer
		}
	}
	return len(m.layers)
}

// starts lists uniform lowerings for a number of units, among them devices that are no processors.
func starts(units, others int) (all []uniform) {
	all = append(all, uniform{1, 1, false, false})
	if others > 1 {
		all = append(all, uniform{others, 1, true, true})
	}
	for _, n := range slices.Compact([]int{dag.CeilDiv(units, 2), units}) {
		if n > 1 {
			all = append(all, uniform{n, 1, true, false}, uniform{n, n, false, false}, uniform{n, dag.CeilDiv(n, 4), false, false})
		}
	}
	return all
}

// tried bounds the positions of a knob that are estimated, and worthwhile their flow, relative to the least.
const (
	tried      = 12
	worthwhile = 2.5
)

// promising lists the positions of a knob by their flow, the least first.
func (s *search) promising(k *knob, of dag.LayerLowering) (cuts []dag.Cut) {
	type position struct {
		cut  dag.Cut
		flow float64
	}
	var all []position
	for _, cut := range k.cuts(s.set.units) {
		*of.Cut(k.pass) = cut
		all = append(all, position{cut, s.flowOfKnob(k, of)})
	}
	slices.SortStableFunc(all, func(a, b position) int { return cmp.Compare(a.flow, b.flow) })
	for _, p := range all[:min(tried, len(all))] {
		if p.flow <= worthwhile*all[0].flow {
			cuts = append(cuts, p.cut)
		}
	}
	return cuts
}

// over reports whether the effort or the time is spent.
func (s *search) over() bool { return s.left <= 0 || s.ctx.Err() != nil }

// mostStarts is how many uniform lowerings a search begins from in addition to the one with the least flow, and farStart how many times the best value theirs is at most.
const mostStarts, farStart = 3, 2

// otherStarts are the best uniform lowerings.
func (s *search) otherStarts(best float64) (all []point) {
	for _, u := range starts(s.set.units, s.set.others) {
		layers := s.layersOf(u)
		if p := (point{layers, s.of(layers)}); p.value < farStart*best {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.value, b.value) })
	return all[:min(mostStarts, len(all))]
}

// descend turns one knob after the other to its best position, until none gets better or the effort is spent. Only then does it turn all knobs of a layer at once.
func (s *search) descend(p point) point {
	for s.turnEach(&p) || s.turnTogether(&p) {
	}
	return p
}

// descendTogether turns all knobs of a layer at once first. Where weights are in parts on several devices no knob gets better by itself.
func (s *search) descendTogether(p point) point {
	for s.turnTogether(&p) {
	}
	return s.descend(p)
}

// turnEach turns one knob after the other to its best position.
func (s *search) turnEach(p *point) (better bool) {
	for i := 0; i < len(s.knobs) && !s.over(); i++ {
		k := &s.knobs[i]
		from := p.layers[k.layer]
		for _, cut := range s.promising(k, from) {
			to := from
			*to.Cut(k.pass) = cut
			better = s.turn(p, k.layer, to) || better
		}
	}
	return better
}

// turnTogether turns the knobs of one layer after the other to their best common position.
func (s *search) turnTogether(p *point) (better bool) {
	for i := 0; i < len(s.joints) && !s.over(); i++ {
		j := &s.joints[i]
		for _, to := range s.together(j, p.layers[j.layer]) {
			better = s.turn(p, j.layer, to) || better
		}
	}
	return better
}

// turn lowers a layer otherwise if that is better.
func (s *search) turn(p *point, layer int, to dag.LayerLowering) bool {
	if s.over() || p.layers[layer] == to {
		return false
	}
	layers := slices.Clone(p.layers)
	layers[layer] = to
	v := s.of(layers)
	if v >= p.value {
		return false
	}
	*p = point{layers, v}
	return true
}
