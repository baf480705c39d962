package exact

import (
	"math/bits"
	"slices"

	"dahl/platform"
)

// Devices are twins if the model is the same with the two in each other's place, their memories too: they
// have the same units, costs, powers and ways. While neither is used, both give the same results for a task, so that the search
// in the model looks only at the first.

// addTwins lists for each device those before it that are its twins.
func (m *model) addTwins() {
	for b := range m.devices {
		for a := range b {
			if m.areTwins(platform.DeviceID(a), platform.DeviceID(b)) {
				m.devices[b].twins |= 1 << a
			}
		}
	}
}

// twin reports whether a device is unused and a twin before it, too.
func (d *dominance) twin(x *state, id platform.DeviceID) bool {
	return x.used&(1<<id) == 0 && d.devices[id].twins&^x.used != 0
}

// sortTwins sorts twins by the times when they are free. Then parts of plans look the same if they differ only by an exchange of twins.
func (d *dominance) sortTwins(x *state) {
	for i := range d.device {
		d.device[i] = platform.DeviceID(i)
	}
	for i := range d.memory {
		d.memory[i] = platform.MemoryID(i)
	}
	if d.groups > 0 {
		return // their workers would have to change places, too
	}
	for place := range d.device {
		for twins := d.devices[place].twins; twins != 0; {
			before := bits.Len64(twins) - 1
			twins &^= 1 << before
			if d.busy(x, d.device[before]) <= d.busy(x, d.device[place]) {
				break
			}
			a, b := d.devices[before].memory, d.devices[place].memory
			d.device[before], d.device[place] = d.device[place], d.device[before]
			d.memory[a], d.memory[b] = d.memory[b], d.memory[a]
			place = before
		}
	}
}

// busy adds up when the units of a device are free.
func (m *model) busy(x *state, id platform.DeviceID) (sum int64) {
	for _, w := range m.devices[id].workers {
		sum += x.free[w]
	}
	return sum
}

// twin knows of none: the order of two devices may decide the order of their copies on a link.
func (p *prefixes) twin(*state, platform.DeviceID) bool { return false }

func (m *model) areTwins(a, b platform.DeviceID) bool {
	p, of, as := m.platform, &m.devices[a], &m.devices[b]
	if len(of.workers) != len(as.workers) || of.dispatch != as.dispatch || of.switches != as.switches || of.switchTime != as.switchTime || of.switchJ != as.switchJ ||
		of.restJ != as.restJ || of.unusedJ != as.unusedJ || p.Devices[a].AtClock != p.Devices[b].AtClock {
		return false
	}
	for t := range m.tasks {
		if !slices.Equal(m.tasks[t].settingsOn(a), m.tasks[t].settingsOn(b)) {
			return false
		}
	}
	if of.memory == as.memory {
		return true
	}
	for i := range m.devices {
		if shares := m.devices[i].memory; platform.DeviceID(i) != a && shares == of.memory || platform.DeviceID(i) != b && shares == as.memory {
			return false
		}
	}
	return !slices.ContainsFunc(m.pieces, func(p piece) bool { return !m.sameWith(&p, of.memory, as.memory) })
}

// settingsOn are the settings of a task on a device, without its name.
func (t *task) settingsOn(id platform.DeviceID) (list []setting) {
	for _, s := range t.settings {
		if s.device == id {
			s.device = 0
			list = append(list, s)
		}
	}
	return list
}

// sameWith reports whether a piece moves the same with two memories in each other's place.
func (m *model) sameWith(p *piece, a, b platform.MemoryID) bool {
	with := func(m platform.MemoryID) platform.MemoryID {
		switch m {
		case a:
			return b
		case b:
			return a
		}
		return m
	}
	if p.writer < 0 && with(p.home) != p.home {
		return false
	}
	n, host := platform.MemoryID(len(p.ways)), m.platform.HostMemory()
	for from := range n {
		for to := range n {
			staged := m.problem.Ways[from][to].PassesHost
			if p.ways[from][to] != p.ways[with(from)][with(to)] || p.hops[from][to] != p.hops[with(from)][with(to)] ||
				staged != m.problem.Ways[with(from)][with(to)].PassesHost || staged && with(host) != host {
				return false
			}
		}
	}
	return true
}
