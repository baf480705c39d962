package execute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/schedule/place"
	"dahl/schedule/policy"
)

// Hook does a host operation (kernels.Kernel.Host) on the worker that reaches it. step counts
// from 0 within the run. The call has the task's operands, in the order of the operation's line in
// kernels.Kernels. Hooks of different tasks may run at the same time. An error ends the run.
type Hook func(step int, call *calls.Call) error

// Options says how a decided program is executed.
type Options struct {
	Hooks map[string]Hook // by operation

	// Poison fills all memory except optimiser state with NaN, or -1 as an index. HighWater can then
	// tell which bytes were written.
	Poison bool

	// AnyClock admits a platform with a real device at another clock than its first: the caller has set
	// that clock, see package [dahl/train/setclock], or does without.
	AnyClock bool

	// Ranks are the processes that run the program together. Nil means that this one does all.
	Ranks *Ranks

	// Told is called at a rank other than rank 0 before each run, with what [Runner.Tell] was given there. Nil means that nobody asks.
	Told func(graph, steps int, note []byte) error
}

// Runner is a program compiled for this machine, with its memory and its
// workers. Its methods may be called from one goroutine at a time.
type Runner struct {
	decision *schedule.Decision
	prog     *dag.Program
	platform *platform.Platform
	opt      Options
	graphs   []*compiledGraph
	arenas   *arenas        // of the host memory
	workers  []*worker      // the cpu workers
	ended    sync.WaitGroup // goroutines of workers and devices
	warnings []string
	spin     time.Duration
	probe    *finiteProbe // of a run that looks for NaNs and infinities

	// With devices besides the cpu workers:
	spread  bool
	part    nodePart
	mine    []bool // by lane: it is this process's
	remote  []bool // by lane: messages bring its counts
	lanes   []place.Lane
	devices []*device // by memory; nil for one without lanes of its own
	post    poller    // the goroutine of the ranks

	note   []byte        // for the other ranks
	spent  time.Duration // in runs
	mu     sync.Mutex    // admits one run at a time, and none after Close
	closed bool
}

// New compiles a decided program for a platform that is this machine ([Runnable]). It allocates
// the arenas as zeros, binds every task and starts the workers. The caller then fills parameters
// and data through Bytes. Close ends the workers.
func New(d *schedule.Decision, opt Options) (*Runner, error) {
	prog := d.Priced.Program
	r := &Runner{decision: d, prog: prog, platform: d.Priced.Platform, opt: opt}
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("execute program %q: %w", prog.Name, errors.Join(err, r.closeDevices()))
	}
	r.startWorkers()
	if !opt.Poison {
		return r, nil
	}
	r.clearStates()
	if err := r.poisonDevices(); err != nil {
		r.Close()
		return nil, fmt.Errorf("execute program %q: %w", prog.Name, err)
	}
	return r, nil
}

// clearStates sets optimiser state to zero in poisoned memory, since that is where it starts.
func (r *Runner) clearStates() {
	for _, c := range r.graphs {
		for i := range dag.BufferID(len(c.graph.Buffers)) {
			if c.graph.Buffers[i].Role == dag.State && c.layout.Offset(i) >= 0 {
				clear(r.arenas.storage(c.layout, c.graph, i, 0))
			}
		}
	}
}

