package schedule

import (
	"time"

	"dahl/platform"
)

// Pace is the model of when tasks start and how long they take, for a world that has
// no clock of its own. Beside the cost of a task it knows
//
//   - dispatch, which precedes every kernel
//   - the hand-off: a worker that had nothing to do when its task became ready
//     learns of it from another worker, which takes longer; and longer still when it
//     had waited so long that it sleeps (Device.Handoff, WakeAfter, Wake)
//   - the first step of a run, in which a task takes what was measured there, if that
//     is more: it touches memory for the first time
//
// A worker waits from the end of its task before, or from the start of the run. What
// it waits for ended on another worker or arrived from another memory, since its own
// tasks have ended when it begins to wait.
type Pace struct {
	p    *Problem
	free []time.Duration // by worker: since when it has had nothing to run
}

// NewPace prepares a run.
func NewPace(p *Problem) *Pace {
	return &Pace{p: p, free: make([]time.Duration, len(p.Platform.Workers))}
}

// Start is when the kernel of a task begins that a worker is given now and that became
// ready at some time.
func (c *Pace) Start(w platform.WorkerID, now, ready time.Duration) time.Duration {
	d := &c.p.Platform.Devices[c.p.Platform.Workers[w].Device]
	start := now + d.Dispatch
	switch waited := ready - c.free[w]; {
	case waited <= 0:
	case d.Wake > 0 && waited >= d.WakeAfter:
		start += d.Wake
	default:
		start += d.Handoff
	}
	return start
}

// End notes that what a worker began ends at some time.
func (c *Pace) End(w platform.WorkerID, at time.Duration) { c.free[w] = at }

// Takes is how long an instance runs on a device that can run it.
func (p *Problem) Takes(i Instance, d platform.DeviceID) time.Duration {
	c := &p.Costs.ByClass[p.Costs.Class[i.Task]][d]
	if i.Step == 0 {
		return max(c.Duration, c.First)
	}
	return c.Duration
}
