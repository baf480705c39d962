package main

import (
	"slices"

	"dahl/energy"
	"dahl/execute"
	"dahl/platform"
)

// thisMachine is the platform file, or the detected machine, with the devices and as
// many workers as asked for.
func thisMachine(o *options) (*platform.Platform, error) {
	if o.Workers < 0 {
		return nil, inputErrorf("--workers %d: want at least 0", o.Workers)
	}
	var p *platform.Platform
	var err error
	if o.Platform != "" {
		p, err = o.selected(loadPlatform(o.Platform))
	} else {
		p, err = o.detected()
	}
	if err != nil || o.Workers == 0 {
		return p, err
	}
	return withWorkers(p, o.Workers)
}

// detected is this machine: its processors, and its GPUs where --devices names what the
// processors are not.
func (o *options) detected() (*platform.Platform, error) {
	p, err := execute.Detect()
	if err != nil || o.Devices == "" {
		return p, err
	}
	alone, err := p.Select(o.Devices)
	if err == nil {
		return alone, nil
	}
	if gpuErr := execute.AddGPUs(p); gpuErr != nil {
		return nil, inputErrorf("--devices: %w; %w", err, gpuErr)
	}
	if meters := openGPUs(p); meters != nil {
		takePowers(p, meters)
		meters.close()
	}
	return o.selected(p, nil)
}

// takePowers takes the powers of GPUs from their meters: idle what they draw now, when
// nothing has begun, and busy the limit that is set. Both are guesses of what a
// training will draw.
func takePowers(p *platform.Platform, meters *gpuMeters) {
	for i := range p.Devices {
		d := &p.Devices[i]
		if g := meters.of(d); g != nil && g.GPU.PowerWatts > 0 && g.GPU.PowerWatts < g.GPU.PowerLimitWatts {
			d.IdleWatts, d.Busy, d.PowerSource = g.GPU.PowerWatts, platform.BusyPower{UnitWatts: g.GPU.PowerLimitWatts}, platform.Guess
		}
	}
}

// gpuMeters are the meters of the GPUs that the driver shows.
type gpuMeters struct {
	meters []energy.GPUMeters
	shown  []execute.GPU // as CUDA numbers them; nil where it does not say
}

// openGPUs opens the meters where a platform has devices of kind cuda; nil: it has
// none, or they have no meters, which is warned of.
func openGPUs(p *platform.Platform) *gpuMeters {
	if !slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return d.Kind == "cuda" }) {
		return nil
	}
	meters, err := energy.OpenGPUs()
	if err != nil {
		warn("joules of GPUs are modelled", err)
		return nil
	}
	m := &gpuMeters{meters: meters}
	if m.shown, err = execute.GPUs(); err != nil {
		warn("meters are taken for GPUs in the order of their buses", err)
	}
	return m
}

// of finds the meters of a device: those at the address of the GPU that CUDA gives its
// ordinal, since the two libraries may number GPUs differently; nil: none.
func (m *gpuMeters) of(d *platform.Device) *energy.GPUMeters {
	if d.Kind != "cuda" {
		return nil
	}
	at := d.Ordinal
	if at < len(m.shown) {
		at = slices.IndexFunc(m.meters, func(g energy.GPUMeters) bool { return g.GPU.PCIBus == m.shown[d.Ordinal].PCIBus })
	}
	if at < 0 || at >= len(m.meters) {
		return nil
	}
	return &m.meters[at]
}

func (m *gpuMeters) close() {
	if err := energy.CloseGPUs(); err != nil {
		warn("the meters of the GPUs were not closed", err)
	}
}
