package platform

import (
	"dahl/platform/quantity"
	"fmt"
	"slices"
	"time"
)

// Transition is the time and the joules of a change of state. Nothing runs or moves meanwhile. The joules are added
// to the idle watts of that time.
type Transition struct {
	Takes  time.Duration
	Joules float64
}

// WattsAboveIdle is the mean power of the transition above the idle watts.
func (t Transition) WattsAboveIdle() float64 {
	if t.Takes == 0 {
		return 0
	}
	return t.Joules / t.Takes.Seconds()
}

// SleepState is one in which a unit of a device, or a link, draws less and does nothing.
type SleepState struct {
	Name  string
	Watts float64 // of one unit, or of the link
	// After is the idle time after which it is entered even if no plan asks for it. Zero means never.
	After time.Duration
	// Enter and Leave are paid on the way in and on the way out. Work that comes meanwhile waits, and
	// an entry is completed once begun.
	Enter, Leave Transition
}

// HasStates reports whether tasks on the platform may have to wait for a change of state, or for
// power below a cap.
func (p *Platform) HasStates() bool {
	return p.HasCaps() || slices.ContainsFunc(p.Devices, func(d Device) bool { return len(d.Sleeps) > 0 }) ||
		slices.ContainsFunc(p.Links, func(l Link) bool { return len(l.Sleeps) > 0 })
}

// HasCaps reports whether the power of the machine or of a device is capped.
func (p *Platform) HasCaps() bool {
	return p.CapWatts > 0 || slices.ContainsFunc(p.Devices, func(d Device) bool { return d.CapWatts > 0 }) ||
		slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.CapWatts > 0 })
}

// ClockAt is a setting of the device.
func (d *Device) ClockAt(clock ClockID) Clock {
	if clock == InForce {
		clock = d.AtClock
	}
	if clock > 0 {
		return d.Clocks[clock]
	}
	return d.ownClock()
}

func (t *Transition) keys(f *form) {
	f.duration("time", &t.Takes)
	f.quantity("joules", &quantity.Joules, &t.Joules)
}

// transition is an inline table { time = …, joules = … }.
func (f *form) transition(key string, t *Transition) {
	f.inline(key, *t != Transition{}, t.keys)
}

func (s *SleepState) keys(f *form) {
	f.need(`"deep"`).text("name", &s.Name)
	f.need(`"0.5 W"`).quantity("power", &quantity.Watts, &s.Watts)
	f.above0().duration("after", &s.After)
	f.transition("enter", &s.Enter)
	f.transition("leave", &s.Leave)
}

// unitDomain is the value of clock_domain where each unit has a clock of its own.
const unitDomain = "unit"

// stateKeys are the keys for changes of the clock, and for the cap and the sleep of a device.
func (d *Device) stateKeys(f *form) {
	f.key("clock_domain", !d.UnitClocks, func() {
		if v := f.in.Text("clock_domain"); v != "" && v != "device" && v != unitDomain {
			f.in.Fail("clock_domain", v, `write "device" (all units change together) or "unit"`)
		} else {
			d.UnitClocks = v == unitDomain
		}
	}, func() string { return quote(unitDomain) })
	f.transition("clock_switch", &d.Switch)
	f.above0().quantity("power_cap", &quantity.Watts, &d.CapWatts)
}

// checkTransition returns what is wrong with a transition. Empty means nothing.
func checkTransition(t Transition) string {
	switch {
	case t.Takes < 0 || int64(t.Takes) > quantity.MaxWhole:
		return fmt.Sprintf("time: %d ns is out of range", t.Takes)
	case !amount(t.Joules):
		return fmt.Sprintf("joules: %g J is out of range", t.Joules)
	case t.Joules > 0 && t.Takes == 0:
		return fmt.Sprintf("%g J in no time; give it a time", t.Joules)
	}
	return ""
}

