package layerwise

import (
	"cmp"
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
)

// Ranked is a set of devices with the best lowering that the model knows there, by layer, and its value.
type Ranked struct {
	Devices string
	Layers  map[string]dag.LayerLowering
	Value   float64
}

// Efforts of a ranking, in simulated tiles: for all sets together, and for each one whose cuts are searched.
const (
	comparing = 600_000
	searching = 400_000
	searched  = 4 // sets
)

// Rank orders sets of devices, the most promising first. It compares uniform cuts by their flow, estimates the steps of the best ones, and
// searches cuts for the best sets.
func (m *Model) Rank(sets []string, aim problem.Aim) ([]Ranked, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	type ranking struct {
		*search
		point
		devices string
	}
	var all []ranking
	for _, devices := range sets {
		set, err := m.setOf(devices)
		if err != nil {
			return nil, err
		}
		r := ranking{search: &search{Model: m, set: set, aim: aim}, point: point{value: math.Inf(1)}, devices: devices}
		for _, layers := range m.starts(set.units) {
			if v := r.flow(layers); v < r.value {
				r.point = point{layers, v}
			}
		}
		if !math.IsInf(r.value, 1) {
			all = append(all, r)
		}
	}
	byValue := func(a, b ranking) int { return cmp.Compare(a.value, b.value) }
	slices.SortStableFunc(all, byValue)
	left, known, ratio := comparing, 0, 1.0
	for ; known < len(all) && left > 0; known++ {
		r := &all[known]
		r.left = 0
		v := r.search.of(r.layers)
		ratio = v / r.value
		r.value = v
		left += r.left
	}
	for i := known; i < len(all); i++ {
		all[i].value *= ratio
	}
	slices.SortStableFunc(all, byValue)
	for i := range min(searched, len(all)) {
		all[i].left = searching
		all[i].point = all[i].descend(all[i].point)
	}
	slices.SortStableFunc(all, byValue)
	var ranked []Ranked
	for i := range all {
		ranked = append(ranked, Ranked{all[i].devices, m.byLayer(all[i].layers), all[i].value})
	}
	return ranked, nil
}

// byLayer names the layers that can be cut.
func (m *Model) byLayer(layers []dag.LayerLowering) map[string]dag.LayerLowering {
	named := map[string]dag.LayerLowering{}
	for i := range m.knobs {
		at := m.knobs[i].layer
		named[m.layers[at]] = layers[at]
	}
	return named
}

// flow is the value of a step if one operation came after the other, each shared by all units of a kind.
func (s *search) flow(layers []dag.LayerLowering) float64 {
	ns, joules := 0.0, 0.0
	for n := range s.nodes {
		node := &s.nodes[n]
		if node.fused >= 0 && s.network.Fused[node.fused].Applies(layers[node.layerAt]) != node.isFused {
			continue
		}
		t := s.tiledBy(node, node.Cut(layers[node.layerAt]))
		if s.priced(s.set, node, t) != nil {
			return math.Inf(1)
		}
		takes, work := s.flowOf(t)
		ns, joules = ns+takes, joules+work
	}
	e := Estimate{Seconds: ns * 1e-9, Joules: s.set.idle*ns*1e-9 + joules}
	return e.Value(s.aim)
}

// flowOf is the time of an operation's tiles on the device, or the devices of one kind together, that end them first, and their joules.
func (s *search) flowOf(t *tiled) (ns, joules float64) {
	ns = math.Inf(1)
	for d := range s.set.Devices {
		time, work, units, least := 0.0, 0.0, 0, 0.0
		for _, k := range t.kinds {
			p := s.set.rows[k.class][d]
			if p.ns < 0 {
				time = math.Inf(1)
				break
			}
			time, work, least = time+p.ns*float64(k.count), work+p.joules*float64(k.count), max(least, p.ns)
		}
		for e := range s.set.Devices {
			if s.set.Devices[e].Kind == s.set.Devices[d].Kind && !s.set.Devices[e].PlacedOnly {
				units += s.set.Devices[e].Count
			}
		}
		if takes := max(least, time/float64(max(units, 1))); takes < ns {
			ns, joules = takes, work
		}
	}
	return ns, joules
}