func (r *Runner) startWorkers() {
	cpus := host.CPUs()
	n := r.cores()
	busy, first := 0, 0 // threads that want a core: a device's issues, or computes
	for w := range r.platform.Workers {
		if r.part.mine(r.platform.MemoryOf(platform.WorkerID(w))) {
			busy++
		}
	}
	if ranks := r.opt.Ranks; ranks != nil {
		first = ranks.place.LocalRank * n
		busy = ranks.place.LocalSize * (busy + 1) // all of them have one for messages, too
	}
	parallel := min(runtime.GOMAXPROCS(0), len(cpus))
	if busy <= parallel {
		r.spin = spinLimit
	} else {
		r.warnings = append(r.warnings, fmt.Sprintf("%d workers, of processors and devices together, are more than the cores, which are %d: their times say nothing about the platform", busy, parallel))
	}
	share := len(r.arenas[layout.ScratchArena]) / n &^ (host.Align - 1)
	pinned := make(chan error, n)
	touch := r.arenas.touch
	if r.opt.Poison {
		touch = r.arenas.poison
	}
	for id, unit := range r.platform.Workers {
		if !r.isCore(id) {
			continue
		}
		i := len(r.workers)
		w := &worker{id: id, device: unit.Device, cpu: cpus[(first+i)%len(cpus)], jobs: make(chan *job, 1)}
		w.scratch = r.arenas[layout.ScratchArena][i*share : (i+1)*share : (i+1)*share]
		r.workers = append(r.workers, w)
		r.ended.Go(func() { w.main(func() { touch(i, n) }, pinned) })
	}
	for range n {
		if err := <-pinned; err != nil {
			r.warnings = append(r.warnings, err.Error())
		}
	}
}

// Platform is the one for which the program was decided.
func (r *Runner) Platform() *platform.Platform { return r.platform }

// Spin is how long a wait lasts before its thread sleeps. Zero means that it sleeps at once.
func (r *Runner) Spin() time.Duration { return r.spin }

// Spent is the time of all runs, with the moves before and after.
func (r *Runner) Spent() time.Duration { return r.spent }

// Warnings lists reasons to distrust measured times: workers that share a core or could not be
// pinned.
func (r *Runner) Warnings() []string { return r.warnings }

var errClosed = errors.New("execute: the runner is closed, a hook ended one of its workers, or a device was lost")

// Run executes steps of one graph, without a barrier between them. With record the schedule has
// every span; without, only makespan and period.
//
// When ctx ends, the workers stop between two tasks, and Run returns the part that ran with ctx's
// error. When a task fails, it returns that part with a *TaskError. In both cases all workers rest when
// Run returns, and parameters may belong to an unfinished step.
func (r *Runner) Run(ctx context.Context, graph, steps int, record bool) (*schedule.Schedule, error) {
	return r.RunUntil(ctx, context.Background(), graph, steps, record)
}

// RunUntil is Run, but when enough ends, the run ends at a step: the furthest one that any worker
// has begun is done whole and is the last. Then there is no error, and the schedule has as many
// steps as ran. The first step always runs.
func (r *Runner) RunUntil(ctx, enough context.Context, graph, steps int, record bool) (*schedule.Schedule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if graph < 0 || graph >= len(r.graphs) || steps < 1 {
		return nil, fmt.Errorf("execute program %q: %d steps of graph %d; there are %d graphs", r.prog.Name, steps, graph, len(r.graphs))
	}
	if r.closed {
		return nil, errClosed
	}
	if n := len(r.graphs[graph].tasks); steps > math.MaxInt32 || record && n*steps > maxRecords {
		return nil, fmt.Errorf("execute graph %q: %d steps of %d tasks are too many for one run; at most %d tasks can be recorded", r.graphs[graph].graph.Name, steps, n, maxRecords)
	}
	j, p, err := r.newJob(graph, steps, record)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		j.team.stop() // AfterFunc would do so later, when the run may be over
	}
	defer context.AfterFunc(ctx, j.team.stop)()
	if enough.Err() != nil {
		j.endAtStep()
	}
	defer context.AfterFunc(enough, j.endAtStep)()
	j.base = time.Now()
	if n := r.opt.Ranks; n != nil {
		if err := n.command(j, r.note); err != nil {
			return nil, fmt.Errorf("execute graph %q: %w", j.graph.graph.Name, err)
		}
	}
	if err := r.do(j); err != nil {
		return nil, err
	}
	s, err := r.collect(j, p)
	if failure := j.failure.Load(); failure != nil {
		r.closed = errors.Is(*failure, errGoexit) || errors.Is(*failure, driver.ErrLost) || r.opt.Ranks != nil
		return s, *failure
	}
	if err == nil && j.cut() {
		err = context.Cause(ctx)
	}
	return s, err
}