// checkSleeps checks the sleep states of a device or link. By themselves they are entered from
// light to deep.
func checkSleeps(what string, i int, who string, power Source, states []SleepState) *fault {
	seen := map[string]bool{}
	last := time.Duration(0)
	for j := range states {
		s := &states[j]
		bad := func(key, format string, args ...any) *fault {
			return &fault{at(what, i, fmt.Sprintf("sleep[%d].%s", j, key)), who, fmt.Sprintf("sleep state %q: ", clip(s.Name)) + fmt.Sprintf(format, args...)}
		}
		if !isName(s.Name) || seen[s.Name] {
			return bad("name", "give each state a name of its own, of letters and digits")
		}
		seen[s.Name] = true
		if power == "" {
			return bad("power", "it has a power, and nothing else here does; add power = { … } to what sleeps")
		}
		if !amount(s.Watts) {
			return bad("power", "%g W is out of range", s.Watts)
		}
		if s.After < 0 || int64(s.After) > quantity.MaxWhole || s.After > 0 && s.After <= last {
			return bad("after", "after = %q: list the states from light to deep, each entered after a longer time than the one before", s.After)
		}
		last = max(last, s.After)
		for _, t := range []struct {
			key string
			Transition
		}{{"enter", s.Enter}, {"leave", s.Leave}} {
			if text := checkTransition(t.Transition); text != "" {
				return bad(t.key, "%s: %s", t.key, text)
			}
		}
	}
	return nil
}

// checkStates checks what a device says of changes of its clock, of its cap and of its sleep.
func (d *Device) checkStates(i int) *fault {
	who := owner("device", d.Name)
	if text := checkTransition(d.Switch); text != "" {
		return &fault{at("device", i, "clock_switch"), who, "clock_switch: " + text}
	}
	if len(d.Clocks) == 0 && (d.UnitClocks || d.Switch != Transition{}) {
		return &fault{at("device", i, "clock_switch"), who, "clock_switch and clock_domain need further clocks; add [[device.clock]]"}
	}
	if f := checkCap(at("device", i, "power_cap"), who, d.CapWatts, d.PowerSource); f != nil {
		return f
	}
	if !amount(d.OffWatts) || d.OffWatts > 0 && !d.MayBeOff {
		return &fault{at("device", i, "power"), who, fmt.Sprintf("off = %g W is out of range", d.OffWatts)}
	}
	return checkSleeps("device", i, who, d.PowerSource, d.Sleeps)
}

// checkCap checks the cap of all of the machine.
func (p *Platform) checkCap() *fault {
	if f := checkCap("power_cap", "", p.CapWatts, Guess); f != nil {
		return f
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		capped := p.CapWatts > 0 || len(p.Nodes) > 0 && uint(d.Memory) < uint(len(p.Memories)) && p.nodeCap(d.Memory) > 0
		if capped && d.PowerSource == "" {
			return &fault{at("device", i, "power"), owner("device", d.Name), "the platform has a power_cap, and the power of this device is not known; add power = { … }"}
		}
	}
	return nil
}

func checkCap(path, who string, watts float64, power Source) *fault {
	switch {
	case !amount(watts):
		return &fault{path, who, fmt.Sprintf("power_cap: %g W is out of range", watts)}
	case watts > 0 && power == "":
		return &fault{path, who, "a cap of a power that is not known; add power = { … }"}
	}
	return nil
}

// ParseWatts reads a power with its unit, such as "400 W".
func ParseWatts(text string) (float64, error) { return quantity.Watts.Parse(text) }

// WithCap is the machine with another cap of its power. It refuses one that leaves nothing above the watts of the idle machine,
// at the clocks in force.
func (p *Platform) WithCap(watts float64) (*Platform, error) {
	q := *p
	q.CapWatts = watts
	if f := q.checkCap(); f != nil {
		return nil, fmt.Errorf("platform %q: %w", p.Name, f)
	}
	least := p.HostWatts().Value
	for i := range p.Devices {
		least += float64(float64(p.Devices[i].Count) * p.Devices[i].ClockInForce().Idle)
	}
	for i := range p.Links {
		least += p.Links[i].IdleWatts
	}
	if watts <= least {
		return nil, fmt.Errorf("platform %q draws %.6g W while nothing runs; write more than that", p.Name, least)
	}
	return &q, nil
}
