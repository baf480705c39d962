package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/ready"
)

// Engine is the state machine that serves policies in both worlds. It knows which instances are
// ready, where every region is valid and what is moving; the policy decides the rest. The caller
// passes events in (Start, Done, Copied) and gets commands back.
//
// The Engine has no clock and no threads. It reads now once per event, for [Engine.ReadyAt] and
// for the estimates that it gives the policy. Equal events at equal times in equal order give
// equal commands.
//
// A caller with several threads holds one lock around each call.
type Engine struct {
	p        *Problem
	policy   Policy
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
	idle      []uint64 // set of workers that run nothing and have taken nothing
	ahead     []uint64 // set of workers that run a task, have taken none, and may take one
	eligible  *eligibility

	// Nil where the only memory can hold everything: then all contents are valid there.
	resident  *residency
	copies    *copies
	foresight *foresight            // nil where some task may run at several memories
	evictions []Eviction            // of the event in progress
	workersAt [][]platform.WorkerID // by memory
}

// instance is what the Engine knows of one execution of a task.
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

// workerState holds what a worker was given: the task that it runs, and the task that it has
// taken to run next.
//
// A worker away from the host's memory takes its next task while one runs. The operands of the
// next task then move meanwhile, and the device goes on without waiting until the host has seen
// the end and answered. A core takes one task at a time: it asks by itself when its task ends,
// and by then more is known about which task to give it.
type workerState struct {
	runs   dag.Instance
	busy   bool // runs it
	takes  dag.Instance
	phase  workerPhase   // of the task in takes
	ahead  bool          // may take a task while it is busy
	until  time.Duration // when the commanded tasks should end
	queued time.Duration // sum of the times of tasks that were assigned and not yet commanded
	ends   time.Duration // when the last assigned task should end
}

type workerPhase uint8

const (
	resting    workerPhase = iota // the worker has taken nothing
	unadmitted                    // its task waits to be admitted to a memory
	fetching                      // its task waits for operands
	behind                        // its task is commanded and runs when the one before it has ended
)

// NewEngine prepares a run. It fails when the problem is not complete, when a task can run
// nowhere, or when the home of a buffer does not exist.
func NewEngine(p *Problem, policy Policy, now func() time.Duration) (*Engine, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	e := &Engine{p: p, policy: policy, now: now, steps: ready.New(p.Graph.Links, p.Steps, p.orders(), ready.ByPriority(p.Graph))}
	var err error
	if e.eligible, err = newEligibility(p); err != nil {
		return nil, err
	}
	e.instances = make([]instance, int(ready.Ring(p.Graph.Links, p.Steps))*len(p.Graph.Tasks))
	e.released = make([]dag.Instance, 0, len(p.Graph.Tasks))
	workers := len(p.Platform.Workers)
	e.workers = make([]workerState, workers)
	e.idle, e.ahead = make([]uint64, (workers+63)/64), make([]uint64, (workers+63)/64)
	for w := range workers {
		e.asks(platform.WorkerID(w))
	}
	resident, err := newResidency(p)
	if err != nil {
		return nil, err
	}
	for m := range p.Platform.Memories {
		if err := resident.overfull(platform.MemoryID(m)); err != nil {
			return nil, fmt.Errorf("before the first task: %w", err)
		}
	}
	if len(p.Platform.Memories) > 1 || p.mayOverflow() {
		e.resident = resident
		resident.wanted, resident.arriving = make([]uint64, p.Graph.NumAtoms()), make([]uint64, p.Graph.NumAtoms())
	}
	if len(p.Platform.Memories) > 1 {
		e.prepareCopies()
	}
	e.view = View{Problem: p, FreeAt: e.freeAt, MissingBytes: e.missingBytes, Arrival: e.arrival, eligible: e.eligible, order: e.steps}
	return e, nil
}

// mayOverflow reports whether the storages together exceed the only memory.
func (p *Problem) mayOverflow() bool {
	total, limit := int64(0), p.Platform.Memories[0].CapacityBytes
	for i := range p.Graph.Buffers {
		if p.Graph.Buffers[i].ViewOf == dag.None {
			total += p.Graph.Buffers[i].Bytes() * int64(p.Graph.Copies(dag.BufferID(i)))
		}
	}
	return limit > 0 && total > limit
}

// LongestRun bounds the sum of all durations of a run, so that no time overflows.
const LongestRun = time.Duration(1 << 61)

