package train

import (
	"fmt"
	"io/fs"
	"testing"

	"dahl/energy/meter"
	"dahl/execute/driver"
	"dahl/platform"
)

// CUDA puts the fastest first, the management library goes by the bus: the meters of a
// device are those at its address.
func TestMetersOfDevice(t *testing.T) {
	bus := func(address string) meter.GPUMeters { return meter.GPUMeters{GPU: meter.GPU{PCIBus: address}} }
	boards := Boards{Meters: []meter.GPUMeters{bus("0000:17:00.0"), bus("0000:3d:00.0"), bus("0000:41:00.0")},
		Shown: []driver.GPU{{PCIBus: "0000:41:00.0"}, {PCIBus: "0000:17:00.0"}, {PCIBus: "0000:99:00.0"}}}
	m := GPUMeters{platform.CUDA: boards}
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
		got := m.Of(&c.device)
		if (got == nil) != (c.want < 0) || got != nil && got != &boards.Meters[c.want] {
			t.Errorf("%s %d: meters %+v, want number %d", c.device.Kind, c.device.Ordinal, got, c.want)
		}
	}
	boards.Shown = nil // CUDA does not say: in the order of the buses
	if got := boards.At(1); got != &boards.Meters[1] {
		t.Errorf("without addresses: %+v", got)
	}
}

// A board that may not be opened has no address, so that nobody knows which device it is. It is named by its number, and
// no device lacks its joules. Without addresses from CUDA it is the device of its number.
func TestDeniedBoards(t *testing.T) {
	denied := fmt.Errorf("GPU 0: open it: %w", fs.ErrPermission)
	boards := Boards{Meters: []meter.GPUMeters{{Err: denied}, {GPU: meter.GPU{PCIBus: "0000:3d:00.0"}}}, Shown: []driver.GPU{{PCIBus: "0000:3d:00.0"}}}
	m := GPUMeters{platform.CUDA: boards}
	unknown := m.unknown()
	if len(unknown) != 1 || unknown[0].Of != "GPU 0" || !unknown[0].Unused || unknown[0].Err != denied {
		t.Errorf("%+v", unknown)
	}
	if g := m.Of(&platform.Device{Kind: "cuda"}); g != &boards.Meters[1] {
		t.Errorf("the device has %+v", g)
	}
	boards.Shown = nil
	m[platform.CUDA] = boards
	if g := m.Of(&platform.Device{Kind: "cuda"}); g.Err != denied || m.unknown() != nil {
		t.Errorf("without addresses the device has %+v, and besides there are %+v", g, m.unknown())
	}
}

// The powers of GPUs come from their meters where those are plausible.
func TestGPUPowers(t *testing.T) {
	device := func(ordinal int) platform.Device {
		return platform.Device{Kind: "cuda", Ordinal: ordinal, IdleWatts: 1, Busy: platform.BusyPower{UnitWatts: 2}, PowerSource: platform.Guess}
	}
	p := &platform.Platform{Devices: []platform.Device{{Kind: "cpu", IdleWatts: 3}, device(0), device(1)}}
	m := GPUMeters{platform.CUDA: {Meters: []meter.GPUMeters{{GPU: meter.GPU{PowerWatts: 70, PowerLimitWatts: 700}}, {GPU: meter.GPU{PowerWatts: 70}}}}}
	m.putPowers(p)
	if d := p.Devices[1]; d.IdleWatts != 70 || d.Busy.UnitWatts != 700 || d.PowerSource != platform.Guess {
		t.Errorf("with both powers: %+v", d)
	}
	if p.Devices[2].IdleWatts != 1 || p.Devices[0].IdleWatts != 3 {
		t.Errorf("devices whose meters tell no limit were changed: %+v", p.Devices)
	}
}
