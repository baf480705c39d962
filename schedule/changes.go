package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Change is a change of state: of the clock of a unit or of all units of a device, or a unit or a
// link that goes to sleep or wakes. Nothing runs or moves there meanwhile. The state before holds
// until End, but for sleep, which ends with the Start of waking.
type Change struct {
	Kind   ChangeKind
	Device platform.DeviceID // -1: a link changes
	Unit   int32             // of the device; -1: all units, and so the one of a device that has one
	Link   platform.LinkID   // -1: a device changes
	// To is the clock or the sleep state that follows; of a waking, the sleep state that ends.
	To         int32
	Start, End time.Duration
}

// ChangeKind is the kind of a change.
type ChangeKind uint8

// The kinds of changes.
const (
	SwitchClock ChangeKind = iota
	FallAsleep
	WakeUp
)

var changeNames = [...]string{"clock", "sleep", "wake"}

func (k ChangeKind) String() string { return changeNames[k] }

// ChangeOfClock is the change to a clock of a worker's domain that begins at a time.
func ChangeOfClock(p *platform.Platform, w platform.WorkerID, clock platform.ClockID, from time.Duration) Change {
	id := p.Workers[w].Device
	c := Change{Kind: SwitchClock, Device: id, Unit: -1, Link: -1, To: int32(clock), Start: from, End: from + p.Devices[id].Switch.Takes}
	if p.Devices[id].UnitClocks {
		c.Unit = UnitOfChange(p, w)
	}
	return c
}

// Transition is the platform's description of a change.
func (c *Change) Transition(p *platform.Platform) platform.Transition {
	switch {
	case c.Kind == SwitchClock:
		return p.Devices[c.Device].Switch
	case c.Kind == FallAsleep:
		return c.SleepStates(p)[c.To].Enter
	}
	return c.SleepStates(p)[c.To].Leave
}

// SleepStates are the sleep states of the unit or link that changes.
func (c *Change) SleepStates(p *platform.Platform) []platform.SleepState {
	if c.Device < 0 {
		return p.Links[c.Link].Sleeps
	}
	return p.Devices[c.Device].Sleeps
}

// Of names what changes: a link, a device or one of its units.
func (c *Change) Of(p *platform.Platform) string {
	if c.Device < 0 {
		return p.Links[c.Link].Name
	}
	for _, w := range p.Workers {
		if c.Unit >= 0 && w.Device == c.Device && w.Index == int(c.Unit) {
			return w.Name
		}
	}
	return p.Devices[c.Device].Name
}

// StateName names the clock or the sleep state.
func (c *Change) StateName(p *platform.Platform) string {
	if c.Kind == SwitchClock {
		return p.Devices[c.Device].Clocks[c.To].Name
	}
	return c.SleepStates(p)[c.To].Name
}

// Covers reports whether a unit of a device is one of those that change.
func (c *Change) Covers(d platform.DeviceID, unit int) bool {
	return c.Device == d && (c.Unit < 0 || int(c.Unit) == unit)
}

// sortChanges puts changes in the order of time, then of devices, units and links.
func sortChanges(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Link, b.Link))
	})
}

// States are the states of devices in a plan, by task. Nil lists say nothing.
type States struct {
	Clocks []platform.ClockID // at which the task runs
	// Sleeps are the sleep states that the task's unit enters as soon as it has ended, each as an index plus 1.
	// Zero means none.
	Sleeps []int32
}

// SetClock gives a task of a graph a clock.
func (s *States) SetClock(g *dag.Graph, t dag.TaskID, clock platform.ClockID) {
	if s.Clocks == nil {
		s.Clocks = slices.Repeat([]platform.ClockID{platform.InForce}, len(g.Tasks))
	}
	s.Clocks[t] = clock
}

// SetSleep gives a task of a graph a sleep state, as an index plus 1.
func (s *States) SetSleep(g *dag.Graph, t dag.TaskID, state int32) {
	if s.Sleeps == nil {
		s.Sleeps = make([]int32, len(g.Tasks))
	}
	s.Sleeps[t] = state
}
