package schedule

import (
	"reflect"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// columns are the devices on which every task of a graph costs the same, as far as it may run there at all.
type columns struct {
	of     []int32             // by device
	firsts []platform.DeviceID // by column: its first device
	named  map[string]platform.DeviceID
}

// newColumns finds devices that are alike in all but their names, memories and ordinals. A device with a model or
// a given cost of its own name is like no other. So is one with other variants fixed by a plan.
func newColumns(g *dag.Graph, p *platform.Platform, opt costOptions) *columns {
	own := map[string]bool{}
	for i := range p.Models {
		own[p.Models[i].Device] = true
	}
	for t := range g.Tasks {
		for _, cost := range g.Tasks[t].Costs {
			name, _, _ := dag.SplitCostKey(cost.Key)
			own[name] = true
		}
	}
	units := make([]int, len(p.Memories))
	for d := range p.Devices {
		units[p.Devices[d].Memory] += p.Devices[d].Count
	}
	c := &columns{of: make([]int32, len(p.Devices)), named: map[string]platform.DeviceID{}}
	alike := func(a, b platform.DeviceID) bool {
		x, y := p.Devices[a], p.Devices[b]
		if own[x.Name] || own[y.Name] || byCaller(p, a) != byCaller(p, b) || units[x.Memory] != units[y.Memory] || p.Memories[x.Memory].BandwidthBytesPerSec != p.Memories[y.Memory].BandwidthBytesPerSec ||
			!reflect.DeepEqual(opt.variants[x.Name], opt.variants[y.Name]) {
			return false
		}
		x.Name, x.Memory, x.Ordinal = y.Name, y.Memory, y.Ordinal
		return reflect.DeepEqual(x, y)
	}
	for d := range platform.DeviceID(len(p.Devices)) {
		k := slices.IndexFunc(c.firsts, func(first platform.DeviceID) bool { return alike(first, d) })
		if k < 0 {
			k = len(c.firsts)
			c.firsts = append(c.firsts, d)
		}
		c.of[d] = int32(k)
		c.named[p.Devices[d].Name] = d
	}
	for w := range p.Workers {
		c.named[p.Workers[w].Name] = p.Workers[w].Device
	}
	for d := range p.Devices { // a kind may have several
		delete(c.named, p.Devices[d].Kind)
	}
	return c
}

// only is the one device that a placement names; -1 where it names several or none.
func (c *columns) only(pl *dag.Placement) platform.DeviceID {
	if pl == nil {
		return -1
	}
	if d, ok := c.named[pl.Device]; ok {
		return d
	}
	return -1
}
