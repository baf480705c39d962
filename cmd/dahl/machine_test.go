package main

import (
	"strings"
	"testing"

	"dahl/energy"
	"dahl/execute"
	"dahl/platform"
)

// CUDA puts the fastest first, the management library goes by the bus: the meters of a
// device are those at its address.
func TestMetersOfDevice(t *testing.T) {
	bus := func(address string) energy.GPUMeters { return energy.GPUMeters{GPU: energy.GPU{PCIBus: address}} }
	m := &gpuMeters{meters: []energy.GPUMeters{bus("0000:17:00.0"), bus("0000:3d:00.0"), bus("0000:41:00.0")},
		shown: []execute.GPU{{PCIBus: "0000:41:00.0"}, {PCIBus: "0000:17:00.0"}, {PCIBus: "0000:99:00.0"}}}
	for _, c := range []struct {
		device platform.Device
		want   int // index of the meters; -1: none
	}{
		{platform.Device{Kind: "cuda", Ordinal: 0}, 2},
		{platform.Device{Kind: "cuda", Ordinal: 1}, 0},
		{platform.Device{Kind: "cuda", Ordinal: 2}, -1}, // hidden from the library
		{platform.Device{Kind: "cuda", Ordinal: 7}, -1},
		{platform.Device{Kind: "emulated"}, -1},
		{platform.Device{Kind: "cpu"}, -1},
	} {
		got := m.of(&c.device)
		if (got == nil) != (c.want < 0) || got != nil && got != &m.meters[c.want] {
			t.Errorf("%s %d: meters %+v, want number %d", c.device.Kind, c.device.Ordinal, got, c.want)
		}
	}
	m.shown = nil // CUDA does not say: in the order of the buses
	if got := m.of(&platform.Device{Kind: "cuda", Ordinal: 1}); got != &m.meters[1] {
		t.Errorf("without addresses: %+v", got)
	}
}

// A machine is detected with its processors; for what they are not it says what there is.
func TestDetectedDevices(t *testing.T) {
	p, err := thisMachine(&options{Devices: "cpu:1"})
	if err != nil || len(p.Workers) != 1 {
		t.Errorf("one core: %+v, %v", p, err)
	}
	if _, err = thisMachine(&options{Devices: "cpu,fpga"}); err == nil || !strings.Contains(err.Error(), `no device or kind "fpga"; it has cpu`) || strings.Contains(err.Error(), "\n") {
		t.Errorf("an unknown kind: %v", err)
	}
}

// --workers counts cores, wherever a platform file has its processor.
func TestWorkersAreCores(t *testing.T) {
	p := &platform.Platform{Name: "gpu first", Memories: []platform.Memory{{Name: "vram"}, {Name: "ram"}},
		Devices: []platform.Device{{Name: "gpu", Kind: "emulated", Count: 1, Unreachable: true, PowerSource: platform.Guess},
			{Name: "cpu", Kind: "cpu", Count: 1, Memory: 1, PowerSource: platform.Guess}}}
	q, err := withWorkers(p, 3)
	if err != nil || q.Devices[0].Count != 1 || q.Devices[1].Count != 3 || len(q.Workers) != 4 {
		t.Errorf("%+v, %v", q, err)
	}
	if p.Devices[1].Count != 1 {
		t.Error("the platform that was given has changed")
	}
	// Of two cores that draw 0.5 W each idle, 6 W with one busy and 10 W with both, and a host of 10 W: one core that
	// draws 5.5 W busy, beside a host with an idle one of 10.5 W.
	if p, err = loadPlatform("emulated"); err != nil {
		t.Fatal(err)
	}
	if q, err = withWorkers(p, 1); err != nil || len(q.Workers) != 2 || q.BusyTotal(0, 1) != 5.5 || q.HostPower.Value != 10.5 {
		t.Errorf("one of two cores: %+v, %v", q, err)
	}
}

// The powers of GPUs come from their meters where those are plausible.
func TestGPUPowers(t *testing.T) {
	device := func(ordinal int) platform.Device {
		return platform.Device{Kind: "cuda", Ordinal: ordinal, IdleWatts: 1, Busy: platform.BusyPower{UnitWatts: 2}, PowerSource: platform.Guess}
	}
	p := &platform.Platform{Devices: []platform.Device{{Kind: "cpu", IdleWatts: 3}, device(0), device(1)}}
	m := &gpuMeters{meters: []energy.GPUMeters{{GPU: energy.GPU{PowerWatts: 70, PowerLimitWatts: 700}}, {GPU: energy.GPU{PowerWatts: 70}}}}
	takePowers(p, m)
	if d := p.Devices[1]; d.IdleWatts != 70 || d.Busy.UnitWatts != 700 || d.PowerSource != platform.Guess {
		t.Errorf("with both powers: %+v", d)
	}
	if p.Devices[2].IdleWatts != 1 || p.Devices[0].IdleWatts != 3 {
		t.Errorf("devices whose meters tell no limit were changed: %+v", p.Devices)
	}
}
