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
	return o.withWorkers(o.selected(o.machine(false)))
}

// wholeMachine is thisMachine with all its devices, whichever are asked for.
func wholeMachine(o *options) (*platform.Platform, error) {
	return o.withWorkers(o.machine(true))
}

// withWorkers is a platform with as many workers as asked for.
func (o *options) withWorkers(p *platform.Platform, err error) (*platform.Platform, error) {
	if err := checkNotNegative("workers", o.Workers); err != nil {
		return nil, err
	}
	if err != nil || o.Workers == 0 {
		return p, err
	}
	return withWorkers(p, o.Workers)
}

// machine is the platform file, or this machine: its processors, and its GPUs where
// --devices names what the processors are not, and with gpus also where it names nothing
// and there are some.
func (o *options) machine(gpus bool) (*platform.Platform, error) {
	if o.Platform != "" {
		return loadPlatform(o.Platform)
	}
	p, err := execute.Detect()
	if err != nil {
		return nil, err
	}
	if o.Devices == "" {
		if _, none := execute.GPUs(); !gpus || none != nil {
			return p, nil
		}
		return p, addGPUs(p)
	}
	if _, err := p.Select(o.Devices); err != nil {
		if gpuErr := addGPUs(p); gpuErr != nil {
			return nil, inputErrorf("--devices: %w; %w", err, gpuErr)
		}
	}
	return p, nil
}

// addGPUs adds the GPUs of this machine with the powers that their meters show. It fails
// where there is none, and says why.
func addGPUs(p *platform.Platform) error {
	if err := execute.AddGPUs(p); err != nil {
		return err
	}
	if meters := openGPUs(p); meters != nil {
		takePowers(p, meters)
		meters.close()
	}
	return nil
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
