package platform

import (
	"fmt"
	"slices"
	"strconv"
)

// Complete makes a platform that was built in code ready for use. It derives the workers from the
// devices and checks everything. Load and Parse have done so already. Call
// it again after a change.
func (p *Platform) Complete() error {
	if f := p.complete(); f != nil {
		return fmt.Errorf("platform %q: %w", p.Name, f)
	}
	return nil
}

func (p *Platform) complete() *fault {
	p.ways = nil
	p.numberDevices()
	if f := p.checkParts(); f != nil {
		return f
	}
	p.Workers = workersOf(p.Devices)
	p.ways = newWays(p)
	return nil
}

// numberDevices gives ordinals to the devices that a driver numbers, if none of them has one.
func (p *Platform) numberDevices() {
	if slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Ordinal != 0 }) {
		return
	}
	next := map[driverNumber]int{}
	for i := range p.Devices {
		if d := &p.Devices[i]; d.kind().Numbered && uint(d.Memory) < uint(len(p.Memories)) {
			of := driverNumber{node: p.NodeOf(d.Memory), kind: d.Kind}
			d.Ordinal = next[of]
			next[of]++
		}
	}
}

// workersOf names the units: cpu.0 … for a device with several, else the device's own name.
func workersOf(devices []Device) []Worker {
	var ws []Worker
	for i := range devices {
		d := &devices[i]
		if d.Count == 1 {
			ws = append(ws, Worker{Name: d.Name, Device: DeviceID(i)})
			continue
		}
		for u := range d.Count {
			ws = append(ws, Worker{Name: d.Name + "." + strconv.Itoa(u), Device: DeviceID(i), Index: u})
		}
	}
	return ws
}

// MemoryByName finds a memory.
func (p *Platform) MemoryByName(name string) (MemoryID, bool) {
	i := slices.IndexFunc(p.Memories, func(m Memory) bool { return m.Name == name })
	return MemoryID(i), i >= 0
}

// DeviceByName finds a device.
func (p *Platform) DeviceByName(name string) (DeviceID, bool) {
	i := slices.IndexFunc(p.Devices, func(d Device) bool { return d.Name == name })
	return DeviceID(i), i >= 0
}

// WorkerByName finds a worker.
func (p *Platform) WorkerByName(name string) (WorkerID, bool) {
	i := slices.IndexFunc(p.Workers, func(w Worker) bool { return w.Name == name })
	return WorkerID(i), i >= 0
}

// MemoryOf is the memory with the operands of a worker.
func (p *Platform) MemoryOf(w WorkerID) MemoryID { return p.Devices[p.Workers[w].Device].Memory }

// CopyEngines is how many copies the devices of a memory carry into it and out of it at
// once. Zero means not limited.
func (p *Platform) CopyEngines(m MemoryID) (in, out int) {
	for i := range p.Devices {
		if d := &p.Devices[i]; d.Memory == m {
			in, out = max(in, d.CopyEnginesIn), max(out, d.CopyEnginesOut)
		}
	}
	return in, out
}

// EnginesTaken says which of the limited copy engines a copy takes: one into its destination and
// one out of its source. A host's memory has no engines. A copy between two devices that
// does not pass a host's memory takes only the engine of its destination, if this is limited.
func (p *Platform) EnginesTaken(from, to MemoryID) (in, out bool) {
	way := p.path(from, to)
	return way.engineIn, way.engineOut
}

func (p *Platform) enginesTaken(from, to MemoryID, passesHost bool) (in, out bool) {
	if !p.IsHost(to) {
		limit, _ := p.CopyEngines(to)
		in = limit > 0
	}
	if !p.IsHost(from) {
		_, limit := p.CopyEngines(from)
		out = limit > 0 && (!in || passesHost)
	}
	return in, out
}

// Spread reports whether tasks run in several memories.
func (p *Platform) Spread() bool {
	return slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Memory != p.Devices[0].Memory })
}
