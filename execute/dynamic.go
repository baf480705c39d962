package execute

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

var (
	errCopy  = errors.New("the engine moves a region, and there is only one memory")
	errStall = errors.New("the policy leaves every worker idle with tasks left")
)

// dispatcher drives the Engine from the workers, under one lock. What it hands
// to a worker travels through that worker's inbox: the count of tasks handed is
// published in the team like the count of tasks ended in a replay.
type dispatcher struct {
	mu      sync.Mutex
	engine  *schedule.Engine
	at      time.Duration // of the event in progress
	cmds    []schedule.Command
	running int
	inbox   []inbox // by worker
}

// inbox is the task last handed to a worker, and how many were so far. The
// dispatcher writes it under its lock before it publishes; the worker reads it
// after it has seen the count, and the next one comes only after it is done.
type inbox struct {
	next   schedule.Instance
	handed int64
}

func newDispatcher(p *schedule.Problem, policy schedule.Policy, j *job) (*dispatcher, error) {
	workers := len(p.Platform.Workers)
	d := &dispatcher{cmds: make([]schedule.Command, 0, 2*workers), inbox: make([]inbox, workers)}
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

// lock takes the lock. It is held for less than it takes to put a thread to sleep and
// wake it, so a worker with a core of its own first tries for a while.
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

// done reports the end of a worker's task at a time and hands out what follows.
func (d *dispatcher) done(j *job, w int, at time.Duration) {
	d.lock(j)
	defer d.mu.Unlock()
	d.running--
	d.at = max(d.at, at) // another worker may have ended later and been here first
	d.cmds = d.engine.Done(platform.WorkerID(w), d.cmds[:0])
	d.deliver(j)
}

// deliver carries out the Engine's commands.
func (d *dispatcher) deliver(j *job) {
	err := d.engine.Err()
	for _, c := range d.cmds {
		if c.Kind != schedule.RunTask {
			err = errCopy
			break
		}
		box := &d.inbox[c.Worker]
		box.next = c.Instance
		box.handed++
		d.running++
		j.team.publish(int(c.Worker), box.handed)
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

// serve runs what the dispatcher hands to the worker until the run ends.
func (w *worker) serve(j *job) {
	d := j.dynamic
	if w.id == 0 { // here, so that a panic of the policy is caught like any other
		d.start(j)
	}
	for handed := int64(1); j.team.await(w.id, w.id, handed); handed++ {
		i := d.inbox[w.id].next
		if !w.run(j, int32(i.Task), i.Step) {
			return
		}
		d.done(j, w.id, w.ended)
	}
}
