package platform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dahl/naming"
	"dahl/platform/quantity"
)

// ClockID is a clock of a device, by its place in Device.Clocks. Zero means the device's own setting.
type ClockID int32

// InForce stands for the clock at which a device runs unless a plan says another, see Device.AtClock.
const InForce ClockID = -1

// defaultClock names a device's own setting where further clocks are listed.
const defaultClock = "nominal"

// clockInForceKey names the clock in force of a device that does not run at its first.
const clockInForceKey = "clock_in_force"

func (d *Device) clockKeys(f *form) {
	own, further := d.ownClock(), d.Clocks[min(1, len(d.Clocks)):]
	f.text("clock_name", &own.Name)
	f.above0().quantity("clock_frequency", &quantity.Hertz, &own.FrequencyHz)
	f.key(clockInForceKey, d.AtClock == 0, func() {}, func() string { return quote(d.ClockInForce().Name) })
	tables(f, "device.clock", &further, func(c *Clock, f *form) {
		f.need(`"slow"`).text("name", &c.Name)
		f.need("0.5").number("scale", &c.Scale)
		f.above0().quantity("frequency", &quantity.Hertz, &c.FrequencyHz)
		if f.in != nil {
			c.Idle, c.Busy = d.IdleWatts, d.Busy
		}
		f.inline("power", d.PowerSource != "", func(of *form) {
			of.powers(d.Count, &c.Idle, &c.Busy)
			if d.PowerSource == "" {
				f.in.File.FailAt(f.in.Path, f.in.Owner, "a power for a clock, and none for the device; add power = { … } to the device")
			}
		})
	})
	if f.in == nil {
		return
	}
	if len(further) > 0 || own.FrequencyHz > 0 {
		own.Name, own.Scale, own.Idle, own.Busy = cmp.Or(own.Name, defaultClock), 1, d.IdleWatts, d.Busy
		d.Clocks = slices.Insert(further, 0, own)
	}
	if _, ok := f.in.Keys[clockInForceKey]; ok {
		d.AtClock = ClockID(named(f.in, clockInForceKey, f.in.Text(clockInForceKey), "no clock of the device has this name; clocks are ", d.Clocks, func(c Clock) string { return c.Name }))
	}
}

// ownClock is the first clock, at which speeds, powers and models are given.
func (d *Device) ownClock() Clock {
	if len(d.Clocks) > 0 {
		return d.Clocks[0]
	}
	return Clock{Scale: 1, Idle: d.IdleWatts, Busy: d.Busy}
}

// ClockInForce is the setting at which the device runs. It has no name where the device has only
// one.
func (d *Device) ClockInForce() Clock { return d.ClockAt(d.AtClock) }

// ClockByName finds a clock. An empty name is the first.
func (d *Device) ClockByName(name string) (ClockID, bool) {
	if name == "" {
		return 0, true
	}
	i := slices.IndexFunc(d.Clocks, func(c Clock) bool { return c.Name == name })
	return ClockID(i), i >= 0
}

// NumClocks is the number of settings of the device. A device without clocks has one, its own.
func (d *Device) NumClocks() ClockID { return ClockID(max(1, len(d.Clocks))) }

// FreeClocks lists the clocks that a search may give tasks on the device: all, or the one in force where that is held.
func (d *Device) FreeClocks() (all []ClockID) {
	if d.ClockHeld {
		return []ClockID{d.AtClock}
	}
	for clock := range d.NumClocks() {
		all = append(all, clock)
	}
	return all
}

// WithClock returns a platform on which another clock of a device is in force. That clock sets
// the device's powers and scales its speeds, and stretches or shortens the times at its first
// clock. The receiver is not changed. Of some devices of a platform it is chosen before Select,
// which adds the watts of units left out to the host's.
func (p *Platform) WithClock(device, clock string) (*Platform, error) {
	id, ok := p.DeviceByName(device)
	if !ok {
		return nil, fmt.Errorf("platform %q has no device %q; it has %s%s", p.Name, device, p.devicesText(), naming.DidYouMean(device, p.deviceNames()))
	}
	q := *p
	q.Devices = slices.Clone(p.Devices)
	d := &q.Devices[id]
	at := ClockID(slices.IndexFunc(d.Clocks, func(c Clock) bool { return c.Name == clock }))
	if at < 0 && len(d.Clocks) == 0 {
		return nil, fmt.Errorf("device %q of platform %q has no clocks to choose from; describe them with [[device.clock]]", device, p.Name)
	}
	if at < 0 {
		var known []string
		for _, c := range d.Clocks {
			known = append(known, c.Name)
		}
		return nil, fmt.Errorf("device %q of platform %q has no clock %q; it has %s%s", device, p.Name, clock, strings.Join(known, ", "), naming.DidYouMean(clock, known))
	}
	d.AtClock, d.ClockHeld = at, true
	return &q, nil
}

