// Package testmachine builds the machines of tests. A byte takes a nanosecond from one memory to another.
package testmachine

import (
	"fmt"
	"testing"
	"time"

	"dahl/must"
	"dahl/platform"
)

// CPU is a processor named "cpu". The first number of watts is the draw of the idle processor, the second one the draw of a
// busy unit. Without watts both are zero.
func CPU(units int, watts ...float64) platform.Device {
	return device("cpu", platform.CPU, units, watts)
}

// GPU is an emulated GPU of one unit, with watts as in [CPU].
func GPU(name string, watts ...float64) platform.Device {
	return device(name, platform.Emulated, 1, watts)
}

func device(name, kind string, units int, watts []float64) platform.Device {
	d := platform.Device{Name: name, Kind: kind, Count: units, PowerSource: platform.Guess}
	if len(watts) > 0 {
		d.IdleWatts, d.Busy.UnitWatts = watts[0], watts[1]
	}
	return d
}

// Shared is a machine with one memory, "ram", for all devices.
func Shared(t testing.TB, devices ...platform.Device) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "shared", Memories: []platform.Memory{memory("ram")}, Devices: devices}
	must.Do(t, p.Complete())
	return p
}

// Node is a machine of processors at the memory "ram" and other devices. Each of these has a memory
// named after it, as in "gpu.mem". One shared link, "bus", joins all memories to "ram".
func Node(t testing.TB, devices ...platform.Device) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "node", Memories: []platform.Memory{memory("ram")}, Devices: devices,
		Links: []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9, PowerSource: platform.Guess}}}
	for i := range devices {
		if d := &devices[i]; !d.IsProcessor() {
			d.Memory = platform.MemoryID(len(p.Memories))
			p.Memories = append(p.Memories, memory(d.Name+".mem"))
			p.Routes = append(p.Routes, platform.Route{From: 0, To: d.Memory, Links: []platform.LinkID{0}})
		}
	}
	must.Do(t, p.Complete())
	return p
}

// Watts is a power that was guessed.
func Watts(watts float64) platform.Quantity {
	return platform.Quantity{Value: watts, Source: platform.Guess}
}

func memory(name string) platform.Memory {
	return platform.Memory{Name: name, BandwidthBytesPerSec: 1e9}
}

// Executable is a machine of cores at a memory without a limit, and of emulated GPUs fast enough for
// tests that execute. Each GPU has a memory of 1 MiB, and a link of its own.
func Executable(t testing.TB, cores, gpus int) *platform.Platform {
	t.Helper()
	speed := func(s float64) map[string]float64 { return map[string]float64{"float32": s, "float64": s} }
	p := &platform.Platform{Name: "test", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e10}},
		Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU, Count: cores, Dispatch: 100, FlopsPerSec: speed(1e9)}}}
	for i := range gpus {
		name, m := fmt.Sprint("gpu", i), platform.MemoryID(len(p.Memories))
		p.Memories = append(p.Memories, platform.Memory{Name: name + ".mem", BandwidthBytesPerSec: 1e11, CapacityBytes: 1 << 20})
		p.Devices = append(p.Devices, platform.Device{Name: name, Kind: platform.Emulated, Count: 1, Memory: m, Dispatch: 100,
			FlopsPerSec: speed(1e10), CopyEnginesIn: 1, CopyEnginesOut: 1})
		p.Links = append(p.Links, platform.Link{Name: name + ".link", BandwidthBytesPerSec: 1e9, Latency: time.Microsecond, Sharing: platform.Duplex})
		p.Routes = append(p.Routes, platform.Route{From: 0, To: m, Links: []platform.LinkID{platform.LinkID(i)}})
	}
	must.Do(t, p.Complete())
	return p
}
