package policy

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// Engine is the state machine that serves the scheduler of an [Online] policy in both worlds, where all tasks run
// in one memory. It knows which instances are ready; the scheduler decides the rest. The caller passes
// events in (Start, Done) and gets commands back.
//
// For several memories the Engine serves [Online.Plan] alone, over the times that [heftTransfers] expects.
//
// The Engine has no clock and no threads. It reads now once per event, for [Engine.ReadyAt] and
// for the estimates that it gives the scheduler. Equal events at equal times in equal order give
// equal commands.
//
// A caller with several threads holds one lock around each call.
type Engine struct {
	p        *schedule.Problem
	policy   Scheduler
	view     View
	now      func() time.Duration
	at       time.Duration // of the event in progress
	err      error
	ready    int   // instances made ready and not handed out
	begun    int32 // furthest step of which one was handed out
	released []dag.Instance

	steps     *ready.Steps
	instances []instance // by slot of steps
	workers   []workerState
	idle      []uint64 // set of workers that have been given nothing to run
	ahead     []uint64 // set of workers that run a task and may be given another
	fit       *schedule.Fit

	moves *heftTransfers // of a plan for several memories; nil in one memory
}

// Command tells the driver of the Engine to run an instance on a worker, after those commanded before.
type Command struct {
	Instance dag.Instance
	Worker   platform.WorkerID
}

// instance is the state of one execution of a task.
type instance struct {
	readyAt time.Duration
	worker  platform.WorkerID // Undecided until it has one
	phase   phase
}

type phase uint8

const (
	blocked phase = iota
	untaken
	taken
)

// workerState holds the instances that a worker was told to run. A core is told one at a time: it asks by
// itself when its task ends, and by then more is known about which task to give it. A worker away from the
// host's memory is told the next one while it runs one, so that operands move meanwhile.
type workerState struct {
	runs   []dag.Instance // the first of them now
	most   int            // how many it may be told at once
	until  time.Duration  // when they should end
	queued time.Duration  // sum of the times of tasks that were assigned and not yet commanded
	ends   time.Duration  // when the last assigned task should end
}

// NewEngine prepares a run in one memory. It fails when the problem is not complete, or when a task can run
// nowhere.
func NewEngine(p *schedule.Problem, policy Scheduler, now func() time.Duration) (*Engine, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	e := &Engine{p: p, policy: policy, now: now, steps: ready.New(p.Graph.Links, p.Steps, p.Orders(), ready.ByPriority(p.Graph), 0)}
	var err error
	if e.fit, err = schedule.NewFit(p); err != nil {
		return nil, err
	}
	e.instances = make([]instance, int(ready.Ring(p.Graph.Links, p.Steps, 0))*len(p.Graph.Tasks))
	e.released = make([]dag.Instance, 0, len(p.Graph.Tasks))
	workers := len(p.Platform.Workers)
	e.workers = make([]workerState, workers)
	e.idle, e.ahead = make([]uint64, (workers+63)/64), make([]uint64, (workers+63)/64)
	for w := range workers {
		e.workers[w].most = 1
		if p.Platform.MemoryOf(platform.WorkerID(w)) != p.Platform.HostMemory() {
			e.workers[w].most = 2
		}
		e.workers[w].runs = make([]dag.Instance, 0, e.workers[w].most)
		e.asks(platform.WorkerID(w))
	}
	e.view = View{Problem: p, Fit: e.fit, FreeAt: e.freeAt, MissingBytes: e.missingBytes, Arrival: e.arrival, order: e.steps}
	return e, nil
}

// Start begins the run.
func (e *Engine) Start(cmds []Command) []Command {
	e.at, e.view.Released = e.now(), Undecided
	e.steps.Begin(nil)
	return e.settle(cmds)
}

// Done takes the end of a worker's task, the first one commanded of those in progress.
func (e *Engine) Done(w platform.WorkerID, cmds []Command) []Command {
	state := &e.workers[w]
	if len(state.runs) == 0 {
		panic("policy: Done of a worker that runs nothing")
	}
	e.at, e.view.Released = e.now(), w
	i := state.runs[0]
	state.runs = slices.Delete(state.runs, 0, 1)
	e.asks(w)
	e.instances[e.steps.Slot(i)].phase = blocked // the slot is free for a later step
	e.moves.wrote(i.Task, e.p.Platform.MemoryOf(w), e.at)
	e.steps.End(i)
	return e.settle(cmds)
}

// Finished reports whether every task of every step has ended.
func (e *Engine) Finished() bool { return e.steps.Finished() }

// Err returns the error that stopped the run: a missing route, or a scheduler against the rules.
// No commands follow an error.
func (e *Engine) Err() error { return e.err }

// ReadyAt is when the last predecessor of an instance had ended. The value holds until the
// instance's task ends.
func (e *Engine) ReadyAt(i dag.Instance) time.Duration { return e.instances[e.steps.Slot(i)].readyAt }

// settle shows the scheduler the instances that became ready and gives tasks to workers, first to idle ones.
func (e *Engine) settle(cmds []Command) []Command {
	e.released = e.steps.TakeReleased(e.released)
	for _, i := range e.released {
		e.makeReady(i)
	}
	return e.offer(e.ahead, e.offer(e.idle, cmds))
}

// offer has the scheduler choose tasks for a set of workers.
func (e *Engine) offer(to []uint64, cmds []Command) []Command {
	for word, set := range to {
		for ; set != 0 && e.ready > 0 && e.err == nil; set &= set - 1 {
			w := platform.WorkerID(64*word + bits.TrailingZeros64(set))
			i, ok := e.policy.Next(&e.view, w)
			for ok && e.dropped(i) {
				i, ok = e.policy.Next(&e.view, w)
			}
			if ok {
				cmds = e.handOut(w, i, cmds)
			}
		}
	}
	return cmds
}

