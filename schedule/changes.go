package schedule

import (
	"cmp"
	"fmt"
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

// ChangeKind says what changes.
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
func ChangeOfClock(p *platform.Platform, w platform.WorkerID, clock int32, from time.Duration) Change {
	id := p.Workers[w].Device
	c := Change{Kind: SwitchClock, Device: id, Unit: -1, Link: -1, To: clock, Start: from, End: from + p.Devices[id].Switch.Takes}
	if p.Devices[id].UnitClocks {
		c.Unit = UnitOfChange(p, w)
	}
	return c
}

// Transition is what the platform says of a change.
func (c *Change) Transition(p *platform.Platform) platform.Transition {
	switch {
	case c.Kind == SwitchClock:
		return p.Devices[c.Device].Switch
	case c.Kind == FallAsleep:
		return c.sleeps(p)[c.To].Enter
	}
	return c.sleeps(p)[c.To].Leave
}

// sleeps are the sleep states of what changes.
func (c *Change) sleeps(p *platform.Platform) []platform.SleepState {
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
	return c.sleeps(p)[c.To].Name
}

// Covers reports whether a unit of a device is one of those that change.
func (c *Change) Covers(d platform.DeviceID, unit int) bool {
	return c.Device == d && (c.Unit < 0 || int(c.Unit) == unit)
}

// sortChanges puts changes in the order of time, and of what changes.
func sortChanges(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Link, b.Link))
	})
}

// States is what a plan says of the states of devices: by name of a task, the clock at which it
// runs, and the sleep state that its unit enters as soon as it has ended.
type States struct {
	Clocks map[string]string `json:"clocks,omitempty"`
	Sleeps map[string]string `json:"sleeps,omitempty"`
}

// resolve finds the clocks and sleep states by task: of each the index plus 1, and 0 where the
// plan says nothing. Both are nil where it says nothing at all.
func (s *States) resolve(g *dag.Graph, p *platform.Platform, order [][]dag.TaskID) (clocks, sleeps []int32, err error) {
	if len(s.Clocks)+len(s.Sleeps) == 0 {
		return nil, nil, nil
	}
	device := slices.Repeat([]platform.DeviceID{-1}, len(g.Tasks))
	for w, list := range order {
		for _, t := range list {
			if w < len(p.Workers) && t >= 0 && int(t) < len(device) {
				device[t] = p.Workers[w].Device
			}
		}
	}
	find := func(what string, names map[string]string, index func(d *platform.Device, name string) int) ([]int32, error) {
		if len(names) == 0 {
			return nil, nil
		}
		all, found := make([]int32, len(g.Tasks)), 0
		for t := range g.Tasks {
			name, ok := names[g.Tasks[t].Name]
			if !ok || device[t] < 0 {
				continue
			}
			found++
			d := &p.Devices[device[t]]
			if all[t] = int32(index(d, name)) + 1; all[t] == 0 {
				return nil, fmt.Errorf("the plan gives task %q the %s %q, and device %q has none of this name", g.Tasks[t].Name, what, name, d.Name)
			}
		}
		if found < len(names) {
			return nil, fmt.Errorf("the plan gives a %s to %d tasks, of which %d are in its lists; name tasks of the graph", what, len(names), found)
		}
		return all, nil
	}
	clocks, err = find("clock", s.Clocks, func(d *platform.Device, name string) int {
		return slices.IndexFunc(d.Clocks, func(c platform.Clock) bool { return c.Name == name })
	})
	if err != nil {
		return nil, nil, err
	}
	sleeps, err = find("sleep state", s.Sleeps, func(d *platform.Device, name string) int {
		return slices.IndexFunc(d.Sleeps, func(s platform.SleepState) bool { return s.Name == name })
	})
	return clocks, sleeps, err
}
