package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// devices are the devices of the tasks by a plan's lists, -1 where no list has a task.
func (p *Plan) devices(g *dag.Graph, on *platform.Platform) []platform.DeviceID {
	device := slices.Repeat([]platform.DeviceID{-1}, len(g.Tasks))
	for w, list := range p.Order {
		for _, t := range list {
			if w < len(on.Workers) && t >= 0 && int(t) < len(device) {
				device[t] = on.Workers[w].Device
			}
		}
	}
	return device
}

// checkStates refuses lists of another length than the graph has tasks, and states that a task's device does not
// have.
func (p *Plan) checkStates(g *dag.Graph, on *platform.Platform) error {
	for _, n := range []int{len(p.Clocks), len(p.Sleeps)} {
		if n > 0 && n != len(g.Tasks) {
			return fmt.Errorf("the plan has states of %d tasks, graph %q has %d", n, g.Name, len(g.Tasks))
		}
	}
	if p.Clocks == nil && p.Sleeps == nil {
		return nil
	}
	for t, id := range p.devices(g, on) {
		if id < 0 {
			continue
		}
		d := &on.Devices[id]
		if p.Clocks != nil && (p.Clocks[t] < platform.InForce || p.Clocks[t] >= d.NumClocks()) ||
			p.Sleeps != nil && (p.Sleeps[t] < 0 || int(p.Sleeps[t]) > len(d.Sleeps)) {
			return fmt.Errorf("the plan gives task %q a state that device %q does not have", g.Tasks[t].Name, d.Name)
		}
	}
	return nil
}

// SetStates takes the clocks and sleep states of a plan by the names of its tasks.
func (p *Plan) SetStates(clocks, sleeps map[string]string, g *dag.Graph, on *platform.Platform) error {
	if len(clocks)+len(sleeps) == 0 {
		return nil
	}
	device := p.devices(g, on)
	set := func(what string, names map[string]string, set func(t int, d *platform.Device, name string) bool) error {
		found := 0
		for t := range g.Tasks {
			name, ok := names[g.Tasks[t].Name]
			if !ok || device[t] < 0 {
				continue
			}
			found++
			if d := &on.Devices[device[t]]; !set(t, d, name) {
				return fmt.Errorf("the plan gives task %q the %s %q, and device %q has none of this name", g.Tasks[t].Name, what, name, d.Name)
			}
		}
		if found < len(names) {
			return fmt.Errorf("the plan gives a %s to %d tasks, of which %d are in its lists; name tasks of the graph", what, len(names), found)
		}
		return nil
	}
	if len(clocks) > 0 {
		p.Clocks = slices.Repeat([]platform.ClockID{platform.InForce}, len(g.Tasks))
	}
	err := set("clock", clocks, func(t int, d *platform.Device, name string) (ok bool) {
		p.Clocks[t], ok = d.ClockByName(name)
		return ok && name != ""
	})
	if err != nil {
		return err
	}
	if len(sleeps) > 0 {
		p.Sleeps = make([]int32, len(g.Tasks))
	}
	return set("sleep state", sleeps, func(t int, d *platform.Device, name string) bool {
		p.Sleeps[t] = 1 + int32(slices.IndexFunc(d.Sleeps, func(s platform.SleepState) bool { return s.Name == name }))
		return p.Sleeps[t] > 0
	})
}

// StateNames are the clocks and sleep states of a plan by the names of its tasks.
func (p *Plan) StateNames(g *dag.Graph, on *platform.Platform) (clocks, sleeps map[string]string) {
	clocks, sleeps = map[string]string{}, map[string]string{}
	for t, id := range p.devices(g, on) {
		if id < 0 {
			continue
		}
		d, name := &on.Devices[id], g.Tasks[t].Name
		if p.Clocks != nil && p.Clocks[t] != platform.InForce {
			clocks[name] = d.ClockAt(p.Clocks[t]).Name
		}
		if p.Sleeps != nil && p.Sleeps[t] > 0 {
			sleeps[name] = d.Sleeps[p.Sleeps[t]-1].Name
		}
	}
	return clocks, sleeps
}
