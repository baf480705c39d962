package execute

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

var (
	errCopy  = errors.New("the engine moves a region, and there is only one memory")
	errStall = errors.New("the policy leaves every worker idle with tasks left")
)

// dispatcher drives the Engine from the workers and devices, under one lock. A cpu worker gets a
// task through its inbox: the team publishes the count of tasks handed to it, like the count of
// ended tasks in a replay. A device gets an order in its own inbox.
//
// The Engine hears of the end of a task or copy when the host has seen it. It commands a task
// only when the task waits for nothing but the one that runs on its device worker. So devices
// wait for no events here: operands have arrived before a kernel is issued, bytes are freed after
// it has ended, and the tasks of a worker follow each other on its stream.
type dispatcher struct {
	mu        sync.Mutex
	engine    *schedule.Engine
	at        time.Duration // of the event in progress
	cmds      []schedule.Command
	running   int       // number of tasks and copies in progress
	inbox     []inbox   // by worker
	devices   []*device // by memory; nil: there is none
	platform  *platform.Platform
	evictions []schedule.Eviction // of a recorded run
}

// inbox is the task last handed to a worker, and how many were handed so far. The dispatcher
// writes it under its lock before it publishes the count. The worker reads it after it has seen
// the count. The next task comes only after this one is done.
type inbox struct {
	next   dag.Instance
	handed int64
}

func newDispatcher(p *schedule.Problem, policy schedule.Policy, devices []*device) (*dispatcher, error) {
	workers := len(p.Platform.Workers)
	d := &dispatcher{cmds: make([]schedule.Command, 0, 2*workers), inbox: make([]inbox, workers), devices: devices, platform: p.Platform}
	var err error
	d.engine, err = schedule.NewEngine(p, policy, func() time.Duration { return d.at })
	return d, err
}

// start hands out the first tasks.
func (d *dispatcher) start(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cmds = d.engine.Start(d.cmds[:0])
	d.deliver(j)
}

// endAtStep makes the furthest step of which a task was handed out the last one.
func (d *dispatcher) endAtStep(j *job) (last int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last = d.engine.EndAtStep()
	if d.engine.Finished() { // only copies for later steps are on their way
		j.team.stop()
	}
	return last
}

// lock takes the lock. Whoever has it keeps it for less time than putting a thread to sleep and
// waking it takes, so a worker with a core of its own first tries for a while.
func (d *dispatcher) lock(j *job) {
	if j.team.spin > 0 {
		for range spinLoads {
			if d.mu.TryLock() {
				return
			}
		}
	}
	d.mu.Lock()
}

// done reports the end of a worker's task, or of a copy where w is -1, and hands out the next tasks.
func (d *dispatcher) done(j *job, w platform.WorkerID, c schedule.CopyID, at time.Duration) {
	d.lock(j)
	defer d.mu.Unlock()
	d.running--
	d.at = max(d.at, at) // another worker may have ended later and reported earlier
	if w >= 0 {
		d.cmds = d.engine.Done(w, d.cmds[:0])
	} else {
		d.cmds = d.engine.Copied(c, d.cmds[:0])
	}
	d.deliver(j)
}

// deliver carries out the Engine's commands.
func (d *dispatcher) deliver(j *job) {
	err := d.engine.Err()
	var now time.Duration
	if j.record && slices.ContainsFunc(d.cmds, isEviction) {
		now = j.now() // everything that follows from this event begins later
	}
	for i := range d.cmds {
		if err == nil {
			err = d.obey(j, &d.cmds[i], now)
		}
	}
	switch {
	case d.engine.Finished():
		j.team.stop()
	case err == nil && d.running == 0:
		err = errStall
	}
	if err != nil {
		j.fail(fmt.Errorf("execute: graph %q: %w", j.graph.graph.Name, err))
	}
}

func isEviction(c schedule.Command) bool { return c.Kind == schedule.EvictRegion }

// obey carries out one command of an event at time now.
func (d *dispatcher) obey(j *job, c *schedule.Command, now time.Duration) error {
	switch c.Kind {
	case schedule.RunTask:
		d.running++
		if to := d.devices[d.platform.MemoryOf(c.Worker)]; to != nil {
			to.hand(order{instance: c.Instance, worker: c.Worker})
			return nil
		}
		box := &d.inbox[c.Worker]
		box.next = c.Instance
		box.handed++
		j.team.publish(int(c.Worker), box.handed)
	case schedule.CopyRegion:
		d.running++
		t := d.engine.CopyAt(c.Copy)
		to := cmp.Or(d.devices[t.To], d.devices[t.From])
		if to == nil {
			return errCopy
		}
		to.hand(order{instance: c.Instance, worker: -1, copy: c.Copy, transfer: t})
	case schedule.EvictRegion:
		if j.record {
			e := *d.engine.EvictionAt(c.Eviction)
			e.At, e.Atoms = now, slices.Clone(e.Atoms)
			d.evictions = append(d.evictions, e)
		}
	}
	return nil
}

// serve runs the tasks that the dispatcher hands to the worker, until the run ends.
func (w *worker) serve(j *job) {
	d := j.dynamic
	if w.id == j.starter { // started here, so that a panic of the policy is caught like any other
		d.start(j)
	}
	for handed := int64(1); j.team.await(w.id, w.id, handed); handed++ {
		i := d.inbox[w.id].next
		if !w.run(j, int32(i.Task), i.Step) {
			return
		}
		d.done(j, platform.WorkerID(w.id), 0, w.ended)
	}
}
