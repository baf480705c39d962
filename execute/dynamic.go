package execute

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

var errStall = errors.New("the policy leaves every worker idle with tasks left")

// dispatcher drives the Engine from the workers, under one lock, where all tasks run in one memory. A worker
// gets a task through its inbox: the team publishes the count of tasks handed to it, like the count of
// ended tasks in a replay.
type dispatcher struct {
	mu      sync.Mutex
	engine  *policy.Engine
	at      time.Duration // of the event in progress
	cmds    []policy.Command
	running int     // number of tasks in progress
	inbox   []inbox // by worker
}

// inbox is the task last handed to a worker, and how many were handed so far. The dispatcher
// writes it under its lock before it publishes the count. The worker reads it after it has seen
// the count. The next task comes only after this one is done.
type inbox struct {
	next   dag.Instance
	handed int64
}

func newDispatcher(p *schedule.Problem, scheduler policy.Scheduler) (*dispatcher, error) {
	workers := len(p.Platform.Workers)
	d := &dispatcher{cmds: make([]policy.Command, 0, 2*workers), inbox: make([]inbox, workers)}
	var err error
	d.engine, err = policy.NewEngine(p, scheduler, func() time.Duration { return d.at })
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

// done reports the end of a worker's task and hands out the next tasks.
func (d *dispatcher) done(j *job, w platform.WorkerID, at time.Duration) {
	d.lock(j)
	defer d.mu.Unlock()
	d.running--
	d.at = max(d.at, at) // another worker may have ended later and reported earlier
	d.cmds = d.engine.Done(w, d.cmds[:0])
	d.deliver(j)
}

// deliver hands out the tasks that the Engine commands.
func (d *dispatcher) deliver(j *job) {
	for _, c := range d.cmds {
		d.running++
		box := &d.inbox[c.Worker]
		box.next = c.Instance
		box.handed++
		j.team.publish(int(c.Worker), box.handed)
	}
	err := d.engine.Err()
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

// serve runs the tasks that the dispatcher hands to the worker, until the run ends.
func (w *worker) serve(j *job) {
	d := j.dynamic
	if w.id == j.starter { // started here, so that a panic of the policy is caught like any other
		d.start(j)
	}
	for handed := int64(1); j.team.await(w.id, w.id, handed); handed++ {
		i := d.inbox[w.id].next
		if !w.run(j, int32(i.Task), i.Step, i.Step) {
			return
		}
		d.done(j, platform.WorkerID(w.id), w.ended)
	}
}
