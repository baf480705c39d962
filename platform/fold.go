package platform

import (
	"fmt"
	"maps"
	"slices"

	"dahl/naming"
)

// Fold is the platform on which some devices stand for n equal ones each: the device of a name and those behind it in the order of the platform. Such a device draws the watts of all
// of them. The others are gone with their memories, and their links have nothing to do. It fails where there are fewer devices, and where they are unlike.
func (p *Platform) Fold(firsts []string, n int) (*Platform, error) {
	q := *p
	q.Devices = slices.Clone(p.Devices)
	gone := map[DeviceID]bool{}
	for _, first := range firsts {
		at, ok := q.DeviceByName(first)
		if !ok {
			return nil, naming.Unknown("device", first, p.deviceNames())
		}
		d := &q.Devices[at]
		for other := at + 1; other < at+DeviceID(n); other++ {
			switch {
			case int(other) >= len(q.Devices) || slices.Contains(firsts, q.Devices[other].Name):
				return nil, fmt.Errorf("device %q stands for %d equal ones, and %d are there", first, n, other-at)
			case !p.alike(at, other):
				return nil, fmt.Errorf("device %q stands for %d equal ones, and %q is unlike it", first, n, q.Devices[other].Name)
			}
			gone[other] = true
		}
		d.timesPower(float64(n))
	}
	var left []Device
	for i := range q.Devices {
		if !gone[DeviceID(i)] {
			left = append(left, q.Devices[i])
		}
	}
	q.Devices = left
	q.keepMemories()
	return &q, q.Complete()
}

// keepMemories leaves the memories of devices and hosts, with the routes and wires between these.
func (p *Platform) keepMemories() {
	at, left := make([]MemoryID, len(p.Memories)), []Memory(nil)
	for m := range p.Memories {
		used := slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Memory == MemoryID(m) })
		if at[m] = -1; used || p.IsHost(MemoryID(m)) {
			at[m], left = MemoryID(len(left)), append(left, p.Memories[m])
		}
	}
	var routes []Route
	for _, r := range p.Routes {
		if r.From, r.To = at[r.From], at[r.To]; r.From >= 0 && r.To >= 0 {
			routes = append(routes, r)
		}
	}
	var wires []Wire
	for _, w := range p.Wires {
		there := true
		for i, end := range w.Ends {
			if end >= 0 {
				w.Ends[i] = Port(at[end])
				there = there && at[end] >= 0
			}
		}
		if there {
			wires = append(wires, w)
		}
	}
	for i := range p.Devices {
		p.Devices[i].Memory = at[p.Devices[i].Memory]
	}
	p.Memories, p.Routes, p.Wires = left, routes, wires
}

// alike reports whether two devices of one unit compute and draw the same.
func (p *Platform) alike(a, b DeviceID) bool {
	x, y := p.Devices[a], p.Devices[b]
	return x.Kind == y.Kind && x.Count == 1 && y.Count == 1 && maps.Equal(x.FlopsPerSec, y.FlopsPerSec) && x.Dispatch == y.Dispatch &&
		x.IdleWatts == y.IdleWatts && x.Busy == y.Busy && x.CapWatts == y.CapWatts && slices.Equal(x.Clocks, y.Clocks) &&
		p.Memories[x.Memory].CapacityBytes == p.Memories[y.Memory].CapacityBytes && p.Memories[x.Memory].BandwidthBytesPerSec == p.Memories[y.Memory].BandwidthBytesPerSec
}

// timesPower multiplies all powers of a device.
func (d *Device) timesPower(n float64) {
	times := func(b *BusyPower) {
		b.UnitWatts, b.FirstWatts, b.AllWatts = b.UnitWatts*n, b.FirstWatts*n, b.AllWatts*n
	}
	d.IdleWatts, d.CapWatts, d.OffWatts = d.IdleWatts*n, d.CapWatts*n, d.OffWatts*n
	times(&d.Busy)
	d.Clocks, d.Sleeps = slices.Clone(d.Clocks), slices.Clone(d.Sleeps)
	for i := range d.Clocks {
		d.Clocks[i].Idle *= n
		times(&d.Clocks[i].Busy)
	}
	for i := range d.Sleeps {
		d.Sleeps[i].Watts *= n
	}
}
