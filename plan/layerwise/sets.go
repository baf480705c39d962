package layerwise

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
)

// set is a set of devices with the costs of tiles there.
type set struct {
	*platform.Platform
	rows  [][]price // by class of cost and device; nil is not known yet
	idle  float64   // watts of everything without work
	watts []watts   // by device
	ways  []way     // by pair of memories
	units int
}

// watts are the watts of busy units of a device above idle: n of them draw n times each, and first once.
type watts struct{ first, each float64 }

// way is the way between two memories.
type way struct {
	latency, nsPerByte, joulesPerByte float64
	engine                            bool // a transfer occupies an engine at one end all the time
}

// price is the cost of a tile on a device.
type price struct {
	ns     float64 // with its dispatch; below zero it cannot run there
	joules float64 // above idle, without what the first busy unit draws more
	busy   float64 // ns without its dispatch
}

// setOf is a set of devices by its list.
func (m *Model) setOf(devices string) (*set, error) {
	if s := m.sets[devices]; s != nil {
		return s, nil
	}
	p, err := m.network.Machine(devices)
	if err != nil {
		return nil, fmt.Errorf("layer-wise model: %w", err)
	}
	s := &set{Platform: p, idle: p.HostPower.Value}
	for d := range p.Devices {
		device := &p.Devices[d]
		s.idle += device.Watts(device.AtClock, 0)
		first, each := device.BusyWatts(device.AtClock)
		s.watts = append(s.watts, watts{first, each})
		if !device.PlacedOnly {
			s.units += device.Count
		}
	}
	for i := range p.Links {
		s.idle += p.Links[i].IdleWatts
	}
	limited := make([]bool, len(p.Memories))
	for d := range p.Devices {
		device := &p.Devices[d]
		limited[device.Memory] = limited[device.Memory] || device.CopyEnginesIn > 0 || device.CopyEnginesOut > 0
	}
	for from := range p.Memories {
		for to := range p.Memories {
			a, b := platform.MemoryID(from), platform.MemoryID(to)
			latency := float64(p.RouteTime(a, b, 0))
			s.ways = append(s.ways, way{latency, (float64(p.RouteTime(a, b, 1<<30)) - latency) / (1 << 30), p.RouteJoulesPerByte(a, b), limited[from] || limited[to]})
		}
	}
	m.sets[devices] = s
	return s, nil
}

// priced makes sure that the prices of an operation's tiles are known.
func (m *Model) priced(s *set, n *node, t *tiled) error {
	if missing := len(m.tasks) - len(s.rows); missing > 0 {
		s.rows = append(s.rows, make([][]price, missing)...)
	}
	var tasks []dag.Task
	var classes []int32
	for _, k := range t.kinds {
		if s.rows[k.class] == nil {
			tasks, classes = append(tasks, m.tasks[k.class]), append(classes, k.class)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	all, err := m.network.Price(n.Graph, tasks, s.Platform)
	if err != nil {
		return fmt.Errorf("layer-wise model: %w", err)
	}
	for i, costs := range all {
		row := make([]price, len(costs))
		for d := range costs {
			ns := float64(costs[d].Duration)
			if row[d] = (price{ns: -1}); ns < 0 {
				continue
			}
			row[d] = price{ns: ns + float64(s.Devices[d].Dispatch), busy: ns, joules: s.watts[d].each * ns * 1e-9}
			if costs[d].Joules > 0 {
				row[d].joules = costs[d].Joules
			}
		}
		s.rows[classes[i]] = row
	}
	return nil
}
