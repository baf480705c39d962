package layerwise

import (
	"math"

	"dahl/dag"
)

// Layer is the work of a layer in a step.
type Layer struct {
	Name string
	// Seconds and Joules, above idle, count all its tiles one after the other, by device of a set. Seconds are infinite where it cannot run.
	Seconds, Joules []float64
	Exchanged       float64 // bytes that the layers before it and the others exchange
}

// Layers lists the work of a step on a set of devices by layer, in their order, with the samples of each in some parts, and the watts of the set without work. Tasks
// that the network places are left out.
func (m *Model) Layers(devices string, parts int) (layers []Layer, idle float64, err error) {
	s, err := m.setOf(devices)
	if err != nil {
		return nil, 0, err
	}
	w := m.take()
	defer m.give(w)
	for _, name := range m.layers {
		layers = append(layers, Layer{name, make([]float64, len(s.Devices)), make([]float64, len(s.Devices)), 0})
	}
	lowered := m.layersOf(uniform{samples: parts, gradients: 1, sums: true})
	for n := range m.nodes {
		node := &m.nodes[n]
		if node.Task.Placement != nil || !m.runs(node, lowered) {
			continue
		}
		t := w.tiledUnder(int32(n), lowered[node.layerAt])
		c, err := m.costsOf(s, node, t)
		if err != nil {
			return nil, 0, err
		}
		of := &layers[node.layerAt]
		for d, ns := range c.ns {
			if of.Joules[d] += c.joules[d]; ns < 0 {
				ns = math.Inf(1)
			}
			of.Seconds[d] += (float64(t.tiles)*ns + float64(t.regions())*c.merge[d]) * 1e-9
		}
	}
	m.exchange(layers, lowered)
	return layers, s.idle, nil
}

// exchange finds the bytes between layers. A result counts once at each place between its layer and those that read it.
func (m *Model) exchange(layers []Layer, lowered []dag.LayerLowering) {
	type span struct{ from, to int }
	spans := make([]span, len(m.storages))
	bytes := make([]int64, len(m.storages))
	for i := range m.edges {
		e := &m.edges[i]
		from, to := &m.nodes[e.from], &m.nodes[e.to]
		if !e.data || e.carried || !m.runs(from, lowered) || !m.runs(to, lowered) {
			continue
		}
		of := &spans[e.fromUse.storage]
		if bytes[e.fromUse.storage] == 0 {
			*of = span{from.layerAt, from.layerAt}
		}
		bytes[e.fromUse.storage] = max(bytes[e.fromUse.storage], e.bytes)
		of.from, of.to = min(of.from, from.layerAt, to.layerAt), max(of.to, from.layerAt, to.layerAt)
	}
	for s, of := range spans {
		for layer := of.from + 1; layer <= of.to && bytes[s] > 0; layer++ {
			layers[layer].Exchanged += float64(bytes[s])
		}
	}
}

// runs reports whether a lowering has an operation, and no fused one in its place.
func (m *Model) runs(n *node, layers []dag.LayerLowering) bool {
	return n.fused < 0 || m.network.Fused[n.fused].Applies(layers[n.layerAt]) == n.isFused
}
