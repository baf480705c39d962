package energy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"dahl/schedule"
)

// checkShare is how far two ways to add up the same joules may lie apart, relative to the total.
const checkShare = 1e-9

// Check verifies that a report of a schedule adds up: devices, links and host to the total, the
// parts of each to its whole, phases and layers to what ran and moved. It also integrates the
// platform's powers again, by other code than [FromSchedule] (see replay), and compares every
// consumer. A simulated schedule never draws more than the caps of the platform.
func (r *Report) Check(s *schedule.Schedule, p *schedule.Problem) error {
	if err := checkTimes(s, p); err != nil {
		return err
	}
	pl := p.Platform
	if len(r.ByDevice) != len(pl.Devices) || len(r.ByLink) != len(pl.Links) {
		return fmt.Errorf("joules of %d devices and %d links, want %d and %d", len(r.ByDevice), len(r.ByLink), len(pl.Devices), len(pl.Links))
	}
	again, err := newReplay(s, p)
	if err != nil {
		return err
	}
	if again.run(); s.World == schedule.Simulated && again.above != "" {
		return errors.New(again.above)
	}
	hostJ := pl.HostPower.Value * s.Makespan.Seconds()
	consumers := hostJ
	var idle, busy, transfer, sleep, switching, phases, layers float64
	var checks []sumCheck
	for c, e := range slices.Concat(r.ByDevice, r.ByLink) {
		a := &again.consumers[c]
		checks = append(checks,
			sumCheck{e.Name + ", idle", e.IdleJoules, a.idleJ},
			sumCheck{e.Name + ", above idle", e.BusyJoules + e.TransferJoules, a.activeJ},
			sumCheck{e.Name + ", asleep", e.SleepJoules, a.sleepJ}, sumCheck{e.Name + ", changes", e.SwitchingJoules, a.changeJ},
			sumCheck{e.Name, e.Joules, e.IdleJoules + e.BusyJoules + e.TransferJoules + e.SleepJoules + e.SwitchingJoules})
		consumers += a.idleJ + a.activeJ + a.sleepJ + a.changeJ
		idle, busy, transfer = idle+e.IdleJoules, busy+e.BusyJoules, transfer+e.TransferJoules
		sleep, switching = sleep+e.SleepJoules, switching+e.SwitchingJoules
	}
	for i := range r.ByPhase {
		phases += r.ByPhase[i].Joules
	}
	for i := range r.ByLayer {
		layers += r.ByLayer[i].Joules
	}
	checks = append(checks,
		sumCheck{"all idle parts", r.Causes.Idle, idle}, sumCheck{"all busy parts", r.Causes.Busy, busy},
		sumCheck{"all transfers", r.Causes.Transfer, transfer}, sumCheck{"the host", r.Causes.Host, hostJ},
		sumCheck{"all sleep", r.Causes.Sleep, sleep}, sumCheck{"all changes", r.Causes.Switching, switching},
		sumCheck{"devices, links and host", r.TotalJoules, consumers},
		sumCheck{"idle, busy, transfers, sleep, changes and host", r.TotalJoules, idle + busy + transfer + sleep + switching + r.Causes.Host},
		sumCheck{"all phases", phases, busy + transfer}, sumCheck{"all layers", layers, busy + transfer})
	if len(r.Caps) != len(again.greatest) && s.Makespan > 0 {
		return fmt.Errorf("%d caps in the report, and %d of the platform", len(r.Caps), len(again.greatest))
	}
	for _, c := range r.Caps {
		if at := again.greatest[c.Of]; !(math.Abs(c.GreatestWatts-at) <= checkShare*at) {
			return fmt.Errorf("%s reaches %.12g W in the report, and %.12g W when its power is added up again", c.Of, c.GreatestWatts, at)
		}
	}
	for _, c := range checks {
		if !(math.Abs(c.reported-c.again) <= checkShare*consumers) {
			return fmt.Errorf("the joules do not add up: %s: %.12g J, and added up again %.12g J, of %.6g J in all", c.what, c.reported, c.again, consumers)
		}
	}
	return nil
}

// sumCheck is one quantity by two ways.
type sumCheck struct {
	what            string
	reported, again float64
}
