package layerwise

import (
	"cmp"
	"math"
	"slices"

	"dahl/dag"
)

// knob is the cut of one pass of a layer, which a search turns.
type knob struct {
	layer int
	pass  dag.Pass
	sides []dag.Side // of all its operations, one per dimension
	nodes []int32
	work  float64
}

// findKnobs finds the cuts that change anything, the cuts of the most work first.
func (m *Model) findKnobs() {
	index := map[string]int{}
	at := map[[2]int]int{}
	for n := range m.nodes {
		node := &m.nodes[n]
		if node.isFused {
			continue
		}
		layer, ok := index[node.layer]
		if !ok {
			layer = len(m.layers)
			index[node.layer] = layer
			m.layers = append(m.layers, node.layer)
		}
		node.layerAt = layer
		for _, s := range node.Sides {
			if !s.Cuttable || s.Extent < 2 {
				continue
			}
			key := [2]int{layer, int(s.Pass)}
			k, ok := at[key]
			if !ok {
				k = len(m.knobs)
				at[key] = k
				m.knobs = append(m.knobs, knob{layer: layer, pass: s.Pass})
			}
			of := &m.knobs[k]
			if !slices.Contains(of.nodes, int32(n)) {
				of.nodes = append(of.nodes, int32(n))
			}
			of.work += node.Task.Flops + float64(node.Task.MovedBytes)
			i := slices.IndexFunc(of.sides, func(known dag.Side) bool { return known.Along == s.Along })
			if i < 0 {
				of.sides = append(of.sides, s)
				continue
			}
			known := &of.sides[i]
			known.Extent, known.Summed = max(known.Extent, s.Extent), known.Summed || s.Summed
		}
	}
	for n := range m.nodes {
		if node := &m.nodes[n]; node.isFused {
			node.layerAt = index[node.layer]
			for _, s := range node.Sides {
				if k, ok := at[[2]int{node.layerAt, int(s.Pass)}]; ok && !slices.Contains(m.knobs[k].nodes, int32(n)) {
					m.knobs[k].nodes = append(m.knobs[k].nodes, int32(n))
				}
			}
			m.fused = append(m.fused, node.layerAt)
		}
	}
	slices.SortStableFunc(m.knobs, func(a, b knob) int { return cmp.Compare(b.work, a.work) })
}

// cuts lists ways to turn a knob on a number of units: nested cuts along samples and outputs or inputs, and with fewer samples than units also
// along rows, each in powers of two and in numbers that divide evenly over the units.
func (k *knob) cuts(units int) (all []dag.Cut) {
	most := max(2*units, 8)
	var add func(side, parts, terms int, cut dag.Cut)
	add = func(side, parts, terms int, cut dag.Cut) {
		if side == len(k.sides) {
			if terms == 1 {
				all = append(all, cut)
				return
			}
			for _, n := range slices.Compact([]int{1, min(2, terms), min(4, terms), min(8, terms), terms}) {
				cut.Accumulators = n
				all = append(all, cut)
			}
			return
		}
		s := &k.sides[side]
		for _, n := range partCounts(s.Extent, units) {
			spatial := s.Along == dag.AlongRows || s.Along == dag.AlongColumns
			breaks := s.Summed && k.pass != dag.WeightGradientPass
			if n > 1 && (parts*n > most || spatial && (n > 4 || parts*n > units || s.Summed) || breaks) {
				continue
			}
			of, more := cut, terms
			if size := dag.CeilDiv(s.Extent, n); n > 1 {
				*of.Of(s.Along) = size
				if s.Summed {
					more *= dag.CeilDiv(s.Extent, size)
				}
			}
			add(side+1, parts*n, more, of)
		}
	}
	add(0, 1, 1, dag.Cut{})
	return all
}

// parts is the number of tiles of a cut.
func (k *knob) parts(cut *dag.Cut) int {
	n := 1
	for i := range k.sides {
		n *= k.sides[i].Parts(cut)
	}
	return n
}

// terms is the number of terms of each sum of a cut.
func (k *knob) terms(cut *dag.Cut) int {
	n := 1
	for i := range k.sides {
		if k.sides[i].Summed {
			n *= k.sides[i].Parts(cut)
		}
	}
	return n
}

// partCounts lists numbers of parts of an extent.
func partCounts(extent, units int) (all []int) {
	for n := 1; n <= extent; n *= 2 {
		all = append(all, n)
	}
	for by := 1; by <= 4; by++ {
		if n := dag.CeilDiv(units, by); n <= extent {
			all = append(all, n)
		}
	}
	if units > extent || extent <= 2*units {
		all = append(all, extent)
	}
	slices.Sort(all)
	return slices.CompactFunc(all, func(a, b int) bool { return dag.CeilDiv(extent, a) == dag.CeilDiv(extent, b) })
}

// joint is a dimension that several passes of a layer have: parts of weights stay where they are only if the forward pass and the gradients are cut alike.
type joint struct {
	layer  int
	along  dag.Dimension
	extent int
	knobs  []*knob
}

// findJoints finds the dimensions that several knobs of a layer have.
func (m *Model) findJoints() {
	for i := range m.knobs {
		k := &m.knobs[i]
		for _, s := range k.sides {
			if s.Summed && k.pass != dag.WeightGradientPass {
				continue
			}
			at := slices.IndexFunc(m.joints, func(j joint) bool { return j.layer == k.layer && j.along == s.Along })
			if at < 0 {
				at = len(m.joints)
				m.joints = append(m.joints, joint{layer: k.layer, along: s.Along, extent: s.Extent})
			}
			m.joints[at].knobs = append(m.joints[at].knobs, k)
		}
	}
	m.joints = slices.DeleteFunc(m.joints, func(j joint) bool { return len(j.knobs) < 2 })
}

// together lists lowerings of a layer with equal parts of all its passes along a dimension.
func (s *search) together(j *joint, of dag.LayerLowering) (all []dag.LayerLowering) {
	least := math.Inf(1)
	for _, n := range partCounts(j.extent, s.set.units) {
		to, ok := of, true
		for _, k := range j.knobs {
			cut := to.Cut(k.pass)
			*cut.Of(j.along) = 0
			if n > 1 {
				*cut.Of(j.along) = dag.CeilDiv(j.extent, n)
			}
			ok = ok && k.parts(cut) <= max(2*s.set.units, 8)
			cut.Accumulators = 0
			if terms := k.terms(cut); terms > 1 {
				cut.Accumulators = min(4, terms)
			}
		}
		if ok {
			flow := 0.0
			for _, k := range j.knobs {
				flow += s.flowOfKnob(k, to)
			}
			if flow <= least*worthwhile {
				least = min(least, flow)
				all = append(all, to)
			}
		}
	}
	return all
}
