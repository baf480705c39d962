package emulated

import (
	"slices"
	"sync"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// states makes the units of emulated devices obey clocks and sleep. Before a launch the
// stream waits as long as the unit takes to wake, and for the clock: that changes when nothing runs
// in its domain, and requests are served in their order, as in a simulation. Times count from the
// opening of the device.
type states struct {
	device *device
	mu     sync.Mutex
	turn   sync.Cond // something has ended
	units  []unit
	queue  []clockRequest // not served yet, in order
	issued int64

	record   bool
	zero     time.Duration // the base of a recorded run
	switches []schedule.Change
}

// unit is one worker. The clock of a domain is kept at the domain's first worker.
type unit struct {
	schedule.Sleeper
	admitted bool  // it holds its domain
	ran      bool  // and its task has ended
	sleeps   int32 // what the plan lets it do then, as an index plus 1
	first    platform.WorkerID

	clock   platform.ClockID // of a domain
	running int
	settled time.Duration // when its clock has changed
}

// clockRequest is a launch that waits for its clock.
type clockRequest struct {
	number int64
	domain platform.WorkerID
}

// newStates returns nil where nothing ever changes.
func newStates(d *device) *states {
	p := d.platform
	if !slices.ContainsFunc(p.Devices, func(v platform.Device) bool {
		return v.Memory == d.memory && len(v.Sleeps)+len(v.Clocks) > 0
	}) {
		return nil
	}
	st := &states{device: d, units: make([]unit, len(p.Workers))}
	st.turn.L = &st.mu
	return st
}

// begin starts a run. The streams rest.
func (st *states) begin(record bool, zero time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	p := st.device.platform
	st.record, st.zero, st.switches, st.queue = record, zero, st.switches[:0], st.queue[:0]
	for i, w := range p.Workers {
		d := &p.Devices[w.Device]
		u := &st.units[i]
		*u = unit{Sleeper: schedule.NewSleeper(d.Sleeps, w.Device, schedule.UnitOfChange(p, platform.WorkerID(i)), -1), first: platform.WorkerID(i), clock: d.AtClock}
		u.Idle(st.device.now(), 0)
		if !d.UnitClocks {
			u.first -= platform.WorkerID(w.Index)
		}
	}
}

// admit waits until a call may run, and takes its domain. False means that the device is closed or
// lost.
func (st *states) admit(c *call) bool {
	st.mu.Lock()
	u := &st.units[c.worker]
	if u.admitted && !u.ran {
		st.mu.Unlock()
		return true // it was prepared
	}
	st.release(u)
	domain := &st.units[u.first]
	st.issued++
	mine := clockRequest{st.issued, u.first}
	st.queue = append(st.queue, mine)
	for !st.isNext(mine) || domain.clock != c.clock && domain.running > 0 {
		if st.device.closed.Load() || st.device.failed.Load() != nil {
			st.mu.Unlock()
			return false
		}
		st.turn.Wait()
	}
	st.queue = slices.DeleteFunc(st.queue, func(r clockRequest) bool { return r == mine })
	st.turn.Broadcast()
	from := u.Wake(st.device.now())
	if !st.record {
		u.Changes = u.Changes[:0]
	}
	if domain.clock != c.clock {
		change := schedule.ChangeOfClock(st.device.platform, c.worker, c.clock, from)
		if domain.clock, domain.settled = c.clock, change.End; st.record {
			st.switches = append(st.switches, change)
		}
	}
	from = max(from, domain.settled)
	domain.running++
	u.admitted, u.sleeps = true, c.sleeps
	st.mu.Unlock()
	sleepUntil(st.device.epoch.Add(from))
	return true
}

// isNext reports whether no earlier request waits for the same domain.
func (st *states) isNext(mine clockRequest) bool {
	return !slices.ContainsFunc(st.queue, func(r clockRequest) bool { return r.domain == mine.domain && r.number < mine.number })
}

// ended notes that the task of a unit has ended. It keeps its domain until its end is recorded, or
// its next task comes, so that no change of the clock begins before the end.
func (st *states) ended(w platform.WorkerID) {
	st.mu.Lock()
	st.units[w].ran = true
	st.mu.Unlock()
}

// recorded notes that the end of a unit's task was recorded, if it has ended.
func (st *states) recorded(w platform.WorkerID) {
	st.mu.Lock()
	st.release(&st.units[w])
	st.mu.Unlock()
}

// release frees the domain of a unit whose task has ended.
func (st *states) release(u *unit) {
	if !u.ran {
		return
	}
	u.admitted, u.ran = false, false
	st.units[u.first].running--
	u.Idle(st.device.now(), u.sleeps)
	st.turn.Broadcast()
}

// changes lists the changes in a recorded run.
func (st *states) changes() []schedule.Change {
	st.mu.Lock()
	defer st.mu.Unlock()
	all := slices.Clone(st.switches)
	for i := range st.units {
		if p := st.device.platform; p.Devices[p.Workers[i].Device].Memory == st.device.memory {
			st.units[i].Rest(st.device.now())
			all = append(all, st.units[i].Changes...)
		}
	}
	for i := range all {
		all[i].Start -= st.zero
		all[i].End -= st.zero
	}
	return all
}
