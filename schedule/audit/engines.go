package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// copyEngines verifies that no memory carried more transfers at once, in either direction, than its devices have
// engines. A host's memory has no such limit. A transfer between two devices by a route past a host's memory runs
// on an engine of the destination.
func (c *audit) copyEngines() error {
	p := c.p.Platform
	for m := range p.Memories {
		var in, out int
		for d := range p.Devices {
			if device := &p.Devices[d]; int(device.Memory) == m && !p.IsHost(platform.MemoryID(m)) {
				in, out = max(in, device.CopyEnginesIn), max(out, device.CopyEnginesOut)
			}
		}
		var into, from []*schedule.Transfer
		for i := range c.s.Transfers {
			t := &c.s.Transfers[i]
			if int(t.To) == m {
				into = append(into, t)
			}
			if int(t.From) == m && (p.IsHost(t.To) || c.unlimitedInto(t.To) || len(p.Stops(t.From, t.To)) > 1) {
				from = append(from, t)
			}
		}
		for _, way := range []struct {
			copies  []*schedule.Transfer
			engines int
			word    string
		}{{into, in, "into"}, {from, out, "out of"}} {
			if n, at := mostAtOnce(way.copies); way.engines > 0 && n > way.engines {
				return fmt.Errorf("%d transfers %s memory %q at %v, and its devices have %d engines for them", n, way.word, p.Memories[m].Name, at, way.engines)
			}
		}
	}
	return nil
}

// unlimitedInto reports whether no device of a memory says how many engines copy into it.
func (c *audit) unlimitedInto(m platform.MemoryID) bool {
	return !slices.ContainsFunc(c.p.Platform.Devices, func(d platform.Device) bool { return d.Memory == m && d.CopyEnginesIn > 0 })
}

// mostAtOnce is the largest number of transfers in progress at a time, and that time. A transfer that ends at a time
// makes way for another start then.
func mostAtOnce(copies []*schedule.Transfer) (most int, when time.Duration) {
	type change struct {
		at time.Duration
		by int
	}
	var changes []change
	for _, t := range copies {
		changes = append(changes, change{t.Start, 1}, change{t.End, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, ch := range changes {
		if now += ch.by; now > most {
			most, when = now, ch.at
		}
	}
	return most, when
}
