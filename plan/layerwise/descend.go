package layerwise

import (
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
	*Model
	set  *set
	aim  problem.Aim
	left int // tiles that may still be simulated
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

// uniform cuts all layers in equal numbers of parts of the samples. Sums are cut likewise, or along outputs in as many parts.
func (m *Model) uniform(samples, outputs, gradients int, sums bool) []dag.LayerLowering {
	layers := make([]dag.LayerLowering, len(m.layers))
	for i := range m.knobs {
		k := &m.knobs[i]
		cut := layers[k.layer].Cut(k.pass)
		if k.pass == dag.InputGradientPass {
			continue // it follows
		}
		for _, s := range k.sides {
			parts := 1
			switch {
			case s.Along == dag.AlongSamples && (k.pass == dag.ForwardPass || sums):
				parts = samples
			case s.Along == dag.AlongOutputs && k.pass == dag.WeightGradientPass:
				parts = gradients
			case s.Along == dag.AlongOutputs:
				parts = outputs
			}
			if parts = min(parts, s.Extent); parts > 1 {
				*cut.Of(s.Along) = ceilDiv(s.Extent, parts)
				if s.Summed {
					cut.Accumulators = min(parts, 4)
				}
			}
		}
	}
	return layers
}

// starts lists uniform lowerings for a number of units.
func (m *Model) starts(units int) (all [][]dag.LayerLowering) {
	all = append(all, m.uniform(1, 1, 1, false))
	for _, n := range slices.Compact([]int{2, ceilDiv(units, 4), ceilDiv(units, 2), units}) {
		if n > 1 {
			all = append(all, m.uniform(n, 1, 1, true), m.uniform(n, 1, n, false), m.uniform(n, 1, ceilDiv(n, 4), false))
		}
	}
	return all
}

// descend turns one knob after the other to its best position, until none gets better or the effort is spent.
func (s *search) descend(p point) point {
	for better := true; better && s.left > 0; {
		better = false
		for i := range s.knobs {
			k := &s.knobs[i]
			from := p
			for _, cut := range k.cuts(s.set.units) {
				if s.left <= 0 {
					break
				}
				layers := slices.Clone(from.layers)
				if *layers[k.layer].Cut(k.pass) == cut {
					continue
				}
				*layers[k.layer].Cut(k.pass) = cut
				if v := s.of(layers); v < p.value {
					p, better = point{layers, v}, true
				}
			}
		}
	}
	return p
}

// best is the best lowering that a search finds on a set.
func (s *search) best() point {
	best := point{value: math.Inf(1)}
	for _, layers := range s.starts(s.set.units) {
		if v := s.of(layers); v < best.value {
			best = point{layers, v}
		}
	}
	return s.descend(best)
}
