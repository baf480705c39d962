package hardware

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"dahl/execute/host"
	"dahl/kernels/simd"
	"dahl/platform"
)

// guessFlopsPerSec is the speed of float32 kernels on one core of a recent machine, on
// the low side, by the vector instructions it has. Calibrate measures it.
var guessFlopsPerSec = [...]float64{simd.AVX512: 100e9, simd.AVX2: 50e9, simd.Go: 4e9}

// Detect cannot read these numbers from the system.
const (
	guessBandwidth = 10e9
	guessDispatch  = 300 * time.Nanosecond
	guessHostWatts = 30
	guessIdleWatts = 1.5
	guessBusyWatts = 8
)

// Detect describes this machine: its memory, and one cpu device with a unit for each physical
// core that the process may use. It reads caches and sizes from the system where it can. Powers
// and speeds are guesses and marked as such. The name ends in the level of vector instructions.
func Detect() (*platform.Platform, error) {
	l2, l3 := host.Caches(host.CPUs()[0])
	level := simd.Widest()
	speed := guessFlopsPerSec[level]
	p := &platform.Platform{
		Name:      cmp.Or(host.CPUModel(), runtime.GOARCH) + " " + level.String(),
		HostPower: platform.Quantity{Value: guessHostWatts, Source: platform.Guess},
		Memories:  []platform.Memory{{Name: "ram", CapacityBytes: host.MemoryBytes(), BandwidthBytesPerSec: guessBandwidth}},
		Devices: []platform.Device{{
			Name: platform.CPU, Kind: platform.CPU, Count: host.Cores(),
			FlopsPerSec: map[string]float64{"float32": speed, "float64": speed / 2},
			L2Bytes:     l2, L3Bytes: l3,
			Dispatch:  guessDispatch,
			IdleWatts: guessIdleWatts, Busy: platform.BusyPower{UnitWatts: guessBusyWatts}, PowerSource: platform.Guess,
		}},
	}
	if err := p.Complete(); err != nil {
		return nil, fmt.Errorf("detect this machine: %w", err)
	}
	return p, nil
}

// CPUsOf lists the CPUs of the cores on which the units of a processor run, siblings of a core
// included, ascending.
func CPUsOf(p *platform.Platform, d platform.DeviceID) (all []int) {
	cpus, cores := host.CPUs(), 0
	for _, w := range p.Workers {
		if !p.Devices[w.Device].IsProcessor() {
			continue
		}
		if cpu := cpus[cores%len(cpus)]; w.Device == d {
			all = append(append(all, cpu), host.Siblings(cpu)...)
		}
		cores++
	}
	slices.Sort(all)
	return slices.Compact(all)
}