// EndAtStep makes the furthest step with a task given to a worker the last one, and returns it.
// The first step always runs.
func (e *Engine) EndAtStep() (last int32) {
	e.steps.Cut(e.begun + 1)
	return e.begun
}

// exists reports whether the graph has the task of an instance, and whether its step has not ended.
func (e *Engine) exists(i dag.Instance) bool {
	return i.Task >= 0 && int(i.Task) < len(e.p.Graph.Tasks) && i.Step >= e.steps.First() && int(i.Step) < e.p.Steps
}

// dropped takes a ready instance of a step away that will not run, and reports whether it has.
func (e *Engine) dropped(i dag.Instance) bool {
	if !e.steps.IsCut(i.Step) || !e.exists(i) {
		return false // where it does not exist, handing it out says so
	}
	x := &e.instances[e.steps.Slot(i)]
	if x.phase != untaken {
		return false
	}
	x.phase = taken
	e.ready--
	return true
}

// asks notes whether a worker may be given a task now.
func (e *Engine) asks(w platform.WorkerID) {
	state, bit := &e.workers[w], uint64(1)<<(w%64)
	e.idle[w/64] &^= bit
	e.ahead[w/64] &^= bit
	switch n := len(state.runs); {
	case n == 0:
		e.idle[w/64] |= bit
	case n < state.most:
		e.ahead[w/64] |= bit
	}
}

func (e *Engine) makeReady(i dag.Instance) {
	e.ready++
	e.instances[e.steps.Slot(i)] = instance{readyAt: e.at, worker: Undecided, phase: untaken}
	if e.err != nil {
		return
	}
	if w := e.policy.Ready(&e.view, i); w != Undecided && e.allows(w, i) {
		e.assign(w, i)
	}
}

// allows reports whether a worker exists that may run an instance.
func (e *Engine) allows(w platform.WorkerID, i dag.Instance) bool {
	if int(w) < 0 || int(w) >= len(e.workers) {
		e.err = fmt.Errorf("the policy put task %q on worker %d, which does not exist", e.p.Graph.Tasks[i.Task].Name, w)
		return false
	}
	if !e.fit.CanRun(i.Task, w) {
		e.err = fmt.Errorf("the policy put task %q on worker %q, %s", e.p.Graph.Tasks[i.Task].Name, e.p.Platform.Workers[w].Name, e.fit.Refusal(i.Task, w))
		return false
	}
	return true
}

// assign gives an instance to a worker that may run it. In a plan for several memories its operands are sent there.
func (e *Engine) assign(w platform.WorkerID, i dag.Instance) {
	x := &e.instances[e.steps.Slot(i)]
	if x.worker != Undecided {
		e.workers[x.worker].queued -= e.fit.Occupies(i.Task, x.worker)
	}
	x.worker = w
	arrives, routed := e.moves.fetch(i.Task, e.p.Platform.MemoryOf(w), e.at)
	if !routed {
		e.err = fmt.Errorf("the policy put task %q on worker %q, to which no route brings its operands", e.p.Graph.Tasks[i.Task].Name, e.p.Platform.Workers[w].Name)
	}
	e.workers[w].ends = max(e.freeAt(w), arrives) + e.fit.Occupies(i.Task, w)
	e.workers[w].queued += e.fit.Occupies(i.Task, w)
	e.fit.Give(i.Task, w)
}

// handOut gives a worker the instance that the scheduler chose for it.
func (e *Engine) handOut(w platform.WorkerID, i dag.Instance, cmds []Command) []Command {
	if !e.exists(i) || e.instances[e.steps.Slot(i)].phase != untaken {
		e.err = fmt.Errorf("the policy chose task %d of step %d, which is not ready", i.Task, i.Step)
		return cmds
	}
	x := &e.instances[e.steps.Slot(i)]
	if x.worker != w {
		if !e.allows(w, i) {
			return cmds
		}
		if e.assign(w, i); e.err != nil {
			return cmds
		}
	}
	x.phase = taken
	e.ready--
	e.begun = max(e.begun, i.Step)
	state, takes := &e.workers[w], e.fit.Occupies(i.Task, w)
	state.queued -= takes
	state.until = e.startsAt(w, i) + takes
	state.runs = append(state.runs, i)
	e.asks(w)
	return append(cmds, Command{i, w})
}

// startsAt is when a worker is expected to start an instance that it is told to run now: after those that it was told
// before, when the operands have come.
func (e *Engine) startsAt(w platform.WorkerID, i dag.Instance) time.Duration {
	at := e.at
	if len(e.workers[w].runs) > 0 {
		at = max(at, e.workers[w].until)
	}
	return max(at, e.arrival(i, e.p.Platform.MemoryOf(w)))
}

// freeAt estimates when a worker has done the tasks it was given.
func (e *Engine) freeAt(w platform.WorkerID) time.Duration {
	at, s := e.at, &e.workers[w]
	if len(s.runs) > 0 {
		at = max(at, s.until)
	}
	if s.queued > 0 {
		at = max(at+s.queued, s.ends)
	}
	return at
}

// Never is later than any time of a run.
const Never = 2 * schedule.LongestRun

func (e *Engine) arrival(i dag.Instance, m platform.MemoryID) time.Duration {
	at, routed := e.moves.arrive(i.Task, m, e.at)
	if !routed {
		return Never
	}
	return at
}

func (e *Engine) missingBytes(i dag.Instance, m platform.MemoryID) int64 {
	return e.moves.missing(i.Task, m, e.at)
}