// check refuses problems that no engine can run.
func (p *Problem) check() error {
	switch {
	case p.Graph == nil || p.Platform == nil || p.Costs == nil:
		return errors.New("a problem needs a graph, a platform and costs")
	case p.Steps < 1:
		return fmt.Errorf("graph %q: %d steps; at least 1 is needed", p.Graph.Name, p.Steps)
	case len(p.Graph.Tasks) == 0:
		return fmt.Errorf("graph %q has no tasks", p.Graph.Name)
	case len(p.Platform.Workers) == 0 || len(p.Platform.Memories) == 0:
		return fmt.Errorf("platform %q has no workers or no memory", p.Platform.Name)
	case len(p.Costs.Class) != len(p.Graph.Tasks):
		return fmt.Errorf("graph %q has %d tasks, its costs are for %d", p.Graph.Name, len(p.Graph.Tasks), len(p.Costs.Class))
	}
	serial := 0.0
	for t := range p.Graph.Tasks {
		for _, c := range p.Costs.ByClass[p.Costs.Class[t]] {
			serial += float64(max(c.Duration, 0))
		}
		for _, a := range p.Graph.Tasks[t].Accesses {
			if a.Mode == dag.Reduce {
				return fmt.Errorf("task %q reduces into buffer %q; expand the graph's reductions first", p.Graph.Tasks[t].Name, p.Graph.Buffers[a.Buffer].Name)
			}
		}
	}
	if total := float64(serial * float64(p.Steps)); total > float64(LongestRun) {
		return fmt.Errorf("graph %q: its tasks take %.3g s in %d steps, longer than %v can hold", p.Graph.Name, total/1e9, p.Steps, LongestRun)
	}
	for _, e := range append(p.Reuse[:len(p.Reuse):len(p.Reuse)], p.ReuseNext...) {
		if n := len(p.Graph.Tasks); e.From < 0 || e.To < 0 || int(e.From) >= n || int(e.To) >= n {
			return fmt.Errorf("graph %q has %d tasks; a reuse of memory orders tasks %d and %d", p.Graph.Name, n, e.From, e.To)
		}
	}
	return nil
}

// Start begins the run.
func (e *Engine) Start(cmds []Command) []Command {
	e.at = e.now()
	e.steps.Begin(nil)
	return e.settle(dag.Instance{Task: dag.TaskID(len(e.p.Graph.Tasks))}, cmds)
}

// Done reports that a worker ended the task that was commanded first and had not ended.
func (e *Engine) Done(w platform.WorkerID, cmds []Command) []Command {
	state := &e.workers[w]
	if !state.busy {
		panic("schedule: Done of a worker that runs nothing")
	}
	e.at = e.now()
	i := state.runs
	if state.busy = state.phase == behind; state.busy {
		state.runs, state.phase = state.takes, resting
	}
	e.asks(w)
	e.instances[e.steps.Slot(i)].phase = blocked // the slot is free for a later step
	if e.resident != nil {
		e.release(i, w)
	}
	e.steps.End(i)
	if state.phase == fetching {
		cmds = e.runFetched(e.p.Platform.MemoryOf(w), cmds)
	}
	return e.settle(i, cmds)
}

// Finished reports whether every task of every step has ended.
func (e *Engine) Finished() bool { return e.steps.Finished() }

// Err returns the error that stopped the run: a memory that is too small, a route that is
// missing, or a policy that broke the rules. No commands follow an error.
func (e *Engine) Err() error { return e.err }

// ReadyAt is when the last predecessor of an instance had ended and its operands had arrived. The
// value holds until the instance's task ends.
func (e *Engine) ReadyAt(i dag.Instance) time.Duration { return e.instances[e.steps.Slot(i)].readyAt }

// settle shows the policy the instances that became ready when one had ended, gives tasks to idle
// workers, and starts the copies that these tasks and later ones need. One past the last task
// stands for the beginning of the run.
func (e *Engine) settle(ended dag.Instance, cmds []Command) []Command {
	e.released = e.steps.TakeReleased(e.released)
	for _, i := range e.released {
		e.makeReady(i)
	}
	e.foresee(ended)
	cmds = e.offer(e.idle, cmds)
	return e.move(e.offer(e.ahead, cmds))
}

// offer has the policy choose tasks for a set of workers.
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

