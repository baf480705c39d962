package schedule

import (
	"maps"
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

// newColumns finds devices that are alike. A device with a given cost
// of its own name, or with other variants by a plan, is like no other.
func newColumns(g *dag.Graph, p *platform.Platform, opt costOptions) *columns {
	own := map[string]bool{}
	for t := range g.Tasks {
		for _, cost := range g.Tasks[t].Costs {
			name, _, _ := dag.SplitCostKey(cost.Key)
			own[name] = true
		}
	}
	c := &columns{of: make([]int32, len(p.Devices)), named: map[string]platform.DeviceID{}}
	groups := p.Alike()
	for d := range platform.DeviceID(len(p.Devices)) {
		name := p.Devices[d].Name
		k := slices.IndexFunc(c.firsts, func(first platform.DeviceID) bool {
			other := p.Devices[first].Name
			return groups[first] == groups[d] && byCaller(p, first) == byCaller(p, d) && !own[other] && !own[name] && maps.Equal(opt.variants[other], opt.variants[name])
		})
		if k < 0 {
			k = len(c.firsts)
			c.firsts = append(c.firsts, d)
		}
		c.of[d] = int32(k)
		c.named[name] = d
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
