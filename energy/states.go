package energy

import (
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// stretch is a time for which a state of some units of a device, or of a link, holds: a clock from the end of one change to the
// end of the next, a sleep from the end of falling asleep to the start of the next change, or a change itself, with its watts
// above idle.
type stretch struct {
	interval
	unit  int32 // -1 means all
	kind  stretchKind
	state int32
	watts float64
}

type stretchKind uint8

const (
	changing stretchKind = iota
	clocked
	asleep
)

// stretchesOf lists the stretches of a device or a link: the function selects its changes.
func (a *account) stretchesOf(of func(c *schedule.Change) bool) (all []stretch) {
	clock, sleep := map[int32]int{}, map[int32]int{} // by unit: 1 + the stretch that holds
	end := func(open map[int32]int, unit int32, at time.Duration) {
		if k := open[unit]; k > 0 {
			all[k-1].end = at
		}
		delete(open, unit)
	}
	for i := range a.s.Changes {
		c := &a.s.Changes[i]
		if !of(c) {
			continue
		}
		all = append(all, stretch{interval{c.Start, c.End}, c.Unit, changing, 0, c.Transition(a.p.Platform).WattsAboveIdle()})
		switch c.Kind {
		case schedule.SwitchClock:
			end(clock, c.Unit, c.End)
			all = append(all, stretch{interval{c.End, a.s.Makespan}, c.Unit, clocked, c.To, 0})
			clock[c.Unit] = len(all)
		case schedule.FallAsleep:
			end(sleep, c.Unit, c.Start)
			all = append(all, stretch{interval{c.End, a.s.Makespan}, c.Unit, asleep, c.To, 0})
			sleep[c.Unit] = len(all)
		case schedule.WakeUp:
			end(sleep, c.Unit, c.Start)
		}
	}
	return all
}

// unitNow is the state of a unit at a time.
type unitNow struct {
	clock    platform.ClockID
	sleep    int32   // zero means awake, else the index of the state plus 1
	changing float64 // watts above idle
}

// unitsNow applies stretches to the units of a device, which are at their first setting otherwise.
func unitsNow(d *platform.Device, units []unitNow, stretches []stretch, active []int32) {
	for u := range units {
		units[u] = unitNow{clock: d.AtClock}
	}
	for _, k := range active {
		s := &stretches[k]
		from, to := s.unit, s.unit+1
		if s.unit < 0 {
			from, to = 0, int32(len(units))
		}
		for u := from; u < to; u++ {
			switch s.kind {
			case changing:
				units[u].changing += s.watts / float64(to-from)
			case clocked:
				units[u].clock = platform.ClockID(s.state)
			case asleep:
				units[u].sleep = s.state + 1
			}
		}
	}
}

// isOff reports whether a device may be off for all of the run: nothing runs on it, and nothing
// moves in or out of its memory unless that is a host's.
func (a *account) isOff(id platform.DeviceID, spans []int32) bool {
	d := &a.p.Platform.Devices[id]
	return d.MayBeOff && len(spans) == 0 && (a.p.Platform.IsHost(d.Memory) ||
		!slices.ContainsFunc(a.s.Transfers, func(t schedule.Transfer) bool { return t.From == d.Memory || t.To == d.Memory }))
}

// turnOff adds a device that is off.
func (a *account) turnOff(d *platform.Device) {
	e := newEntry(d.Name, d.PowerSource)
	e.Off, e.SleepJoules = true, float64(d.OffWatts*a.s.Makespan.Seconds())
	a.devices = append(a.devices, e)
	trace := a.trace(d.Name)
	if a.s.Makespan > 0 {
		trace.add(0, d.OffWatts)
	}
}
