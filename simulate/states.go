package simulate

import (
	"fmt"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// States of devices and links.
//
// A unit runs a task only awake, at the clock that the plan gives the task, and when the power of
// everything stays below the caps. A start by a driver is a request. Requests are served in the order in which they
// came, again after each event:
//
//   - Sleep. A unit that has idled for SleepState.After enters the state. Where a plan lets a unit sleep after a
//     task, it does so at the task's end. A task leaves the state first. No event is needed: when a
//     task comes, or the run ends, it is known what the unit did since its last task.
//   - Clocks. A task at another clock than its domain's waits until nothing runs there, and requests
//     behind it wait too, so that the domain drains. Then the clock changes and the task starts.
//   - Caps. A request waits until the power with it is no more than the cap (draw.go). Others
//     that fit may pass it.
//
// Links sleep like units. They have no clocks.
type states struct {
	*simulation
	units   []resting // by worker
	links   []resting
	flows   []int32            // by link: transfers that have started and not ended
	moving  map[int32]bool     // transfers of the schedule, by index
	domain  []int32            // by worker: the first worker of its clock domain
	clocks  []platform.ClockID // by domain: its clock
	settled []time.Duration    // by domain: when its clock has changed
	running []int32            // by domain
	draw    *draw              // nil means no cap
	waiting []request
	// servedAt is the last time at which requests are served because a change is over.
	servedAt time.Duration
	drains   []bool // by domain, while serving: a request waits for another clock
}

// request is a task or a transfer that a driver started.
type request struct {
	worker platform.WorkerID // -1: a transfer
	i, as  dag.Instance
	ready  time.Duration
	id     int32 // of a transfer
	moves  schedule.Transfer
}

// resting is a unit or a link that goes to sleep when it idles.
type resting struct {
	schedule.Sleeper
	busy  bool
	task  dag.TaskID    // of a unit: the last one
	awake time.Duration // when it could begin its last work
}

// newStates returns nil where nothing ever changes.
func newStates(s *simulation) *states {
	p := s.p.Platform
	if !p.HasStates() && s.p.Clocks == nil && s.p.Sleeps == nil {
		return nil
	}
	n := len(p.Workers)
	st := &states{simulation: s, links: make([]resting, len(p.Links)), flows: make([]int32, len(p.Links)), moving: map[int32]bool{}, domain: make([]int32, n),
		clocks: make([]platform.ClockID, n), settled: make([]time.Duration, n), running: make([]int32, n), drains: make([]bool, n)}
	for i, w := range p.Workers {
		d := &p.Devices[w.Device]
		st.domain[i], st.clocks[i] = int32(i), d.AtClock
		if !d.UnitClocks {
			st.domain[i] -= int32(w.Index)
		}
		st.units = append(st.units, resting{Sleeper: schedule.NewSleeper(d.Sleeps, w.Device, schedule.UnitOfChange(p, platform.WorkerID(i)), -1)})
	}
	for l := range p.Links {
		st.links[l].Sleeper = schedule.NewSleeper(p.Links[l].Sleeps, -1, -1, platform.LinkID(l))
	}
	st.draw = newDraw(s.p, st.clocks)
	return st
}

// serve starts the requests that can start.
func (st *states) serve() {
	if len(st.waiting) == 0 {
		return
	}
	clear(st.drains)
	kept := st.waiting[:0]
	for _, r := range st.waiting {
		if !st.start(&r) {
			kept = append(kept, r)
		}
	}
	st.waiting = kept
	if at := st.draw.nextOver(st.now); len(kept) > 0 && at > st.now && at != st.servedAt {
		st.servedAt = at
		st.events.Push(event{at: at, kind: changeOver})
	}
}

func (st *states) start(r *request) bool {
	if r.worker < 0 {
		return st.startTransfer(r)
	}
	domain := st.domain[r.worker]
	clock, _ := st.p.StatesOf(r.i.Task, st.p.Platform.Workers[r.worker].Device)
	switch {
	case st.units[r.worker].busy || st.drains[domain]:
		return false
	case clock != st.clocks[domain] && st.running[domain] > 0:
		st.drains[domain] = true
		return false
	case !st.draw.admitsTask(st.p, r, clock, domain, st.now):
		return false
	}
	unit := &st.units[r.worker]
	st.wake(unit)
	unit.task = r.i.Task
	if clock != st.clocks[domain] {
		change := schedule.ChangeOfClock(st.p.Platform, r.worker, clock, unit.awake)
		st.clocks[domain], st.settled[domain] = clock, change.End
		st.out.Changes = append(st.out.Changes, change)
	}
	st.running[domain]++
	st.begin(r.i, r.as, r.worker, r.ready, max(unit.awake, st.settled[domain]))
	return true
}

// wake ends the idle time of something now.
func (st *states) wake(n *resting) {
	n.busy, n.awake = true, n.Wake(st.now)
}

// taskEnded notes that the task of a worker has ended.
func (st *states) taskEnded(w platform.WorkerID) {
	unit := &st.units[w]
	_, planned := st.p.StatesOf(unit.task, st.p.Platform.Workers[w].Device)
	unit.busy = false
	unit.Idle(st.now, planned)
	st.running[st.domain[w]]--
	st.draw.ended(w)
}

func (st *states) startTransfer(r *request) bool {
	uses := st.p.Platform.LinkUses(r.moves.From, r.moves.To)
	if !st.draw.admitsTransfer(uses, st.now) {
		return false
	}
	from := st.now
	for _, use := range uses {
		link := &st.links[use.Link]
		if st.flows[use.Link]++; st.flows[use.Link] == 1 {
			st.wake(link)
		}
		from = max(from, link.awake)
	}
	r.moves.Start = from
	st.moving[r.id] = true
	st.move(r.id, r.moves)
	return true
}

// transferEnded notes that a transfer has ended. A move that is no transfer of the schedule has used no link.
func (st *states) transferEnded(copy int32, t *schedule.Transfer) {
	if !st.moving[copy] {
		return
	}
	delete(st.moving, copy)
	uses := st.p.Platform.LinkUses(t.From, t.To)
	st.draw.moves(uses, -1)
	for _, use := range uses {
		if st.flows[use.Link]--; st.flows[use.Link] == 0 {
			link := &st.links[use.Link]
			link.busy = false
			link.Idle(st.now, 0)
		}
	}
}

// complete adds the sleep of all units and links until the end of the run.
func (st *states) complete() {
	var end time.Duration
	for i := range st.out.Spans {
		end = max(end, st.out.Spans[i].End)
	}
	for _, list := range [][]resting{st.units, st.links} {
		for i := range list {
			if !list[i].busy {
				list[i].Rest(end)
			}
			st.out.Changes = append(st.out.Changes, list[i].Changes...)
		}
	}
}

// stuck names a request that waits although nothing runs or moves any more.
func (st *states) stuck() error {
	r := &st.waiting[0]
	if r.worker < 0 {
		return fmt.Errorf("a transfer for task %q draws more than a power_cap leaves even when nothing else runs; raise the cap", st.p.Graph.Tasks[r.moves.For].Name)
	}
	return fmt.Errorf("task %q on %q draws more than a power_cap leaves even when nothing else runs; raise the cap, or plan another device or clock for it",
		st.p.Graph.Tasks[r.i.Task].Name, st.p.Platform.Workers[r.worker].Name)
}
