package audit

import (
	"fmt"

	"dahl/schedule"
)

// Fits refuses a schedule with names that the graph or the platform of a problem does not have, or with impossible
// times. So drawing it and adding up its joules need no checks. [Check] says whether it is sound.
func Fits(s *schedule.Schedule, p *schedule.Problem) error {
	g, on := p.Graph, p.Platform
	has := func(id int32, of int) bool { return id >= 0 && int(id) < of }
	for i := range s.Spans {
		if x := &s.Spans[i]; !has(int32(x.Task), len(g.Tasks)) || !has(int32(x.Worker), len(on.Workers)) || !has(x.Step, max(1, s.Steps)) ||
			x.Start < 0 || x.End < x.Start || x.End > s.Makespan {
			return fmt.Errorf("span %d (task %d of step %d on worker %d from %v to %v) does not fit the graph, the platform, the %d steps or the makespan %v",
				i, x.Task, x.Step, x.Worker, x.Start, x.End, s.Steps, s.Makespan)
		}
	}
	for i := range s.Transfers { // moves home may end after the last task
		if x := &s.Transfers[i]; !has(int32(x.From), len(on.Memories)) || !has(int32(x.To), len(on.Memories)) || !has(int32(x.For), len(g.Tasks)) ||
			!has(int32(x.Buffer), len(g.Buffers)) || x.Start < 0 || x.End < x.Start {
			return fmt.Errorf("transfer %d (buffer %d from memory %d to %d for task %d from %v to %v) does not fit the graph or the platform",
				i, x.Buffer, x.From, x.To, x.For, x.Start, x.End)
		}
	}
	for i := range s.Changes {
		if c := &s.Changes[i]; !fits(c, p) {
			return fmt.Errorf("change %d (of device %d, unit %d or link %d from %v to %v) does not fit the platform", i, c.Device, c.Unit, c.Link, c.Start, c.End)
		}
	}
	for i, o := range s.Memory {
		if !has(int32(o.Memory), len(on.Memories)) || o.At < 0 {
			return fmt.Errorf("occupancy %d of memory %d at %v does not fit the platform", i, o.Memory, o.At)
		}
	}
	return nil
}

// fits reports whether the platform has the states of a change.
func fits(c *schedule.Change, of *schedule.Problem) bool {
	p := of.Platform
	switch {
	case c.Start < 0 || c.End < c.Start || c.Kind > schedule.WakeUp || c.To < 0:
		return false
	case c.Device < 0:
		return c.Kind != schedule.SwitchClock && c.Link >= 0 && int(c.Link) < len(p.Links) && int(c.To) < len(p.Links[c.Link].Sleeps)
	case int(c.Device) >= len(p.Devices) || c.Unit >= int32(p.Devices[c.Device].Count):
		return false
	case c.Kind == schedule.SwitchClock:
		return int(c.To) < len(p.Devices[c.Device].Clocks)
	}
	return int(c.To) < len(p.Devices[c.Device].Sleeps)
}