// do does all of a job, between the moves before and after it.
func (r *Runner) do(j *job) error {
	if err := r.enter(j); err != nil {
		r.closed = errors.Is(err, driver.ErrLost) || r.opt.Ranks != nil
		return fmt.Errorf("execute graph %q: %w", j.graph.graph.Name, err)
	}
	r.work(j)
	defer func() { r.spent += j.now() }()
	if err := r.leave(j); err != nil {
		j.fail(fmt.Errorf("execute graph %q: %w", j.graph.graph.Name, err))
	}
	return nil
}

// newJob is a run of a graph that has not begun.
func (r *Runner) newJob(graph, steps int, record bool) (*job, *schedule.Problem, error) {
	j := &job{graph: r.graphs[graph], team: r.newTeam(), steps: steps, record: record, probe: r.probe, replay: r.graphs[graph].replay, mine: r.mine}
	if !record && j.graph.ahead != nil {
		j.replay = j.graph.ahead
	}
	j.middle = j.lag() + (int32(steps)-1-j.lag())/2
	p := r.decision.Problem(graph, steps, false)
	j.base = time.Now()
	if j.graph.placed == nil {
		var err error
		if j.dynamic, err = newDispatcher(p, r.decision.Policy.(policy.Online).Start(p)); err != nil {
			return nil, nil, fmt.Errorf("execute graph %q: %w", j.graph.graph.Name, err)
		}
		j.starter = r.workers[0].id
	}
	r.reserveSpans(j)
	return j, p, nil
}

// newTeam makes a team of all lanes.
func (r *Runner) newTeam() *team {
	var pollers []*poller
	for d := range r.eachDevice {
		pollers = append(pollers, &d.poller)
	}
	if r.opt.Ranks == nil {
		return newTeam(len(r.lanes), r.spin, pollers...)
	}
	t := newTeam(len(r.lanes)+1, r.spin, append(pollers, &r.post)...) // the last one counts granted steps
	t.post, t.remote = &r.post, append(r.remote, true)
	return t
}

// work hands a job to all workers and devices and waits until they rest.
func (r *Runner) work(j *job) {
	if n := r.opt.Ranks; n != nil {
		j.ranked = r.newRankedRun(j)
		j.done.Add(1)
		n.begin(j.ranked.all)
	}
	for d := range r.eachDevice {
		j.done.Add(1)
		d.Begin(func() { d.run(j) })
	}
	j.done.Add(len(r.workers))
	for _, w := range r.workers {
		w.jobs <- j
	}
	j.done.Wait()
	j.ended, j.steps = j.now(), j.gate.steps(j.steps)
}

// reserveSpans gives every worker room to note all its tasks, so that noting allocates nothing.
// Room that is never touched costs no memory.
func (r *Runner) reserveSpans(j *job) {
	tasks := func(lane int) int {
		if j.dynamic == nil {
			return len(j.replay.lists[lane]) * j.steps
		}
		return len(j.graph.tasks) * j.steps
	}
	for _, w := range r.workers {
		w.spans, w.progress = roomFor(w.spans, tasks(w.id), j.record), progress{}
	}
	for d := range r.eachDevice {
		for _, l := range d.lanes {
			l.spans, l.progress = roomFor(l.spans, tasks(l.id), j.record), progress{}
		}
	}
}

func roomFor[T any](noted []T, n int, record bool) []T {
	if record && cap(noted) < n {
		return make([]T, 0, n)
	}
	return noted[:0]
}

// Close ends the workers. The memory stays readable.
func (r *Runner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, w := range r.workers {
		close(w.jobs)
	}
	r.workers = nil
	if err := r.closeDevices(); err != nil {
		r.warnings = append(r.warnings, fmt.Sprintf("closing the devices: %v", err))
	}
	r.ended.Wait()
}
