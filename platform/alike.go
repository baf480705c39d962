package platform

import "reflect"

// Alike groups devices that differ in names, memories and ordinals alone, so that every estimate for one holds for all of its
// group. It returns the number of each device's group. A device with models of its own name is alike only devices of the same models.
func (p *Platform) Alike() (groups []int32) {
	named := map[string]bool{}
	for i := range p.Models {
		named[p.Models[i].Device] = true
	}
	units := make([]int, len(p.Memories))
	for d := range p.Devices {
		units[p.Devices[d].Memory] += p.Devices[d].Count
	}
	type like struct {
		name, kind string // as models have them
		bandwidth  float64
		units      int // in the memory
		device     Device
	}
	var firsts []like
	for _, d := range p.Devices {
		m := &p.Memories[d.Memory]
		is := like{bandwidth: m.BandwidthBytesPerSec, units: units[d.Memory]}
		if is.name, is.kind = p.ModelNames(&d); !named[is.name] {
			is.name = ""
		}
		d.Name, d.Memory, d.Ordinal = "", 0, 0
		is.device = d
		group := 0
		for group < len(firsts) && !reflect.DeepEqual(is, firsts[group]) {
			group++
		}
		if group == len(firsts) {
			firsts = append(firsts, is)
		}
		groups = append(groups, int32(group))
	}
	return groups
}