// ClocksUsed lists for each device the clock in force, as the only one at which it runs.
func (p *Platform) ClocksUsed() [][]ClockID {
	used := make([][]ClockID, len(p.Devices))
	for d := range p.Devices {
		used[d] = []ClockID{p.Devices[d].AtClock}
	}
	return used
}

// AtClocks is the platform with a clock in force on all devices that have it. InForce changes nothing.
func (p *Platform) AtClocks(clock ClockID) *Platform {
	has := func(d Device) bool { return clock != InForce && clock < d.NumClocks() && d.AtClock != clock }
	if !slices.ContainsFunc(p.Devices, has) {
		return p
	}
	q := *p
	q.Devices = slices.Clone(p.Devices)
	for i := range q.Devices {
		if d := &q.Devices[i]; has(*d) {
			d.AtClock = clock
		}
	}
	return &q
}

// ClocksInForce lists the devices that do not run at their first clock, each as "gpu0=slow".
func (p *Platform) ClocksInForce() (all []string) {
	for i := range p.Devices {
		if d := &p.Devices[i]; d.AtClock > 0 {
			all = append(all, d.Name+"="+d.ClockInForce().Name)
		}
	}
	return all
}

// TimeAtClock is the time, at the clock in force, of a call that takes so long at the first clock of
// its device. Its compute part is found by the work of the query.
func (p *Platform) TimeAtClock(takes time.Duration, q Query) time.Duration {
	d := &p.Devices[q.Device]
	return roundUpNs(float64(float64(takes) * d.stretch(p.computeShare(d, q.Type, q.Flops, q.MovedBytes, 1))))
}

// stretch is the time of a call at the clock in force relative to that at the first: the compute
// part, a share of the time at the first clock, is divided by the scale, and the memory part is
// as it was [Hsu, Kremer, PLDI 2003].
func (d *Device) stretch(share float64) float64 {
	return share/d.ClockInForce().Scale + (1 - share)
}

// computeShare is the part of a call's time that follows the clock: the time of its flops at the
// speed of the first clock, in relation to the sum of this and the time of its bytes while the busy
// units share the bandwidth of the memory. It does not depend on which units are selected. Without
// work, a speed or a bandwidth it is all of the time.
func (p *Platform) computeShare(d *Device, elem string, flops float64, bytes int64, busy int) float64 {
	speed, bandwidth := d.ownSpeed(elem), p.Memories[d.Memory].BandwidthBytesPerSec/float64(max(1, busy))
	if flops <= 0 && bytes <= 0 || flops > 0 && speed <= 0 || bytes > 0 && bandwidth <= 0 {
		return 1
	}
	var compute, move float64
	if flops > 0 {
		compute = flops / speed
	}
	if bytes > 0 {
		move = float64(bytes) / bandwidth
	}
	return compute / (compute + move)
}

// stretched is a model of the device's first clock at the clock in force. What timing adds is the
// host's and stays. The joules of a call were measured at the first clock, so that the powers of
// the clock in force take their place.
func (p *Platform) stretched(d *Device, m *Model) *Model {
	share := cmp.Or(m.Compute, p.computeShare(d, m.Type, m.Flops, m.MovedBytes, m.Active))
	longer := d.stretch(share) - 1
	at := *m
	for _, ns := range []*float64{&at.MedianNs, &at.P95Ns, &at.WarmNs, &at.FarNs, &at.StepNs, &at.FirstNs} {
		*ns += float64(longer * max(0, *ns-float64(d.Timing)))
	}
	at.Joules = 0
	return &at
}
