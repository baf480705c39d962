package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"dahl/energy"
	"dahl/energy/meter"
	"dahl/execute/calibrate"
	"dahl/execute/driver"
	"dahl/execute/hardware"
	"dahl/naming"
	"dahl/platform"
)

// Meters count the joules of a platform's devices while a training runs. Without a meter
// they do nothing.
type Meters struct {
	States []DeviceState // of the devices that have meters, as they were at the start

	recorder *meter.Recorder
	gpus     GPUMeters
}

// DeviceState is the state of a device as its driver reports it during use.
type DeviceState struct {
	Device string `json:"device"`
	meter.GPU
}

// StartMeters opens the meters of this machine that may be read, of its processors and
// of the platform's GPUs, and begins to read them.
func StartMeters(p *platform.Platform) *Meters { return StartMetersAt(meter.PowercapRoot, p) }

// StartMetersAt is [StartMeters] with the counters of processors that are under a directory.
func StartMetersAt(powercap string, p *platform.Platform) *Meters {
	m := &Meters{gpus: OpenGPUs(p)}
	var metered []meter.Metered
	rapl, err := meter.OpenRAPL(powercap)
	if !errors.Is(err, meter.ErrNoCounter) {
		metered = append(metered, meter.Metered{Of: energy.ProcessorsMeter, Meter: rapl, Err: err, Celsius: meter.PackageSensor(meter.ThermalRoot)})
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		if _, metersKind := m.gpus[d.Kind]; !metersKind {
			continue
		}
		g := m.gpus.Of(d)
		if g == nil {
			metered = append(metered, meter.Metered{Of: d.Name, Err: errors.New("the management library shows no GPU at its bus address")})
			continue
		}
		metered = append(metered, g.Metered(d.Name))
		if g.Err == nil {
			m.States = append(m.States, DeviceState{d.Name, g.GPU})
		}
	}
	m.recorder = meter.Record(append(metered, m.gpus.unknown()...))
	return m
}

// Empty reports whether there is no meter.
func (m *Meters) Empty() bool { return m.recorder.Empty() }

// Now returns the counts so far. It may be called until Stop.
func (m *Meters) Now() []meter.Counted { return m.recorder.Now() }

// Stop ends the metering; with an error the readings are the counts until then.
func (m *Meters) Stop() ([]meter.Reading, error) {
	readings, err := m.recorder.Stop()
	m.gpus.Close()
	return readings, err
}

// MeterStates says of every counter what became of it up to Stop.
func (m *Meters) MeterStates() []meter.MeterState { return m.recorder.MeterStates() }

// AddGPUs adds the GPUs of this machine with the powers that their meters show. It fails
// where there is none, and says why.
func AddGPUs(p *platform.Platform) error {
	if err := hardware.AddGPUs(p); err != nil {
		return err
	}
	meters := OpenGPUs(p)
	meters.putPowers(p)
	meters.Close()
	return nil
}

// libraries maps platform.Kind.Meter to the library of meters.
var libraries = map[string]meter.Library{platform.NVML: meter.NVML()}

// MeterLibraries lists the libraries that meter devices, in the order of the kinds.
func MeterLibraries() (all []meter.Library) {
	for _, k := range platform.Kinds() {
		if l, ok := libraries[k.Meter]; ok {
			all = append(all, l)
		}
	}
	return all
}

// Boards are the meters of the GPUs of one kind.
type Boards struct {
	Meters []meter.GPUMeters
	Shown  []driver.GPU // as their driver numbers them; nil where it does not say

	unnumbered error // why the driver does not say
}

// OpenBoards opens the meters of the devices of a kind that has a library of meters.
func OpenBoards(k platform.Kind) (b Boards, err error) {
	if b.Meters, err = libraries[k.Meter].Open(); err != nil {
		return Boards{}, err
	}
	shown, err := hardware.GPUs()
	b.Shown, b.unnumbered = slices.DeleteFunc(shown, func(g driver.GPU) bool { return g.Kind != k.Name }), err
	return b, nil
}

// CloseBoards closes what OpenBoards has opened.
func CloseBoards(k platform.Kind) error { return libraries[k.Meter].Close() }

// At finds the meters of the device with an ordinal by the address of the GPU, since the driver
// and the library of meters may number GPUs differently. Nil means none.
func (b Boards) At(ordinal int) *meter.GPUMeters {
	at := ordinal
	if at < len(b.Shown) {
		at = slices.IndexFunc(b.Meters, func(g meter.GPUMeters) bool { return g.GPU.PCIBus == b.Shown[ordinal].PCIBus })
	}
	if at < 0 || at >= len(b.Meters) {
		return nil
	}
	return &b.Meters[at]
}

