package space

import (
	"reflect"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/platform"
)

// equalDevices numbers the devices of a machine: two have one number if exchanging them, with their memories,
// gives the same machine, and no task or buffer of the graph names one of them.
func equalDevices(p *platform.Platform, graph *dag.Graph) []int {
	like := make([]int, len(p.Devices))
	for d := range like {
		like[d] = d
		if named(graph, p, platform.DeviceID(d)) {
			continue
		}
		for before := range d {
			if like[before] == before && !named(graph, p, platform.DeviceID(before)) && exchangeable(p, platform.DeviceID(before), platform.DeviceID(d)) {
				like[d] = before
				break
			}
		}
	}
	return like
}

// named reports whether a graph says something of a device, its memory or a unit by name.
func named(g *dag.Graph, p *platform.Platform, id platform.DeviceID) bool {
	if g == nil {
		return false
	}
	d := &p.Devices[id]
	is := func(name string) bool {
		return name == d.Name || name == p.Memories[d.Memory].Name || strings.HasPrefix(name, d.Name+".")
	}
	return slices.ContainsFunc(g.Buffers, func(b dag.Buffer) bool { return is(b.Home) }) ||
		slices.ContainsFunc(g.Tasks, func(t dag.Task) bool {
			return t.Placement != nil && is(t.Placement.Device) || slices.ContainsFunc(t.Costs, func(c dag.Cost) bool {
				name, _, _ := dag.SplitCostKey(c.Key)
				return is(name)
			})
		})
}

// exchangeable reports whether two devices with memories of their own, or at one memory, may change
// places: everything that the machine says of one it says of the other.
func exchangeable(p *platform.Platform, a, b platform.DeviceID) bool {
	of := [2]platform.Device{p.Devices[a], p.Devices[b]}
	memory := [2]platform.MemoryID{of[0].Memory, of[1].Memory}
	for i := range of {
		of[i].Name, of[i].Memory, of[i].Ordinal = "", 0, 0
	}
	if !reflect.DeepEqual(of[0], of[1]) || !slices.EqualFunc(modelsOf(p, a), modelsOf(p, b), func(x, y platform.Model) bool { return reflect.DeepEqual(x, y) }) {
		return false
	}
	if memory[0] == memory[1] {
		return true
	}
	if p.IsHost(memory[0]) || p.IsHost(memory[1]) || wired(p, memory[0]) || wired(p, memory[1]) || shared(p, memory[0]) || shared(p, memory[1]) {
		return false
	}
	m := [2]platform.Memory{p.Memories[memory[0]], p.Memories[memory[1]]}
	m[0].Name, m[1].Name = "", ""
	return m[0] == m[1] && sameRoutes(p, memory)
}

// wired reports whether a memory is an end of a network's wire.
func wired(p *platform.Platform, m platform.MemoryID) bool {
	return slices.ContainsFunc(p.Wires, func(w platform.Wire) bool { return w.Ends[0] == platform.Port(m) || w.Ends[1] == platform.Port(m) })
}

// shared reports whether several devices are at a memory.
func shared(p *platform.Platform, m platform.MemoryID) bool {
	n := 0
	for d := range p.Devices {
		if p.Devices[d].Memory == m {
			n++
		}
	}
	return n > 1
}

// modelsOf are the models of a device by its name, without it.
func modelsOf(p *platform.Platform, id platform.DeviceID) (of []platform.Model) {
	name, _ := p.ModelNames(&p.Devices[id])
	for _, m := range p.Models {
		if m.Device == name {
			m.Device = ""
			of = append(of, m)
		}
	}
	return of
}

// sameRoutes reports whether exchanging two memories takes the links of every route to links that differ
// in nothing but names, one to one.
func sameRoutes(p *platform.Platform, memory [2]platform.MemoryID) bool {
	image := map[platform.LinkID]platform.LinkID{}
	moved := func(m platform.MemoryID) platform.MemoryID {
		switch m {
		case memory[0]:
			return memory[1]
		case memory[1]:
			return memory[0]
		}
		return m
	}
	for from := range p.Memories {
		for to := range p.Memories {
			a, okA := p.Route(platform.MemoryID(from), platform.MemoryID(to))
			b, okB := p.Route(moved(platform.MemoryID(from)), moved(platform.MemoryID(to)))
			if okA != okB || len(a) != len(b) {
				return false
			}
			for i := range a {
				if is, ok := image[a[i]]; ok && is != b[i] {
					return false
				}
				image[a[i]] = b[i]
			}
		}
	}
	back := map[platform.LinkID]bool{}
	for from, to := range image {
		x, y := p.Links[from], p.Links[to]
		x.Name, y.Name = "", ""
		if back[to] || !reflect.DeepEqual(x, y) {
			return false
		}
		back[to] = true
	}
	return true
}
