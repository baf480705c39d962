package platform

// The power of a device is linear in its busy units, from one to all. Three functions say it: of the whole
// device, of one unit among some that are busy, and of the first one and each further one.

// Watts are the watts of the whole device at a clock while some of its units are busy and the others idle.
func (d *Device) Watts(clock ClockID, busyUnits int) float64 {
	c := d.ClockAt(clock)
	return c.Busy.watts(d.Count, busyUnits, c.Idle)
}

// watts are the watts of some units, some of them busy.
func (b *BusyPower) watts(units, busy int, idle float64) float64 {
	switch {
	case busy <= 0:
		return float64(float64(units) * idle)
	case !b.WholeDevice:
		return float64(float64(busy)*b.UnitWatts) + float64(float64(units-busy)*idle)
	case busy >= units:
		return b.AllWatts
	}
	share := float64(busy-1) / float64(units-1)
	return b.FirstWatts + float64((b.AllWatts-b.FirstWatts)*share)
}

// WattsAboveIdle are the watts of one unit above its idle watts while it runs at a clock and busyUnits
// units of the device are busy. The units of a device may be at different clocks: its power is the
// idle watts of all units, each at its own clock, and these watts of the busy ones.
func (d *Device) WattsAboveIdle(clock ClockID, busyUnits int) float64 {
	if busyUnits <= 0 {
		return 0
	}
	c := d.ClockAt(clock)
	return (c.Busy.watts(d.Count, busyUnits, c.Idle) - float64(float64(d.Count)*c.Idle)) / float64(busyUnits)
}

// BusyWatts splits the watts of busy units at a clock above idle watts: n of them draw n times each, and first once.
func (d *Device) BusyWatts(clock ClockID) (first, each float64) {
	one := d.WattsAboveIdle(clock, 1)
	if d.Count == 1 {
		return 0, one
	}
	all := float64(float64(d.Count) * d.WattsAboveIdle(clock, d.Count))
	each = (all - one) / float64(d.Count-1)
	return one - each, each
}

// LeastWatts are the least watts of a unit or a link without work: idle, or in one of its sleep states.
func LeastWatts(idle float64, sleeps []SleepState) float64 {
	for i := range sleeps {
		idle = min(idle, sleeps[i].Watts)
	}
	return idle
}

// MostWatts are the most watts of a unit or a link without work.
func MostWatts(idle float64, sleeps []SleepState) float64 {
	for i := range sleeps {
		idle = max(idle, sleeps[i].Watts)
	}
	return idle
}

// JoulesPerByte is the energy above idle of one byte that crosses a link once.
func (l *Link) JoulesPerByte() float64 {
	capacity := l.BandwidthBytesPerSec
	if l.Sharing == Duplex {
		capacity *= 2
	}
	return (l.BusyWatts - l.IdleWatts) / capacity
}

// RouteJoulesPerByte is the energy above idle of one byte that crosses all links between two memories.
func (p *Platform) RouteJoulesPerByte(from, to MemoryID) (joules float64) {
	for _, use := range p.LinkUses(from, to) {
		joules += float64(p.Links[use.Link].JoulesPerByte() * float64(use.Times))
	}
	return joules
}
