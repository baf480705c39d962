package energy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/platform"
)

// Cap is a cap of the platform with the greatest power of the run.
type Cap struct {
	Of            string  `json:"of"` // a device, a node with its host, or "the machine" with all hosts
	CapWatts      float64 `json:"cap_watts"`
	GreatestWatts float64 `json:"greatest_watts"`
}

// wholeMachine names the cap of the platform.
const wholeMachine = "the machine"

// CheckCaps fails where the run reached more than a cap, beyond rounding. A simulated run never does.
func (r *Report) CheckCaps() error {
	const rounding = 1e-9
	for _, c := range r.Caps {
		if c.GreatestWatts > float64(c.CapWatts*(1+rounding)) {
			return fmt.Errorf("%s draws %.6g W, above its cap of %g W", c.Of, c.GreatestWatts, c.CapWatts)
		}
	}
	return nil
}

// caps lists the caps of the platform.
func (a *account) caps() (caps []Cap) {
	pl := a.p.Platform
	if pl.CapWatts > 0 {
		caps = append(caps, Cap{wholeMachine, pl.CapWatts, a.greatestWatts(0, func(int) bool { return true })})
	}
	for i := range pl.Nodes {
		used := slices.ContainsFunc(pl.Devices, func(d platform.Device) bool { return pl.NodeOf(d.Memory) == platform.NodeID(i) })
		if n := &pl.Nodes[i]; n.CapWatts > 0 && used {
			caps = append(caps, Cap{n.Name, n.CapWatts, a.greatestWatts(n.HostPower.Value, func(trace int) bool {
				return trace > 0 && trace <= len(pl.Devices) && pl.NodeOf(pl.Devices[trace-1].Memory) == platform.NodeID(i)
			})})
		}
	}
	for i := range pl.Devices {
		if d := &pl.Devices[i]; d.CapWatts > 0 {
			c := Cap{Of: d.Name, CapWatts: d.CapWatts}
			for _, s := range a.traces[1+i].Samples {
				c.GreatestWatts = max(c.GreatestWatts, s.Watts)
			}
			caps = append(caps, c)
		}
	}
	return caps
}

// greatestWatts is the greatest power of some consumers together, by the numbers of their traces, above watts that are always drawn. The mean rates of transfers over a
// link may add up to more than it has; it then draws what it does when it is full.
func (a *account) greatestWatts(always float64, counts func(trace int) bool) (greatest float64) {
	type step struct {
		at    time.Duration
		trace int
		watts float64
	}
	var steps []step
	for i, t := range a.traces {
		if !counts(i) {
			continue
		}
		for _, s := range t.Samples {
			if l := i - 1 - len(a.p.Platform.Devices); l >= 0 && a.p.Platform.Links[l].Sharing != platform.Fatpipe {
				s.Watts = min(s.Watts, a.p.Platform.Links[l].BusyWatts)
			}
			steps = append(steps, step{s.At, i, s.Watts})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	now := make([]float64, len(a.traces))
	for i, s := range steps {
		now[s.trace] = s.watts
		if i+1 < len(steps) && steps[i+1].at == s.at {
			continue
		}
		sum := always
		for _, watts := range now {
			sum += watts
		}
		greatest = max(greatest, sum)
	}
	return greatest
}