// EndAtStep makes the furthest step of which a worker was given a task the last one, and returns
// it. The first step always runs.
func (e *Engine) EndAtStep() (last int32) {
	e.steps.Cut(e.begun + 1)
	return e.begun
}

// exists reports whether an instance is of the graph, and of a step that has not ended.
func (e *Engine) exists(i dag.Instance) bool {
	return i.Task >= 0 && int(i.Task) < len(e.p.Graph.Tasks) && i.Step >= e.steps.First() && int(i.Step) < e.p.Steps
}

// dropped takes an instance away that became ready for a step that will not run, and reports
// whether it has.
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
	switch {
	case state.phase != resting:
	case !state.busy:
		e.idle[w/64] |= bit
	case state.ahead:
		e.ahead[w/64] |= bit
	}
}

func (e *Engine) makeReady(i dag.Instance) {
	e.ready++
	e.instances[e.steps.Slot(i)] = instance{readyAt: e.at, worker: Undecided, phase: untaken}
	if e.err != nil {
		return
	}
	w := e.policy.Ready(&e.view, i)
	if w == Undecided || !e.allows(w, i) {
		return
	}
	if e.copies != nil {
		e.expect(w, i)
	}
	e.assign(w, i)
}

// allows reports whether a worker exists that may run an instance.
func (e *Engine) allows(w platform.WorkerID, i dag.Instance) bool {
	if int(w) < 0 || int(w) >= len(e.workers) {
		e.err = fmt.Errorf("the policy put task %q on worker %d, which does not exist", e.p.Graph.Tasks[i.Task].Name, w)
		return false
	}
	if !e.eligible.canRun(i.Task, w) {
		e.err = fmt.Errorf("the policy put task %q on worker %q, %s", e.p.Graph.Tasks[i.Task].Name, e.p.Platform.Workers[w].Name, e.eligible.needs.refusal(i.Task, w))
		return false
	}
	return true
}

// assign gives an instance to a worker that may run it.
func (e *Engine) assign(w platform.WorkerID, i dag.Instance) {
	x := &e.instances[e.steps.Slot(i)]
	if x.worker != Undecided {
		e.workers[x.worker].queued -= e.p.occupies(i.Task, x.worker)
	}
	if e.copies != nil {
		e.name(i.Task, x.worker, w)
	}
	x.worker = w
	e.workers[w].queued += e.p.occupies(i.Task, w)
	e.eligible.bind(i.Task, w)
}

// handOut gives a worker the instance that the policy chose for it.
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
		if e.copies != nil && x.worker != Undecided && e.p.Platform.MemoryOf(x.worker) != e.p.Platform.MemoryOf(w) {
			e.copies.callOff(i, e.p.Platform.MemoryOf(x.worker))
		}
		e.assign(w, i)
	}
	x.phase = taken
	e.ready--
	e.begun = max(e.begun, i.Step)
	e.workers[w].takes, e.workers[w].phase = i, fetching
	e.asks(w)
	if e.copies == nil { // one memory
		return e.run(w, cmds)
	}
	return e.admit(w, cmds)
}

// run commands the task that a worker has taken. Its operands are there.
func (e *Engine) run(w platform.WorkerID, cmds []Command) []Command {
	state := &e.workers[w]
	i := state.takes
	if e.resident != nil {
		if err := e.resident.begin(i, e.p.Platform.MemoryOf(w)); err != nil {
			e.err = fmt.Errorf("task %q: %w", e.p.Graph.Tasks[i.Task].Name, err)
			return cmds
		}
	}
	if e.copies != nil {
		x := &e.instances[e.steps.Slot(i)]
		x.readyAt = max(x.readyAt, e.copies.lastArrival(i.Task, e.p.Platform.MemoryOf(w)))
	}
	takes := e.p.occupies(i.Task, w)
	state.queued -= takes
	if state.busy {
		state.phase, state.until = behind, max(e.at, state.until)+takes
	} else {
		state.runs, state.busy, state.phase, state.until = i, true, resting, e.at+takes
	}
	e.asks(w)
	return append(cmds, Command{Kind: RunTask, Instance: i, Worker: w})
}

// freeAt estimates when a worker has done the tasks it was given.
func (e *Engine) freeAt(w platform.WorkerID) time.Duration {
	at, s := e.at, &e.workers[w]
	if s.busy {
		at = max(at, s.until)
	}
	if s.queued > 0 {
		at = max(at+s.queued, s.ends)
	}
	return at
}