// GPUMeters are the meters of GPUs, by the kind of device.
type GPUMeters map[string]Boards

// OpenGPUs opens the meters of all kinds of devices of a platform. Nil means a platform without such devices, or
// devices without meters, of which a warning tells.
func OpenGPUs(p *platform.Platform) (m GPUMeters) {
	for _, k := range platform.Kinds() {
		if k.Meter == "" || !slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return d.Kind == k.Name }) {
			continue
		}
		b, err := OpenBoards(k)
		if err != nil {
			warn("joules of GPUs are modelled", err)
			continue
		}
		if b.unnumbered != nil {
			warn("meters are taken for GPUs in the order of their buses", b.unnumbered)
		}
		if m == nil {
			m = GPUMeters{}
		}
		m[k.Name] = b
	}
	return m
}

// Of finds the meters of a device. Nil means none.
func (m GPUMeters) Of(d *platform.Device) *meter.GPUMeters { return m[d.Kind].At(d.Ordinal) }

// eachKind yields the kinds that have meters, in the order of their table.
func (m GPUMeters) eachKind(yield func(platform.Kind, Boards) bool) {
	for _, k := range platform.Kinds() {
		if b, ok := m[k.Name]; ok && !yield(k, b) {
			return
		}
	}
}

// unknown lists the boards that could not be opened and have no known address, so that nobody knows their device.
func (m GPUMeters) unknown() (boards []meter.Metered) {
	for _, b := range m.eachKind {
		for i := range b.Meters {
			if g := &b.Meters[i]; g.Err != nil && g.GPU.PCIBus == "" && len(b.Shown) > 0 {
				boards = append(boards, meter.Metered{Of: fmt.Sprint("GPU ", i), Err: g.Err, Unused: true})
			}
		}
	}
	return boards
}

// Close closes the meters of all GPUs.
func (m GPUMeters) Close() {
	for k := range m.eachKind {
		if err := CloseBoards(k); err != nil {
			warn("the meters of the GPUs were not closed", err)
		}
	}
}

// putPowers gives GPUs the powers that their meters show: idle is the present power,
// before anything has begun, and busy is the set limit. Both are guesses of what a
// training
// will draw.
func (m GPUMeters) putPowers(p *platform.Platform) {
	for i := range p.Devices {
		d := &p.Devices[i]
		if g := m.Of(d); g != nil && g.Err == nil && g.GPU.PowerWatts > 0 && g.GPU.PowerWatts < g.GPU.PowerLimitWatts {
			d.IdleWatts, d.Busy, d.PowerSource = g.GPU.PowerWatts, platform.BusyPower{UnitWatts: g.GPU.PowerLimitWatts}, platform.Guess
		}
	}
}

// CallEnergy measures what calls on a device draw; ok is false where it has no meter.
type CallEnergy func(ctx context.Context, device string, calls func() (int, error)) (e meter.CallEnergy, ok bool, err error)

// MeasureEnergy measures with the meters of a platform's GPUs and with the common meter of its
// processors. Nil means none. Each takes about so long, which is many times the updates of the
// slowest meter if the
// figure is to say much; the repeats on processors share the time. It returns nil without meters
// or time.
func MeasureEnergy(p *platform.Platform, gpus GPUMeters, processors meter.Meter, target time.Duration) CallEnergy {
	if gpus == nil && processors == nil || target == 0 {
		return nil
	}
	return func(ctx context.Context, device string, calls func() (int, error)) (meter.CallEnergy, bool, error) {
		id, ok := p.DeviceByName(device)
		if !ok {
			return meter.CallEnergy{}, false, nil
		}
		var of meter.Meter
		var repeat meter.Repeat
		if d := &p.Devices[id]; d.IsProcessor() {
			each := max(1, target/calibrate.PowerRepeats)
			of, repeat = processors, meter.Repeat{Busy: each, Idle: each}
		} else if g := gpus.Of(d); g != nil && g.Err == nil {
			of, repeat = g.Metered(device).Meter, meter.Repeat{Busy: target, Idle: target, Every: meter.GPUSampleInterval}
		}
		if of == nil {
			return meter.CallEnergy{}, false, nil
		}
		e, err := meter.MeasureCalls(ctx, of, repeat, calls)
		if implausible := (*meter.ImplausibleError)(nil); errors.As(err, &implausible) {
			warn("the joules of "+device+" are not measured", implausible)
			return meter.CallEnergy{}, false, nil
		}
		return e, true, err
	}
}

// warn tells the user what goes on all the same, and why not as it should.
func warn(what string, reason error) { slog.Warn(what, "reason", naming.OneLine(reason)) }
