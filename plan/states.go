package plan

import (
	"cmp"
	"maps"
	"slices"

	"dahl/energy"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// States says what clocks, sleep and caps did in a schedule. Times and joules are per step, and times add up all units.
type States struct {
	Clocks   []ClockUse    `json:"clocks,omitempty"`   // of devices that did not keep to the one in force
	Switches []SwitchUse   `json:"switches,omitempty"` // of these clocks
	Sleeps   []SleepUse    `json:"sleeps,omitempty"`
	Joules   energy.Causes `json:"joules_per_step"`
	Caps     []energy.Cap  `json:"caps,omitempty"`
	Off      []string      `json:"off,omitempty"` // devices
	// LeftAsleep names devices with unselected units that sleep all the time.
	LeftAsleep []string `json:"left_asleep,omitempty"`
}

// ClockUse is the tasks of a device at one of its clocks.
type ClockUse struct {
	Device string  `json:"device"`
	Clock  string  `json:"clock"`
	Tasks  float64 `json:"tasks_per_step"`
	BusyS  float64 `json:"busy_s_per_step"`
	Share  float64 `json:"share"` // of the busy time of the device
}

// SwitchUse is the changes of the clocks of a device.
type SwitchUse struct {
	Device string  `json:"device"`
	Count  float64 `json:"count_per_step"`
	S      float64 `json:"s_per_step"` // of one unit for a clock of its own, else of the device
}

// SleepUse is the sleep of a device or a link in one of its states.
type SleepUse struct {
	Of      string  `json:"of"`
	State   string  `json:"state"`
	Count   float64 `json:"count_per_step"`
	AsleepS float64 `json:"asleep_s_per_step"`
}

// StatesOf sums the states of a schedule with a report of its energy. It is nil where nothing has a
// cap, is off, changes its state or runs at another clock than the one in force.
func StatesOf(p *schedule.Problem, s *schedule.Schedule, r *energy.Report) *States {
	st := &States{Caps: r.Caps, Off: slices.Clone(r.LeftOff), LeftAsleep: r.LeftAsleep}
	for _, e := range r.ByDevice {
		if e.Off {
			st.Off = append(st.Off, e.Name)
		}
	}
	st.addClocks(p, s)
	st.addChanges(p, s)
	if len(st.Clocks)+len(st.Switches)+len(st.Sleeps)+len(st.Caps)+len(st.Off)+len(st.LeftAsleep) == 0 {
		return nil
	}
	share := 1 / float64(s.Steps)
	st.Joules = r.Causes
	for _, joules := range []*float64{&st.Joules.Idle, &st.Joules.Busy, &st.Joules.Transfer, &st.Joules.Host, &st.Joules.Sleep, &st.Joules.Switching} {
		*joules *= share
	}
	return st
}

// addClocks sums the tasks by device and clock, in the order of the platform.
func (st *States) addClocks(p *schedule.Problem, s *schedule.Schedule) {
	type key struct {
		device platform.DeviceID
		clock  platform.ClockID
	}
	uses, busy, others := map[key]*ClockUse{}, map[platform.DeviceID]float64{}, map[platform.DeviceID]bool{}
	for i := range s.Spans {
		span := &s.Spans[i]
		k := key{device: p.Platform.Workers[span.Worker].Device}
		k.clock, _ = p.StatesOf(span.Task, k.device)
		if uses[k] == nil {
			d := &p.Platform.Devices[k.device]
			uses[k] = &ClockUse{Device: d.Name, Clock: d.ClockAt(k.clock).Name}
			others[k.device] = others[k.device] || k.clock != d.AtClock
		}
		uses[k].Tasks++
		uses[k].BusyS += (span.End - span.Start).Seconds()
		busy[k.device] += (span.End - span.Start).Seconds()
	}
	for _, k := range slices.SortedFunc(maps.Keys(uses), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.clock, b.clock))
	}) {
		if others[k.device] {
			if busy[k.device] > 0 {
				uses[k].Share = uses[k].BusyS / busy[k.device]
			}
			perStep(s, &uses[k].Tasks, &uses[k].BusyS)
			st.Clocks = append(st.Clocks, *uses[k])
		}
	}
}

// addChanges sums changes of clocks, and sleep: devices first, each in the order in which they come.
func (st *States) addChanges(p *schedule.Problem, s *schedule.Schedule) {
	for i := range s.Changes {
		c := &s.Changes[i]
		if c.Kind != schedule.SwitchClock {
			continue
		}
		name := p.Platform.Devices[c.Device].Name
		at := slices.IndexFunc(st.Switches, func(u SwitchUse) bool { return u.Device == name })
		if at < 0 {
			at = len(st.Switches)
			st.Switches = append(st.Switches, SwitchUse{Device: name})
		}
		st.Switches[at].Count++
		st.Switches[at].S += (c.End - c.Start).Seconds()
	}
	units, links := explain.Stretches(p, s)
	for _, stretches := range slices.Concat(units, links) {
		for _, x := range stretches {
			if !x.Asleep {
				continue
			}
			of, state := "", x.Change.StateName(p.Platform)
			if x.Change.Device < 0 {
				of = x.Change.Of(p.Platform)
			} else {
				of = p.Platform.Devices[x.Change.Device].Name
			}
			at := slices.IndexFunc(st.Sleeps, func(u SleepUse) bool { return u.Of == of && u.State == state })
			if at < 0 {
				at = len(st.Sleeps)
				st.Sleeps = append(st.Sleeps, SleepUse{Of: of, State: state})
			}
			st.Sleeps[at].Count++
			st.Sleeps[at].AsleepS += (x.End - x.Start).Seconds()
		}
	}
	for i := range st.Switches {
		perStep(s, &st.Switches[i].Count, &st.Switches[i].S)
	}
	for i := range st.Sleeps {
		perStep(s, &st.Sleeps[i].Count, &st.Sleeps[i].AsleepS)
	}
}

// perStep divides sums over a schedule by its steps.
func perStep(s *schedule.Schedule, sums ...*float64) {
	for _, sum := range sums {
		*sum /= float64(s.Steps)
	}
}
