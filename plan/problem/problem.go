package problem

import (
	"fmt"
	"slices"

	"dahl/platform"
	"dahl/schedule"
)

// Problem is one step. Nobody changes it.
type Problem struct {
	Platform *platform.Platform
	Workers  [][]platform.WorkerID // by task: those that may run it; equal lists are one
	Groups   []int32               // by task: the number of those that are to share a worker; -1 means it stands alone
	Clocks   [][]platform.ClockID  // by device: those that tasks may run at
	AtClock  []*schedule.Costs     // by clock: of devices that have it

	*Data // nil means nobody asked
}

// New is the problem of the first graph of a priced program. Calls run by some variants. Nil means the variants of the price.
// Tasks run at the clocks given by device, nil or a nil entry meaning all. It fails where a task can run
// nowhere.
func New(priced *schedule.Priced, variants schedule.Variants, clocks [][]platform.ClockID, data *Data) (p *Problem, err error) {
	p = &Problem{Platform: priced.Platform, Data: data}
	if p.Workers, p.Groups, err = priced.Eligible(0); err != nil {
		return nil, err
	}
	for id := range p.Platform.Devices {
		d := &p.Platform.Devices[id]
		free := Clocks(d, clocks, id)
		if len(free) == 0 {
			return nil, fmt.Errorf("none of the clocks allowed of device %q is one of its own", d.Name)
		}
		p.Clocks = append(p.Clocks, free)
		for len(p.AtClock) <= int(slices.Max(free)) {
			costs, err := priced.AtClock(0, platform.ClockID(len(p.AtClock)), variants)
			if err != nil {
				return nil, err
			}
			p.AtClock = append(p.AtClock, costs)
		}
	}
	return p, nil
}

// Clocks lists the clocks at which tasks may run on a device.
func Clocks(d *platform.Device, allowed [][]platform.ClockID, id int) (all []platform.ClockID) {
	for c := range d.NumClocks() {
		if id >= len(allowed) || allowed[id] == nil || slices.Contains(allowed[id], c) {
			all = append(all, c)
		}
	}
	return all
}

// RestWatts returns the least power of a unit that runs nothing. It begins at the clock in force, and may be
// at any of some.
func RestWatts(d *platform.Device, clocks []platform.ClockID) float64 {
	watts := d.ClockInForce().Idle
	for _, c := range clocks {
		watts = min(watts, d.ClockAt(c).Idle)
	}
	return platform.LeastWatts(watts, d.Sleeps)
}
