package execute

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"sync"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
)

// Hook does a host operation (kernels.Kernel.Host) on the worker that reaches
// it. step counts from 0 within the run; args are the task's operands, as in the
// operation's line of kernels.All. Hooks of different tasks may run at the same
// time. An error ends the run.
type Hook func(step int, args []kernels.Arg) error

// Options says how a program is executed. Slices are by graph; nil slices and
// nil entries leave the choice to New.
type Options struct {
	// Platform is this machine: one worker for each of its units, all of kind
	// cpu and in one memory. Nil: Detect.
	Platform *platform.Platform

	Plans  []*schedule.Plan // replayed exactly; nil: Policy decides
	Policy string           // a line of schedule.Policies; empty: eager

	Costs   []*schedule.Costs  // choose the variants and inform the policy; nil: schedule.NewCosts
	Layouts []*schedule.Layout // nil: the plan's, else schedule.LayoutProgram

	Hooks map[string]Hook // by operation

	// Variant pins the variant of every operation that has one of this name
	// ("ref"), over the costs.
	Variant string

	// Poison fills all memory with a pattern that reads as NaN or -1, optimiser
	// state excepted, so that HighWater can tell what was written.
	Poison bool
	// Verify checks after every task that the operands it only reads have not
	// changed. It costs a pass over them, and is meant for tests.
	Verify bool
}

// Runner is a program compiled for this machine, with its memory and its
// workers. Its methods may be called from one goroutine at a time.
type Runner struct {
	prog     *dag.Program
	opt      Options
	graphs   []*compiledGraph
	arenas   *arenas
	workers  []*worker
	ended    sync.WaitGroup // worker goroutines
	warnings []string
	spin     time.Duration
	verify   *verifier

	mu     sync.Mutex // one run at a time, and none after Close
	closed bool
}

// compiledGraph is a graph ready to run.
type compiledGraph struct {
	graph  *dag.Graph
	policy string
	layout *schedule.Layout
	plan   *schedule.Plan
	costs  *schedule.Costs
	tasks  []boundTask

	replay  *replay                                   // of a plan, or
	dynamic func(p *schedule.Problem) schedule.Policy // a scheduler for one run
}

// New compiles a program: chooses plans and layouts where the options have
// none, allocates the arenas (zeroed; the caller fills parameters and data
// through Bytes), binds every task and starts the workers. Close ends them.
func New(prog *dag.Program, opt Options) (*Runner, error) {
	r := &Runner{prog: prog, opt: opt}
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("execute program %q: %w", prog.Name, err)
	}
	r.startWorkers()
	if opt.Poison {
		r.clearStates()
	}
	return r, nil
}

func (r *Runner) prepare() error {
	if err := r.prog.Check(); err != nil {
		return err
	}
	if r.opt.Platform == nil {
		p, err := Detect()
		if err != nil {
			return err
		}
		r.opt.Platform = p
	}
	if err := checkWorkers(r.opt.Platform); err != nil {
		return err
	}
	// Plans and schedules name their graph by its hash, which another core can compute
	// meanwhile.
	var hashes sync.WaitGroup
	defer hashes.Wait()
	for _, g := range r.prog.Graphs {
		hashes.Go(func() { g.Hash() })
	}
	for i, g := range r.prog.Graphs {
		c, err := r.decide(i, g)
		if err != nil {
			return fmt.Errorf("graph %q: %w", g.Name, err)
		}
		r.graphs = append(r.graphs, c)
	}
	layouts, err := r.layouts()
	if err != nil {
		return err
	}
	if err := checkShared(r.prog, layouts); err != nil {
		return err
	}
	home := r.opt.Platform.Devices[r.opt.Platform.Workers[0].Device].Memory
	if r.arenas, err = newArenas(layouts, &r.opt.Platform.Memories[home]); err != nil {
		return err
	}
	for i, c := range r.graphs {
		c.layout = layouts[i]
		if err := r.compile(c); err != nil {
			return fmt.Errorf("graph %q: %w", c.graph.Name, err)
		}
	}
	if r.opt.Verify {
		r.verify = &verifier{seed: maphash.MakeSeed()}
	}
	return nil
}

// checkWorkers refuses a platform whose workers are not the cores of one machine.
func checkWorkers(p *platform.Platform) error {
	if len(p.Workers) == 0 {
		return fmt.Errorf("platform %q has no workers", p.Name)
	}
	home := p.Devices[p.Workers[0].Device].Memory
	for _, w := range p.Workers {
		d := &p.Devices[w.Device]
		if d.Kind != "cpu" {
			return fmt.Errorf("platform %q: worker %q is of kind %q; only cpu workers are executed here, name the devices to use", p.Name, w.Name, d.Kind)
		}
		if d.Memory != home {
			return fmt.Errorf("platform %q: worker %q is at memory %q, worker %q at %q; the workers must share one memory",
				p.Name, p.Workers[0].Name, p.Memories[home].Name, w.Name, p.Memories[d.Memory].Name)
		}
	}
	return nil
}

// entry is the one for a graph, nil beyond the end of the list.
func entry[T any](s []*T, i int) *T {
	if i < len(s) {
		return s[i]
	}
	return nil
}

// decide finds the costs and the plan, or the dynamic policy, of a graph.
func (r *Runner) decide(i int, g *dag.Graph) (*compiledGraph, error) {
	c := &compiledGraph{graph: g, plan: entry(r.opt.Plans, i), costs: entry(r.opt.Costs, i)}
	if c.costs == nil {
		var err error
		if c.costs, err = schedule.NewCosts(g, r.opt.Platform, schedule.CostOptions{Variant: r.opt.Variant}); err != nil {
			return nil, err
		}
	}
	if c.plan != nil {
		c.policy = c.plan.Policy
		if h := c.plan.GraphHash; h != "" && h != g.Hash() {
			return nil, fmt.Errorf("the plan is for a graph with hash %.12s…, this one has %.12s…", h, g.Hash())
		}
		return c, nil
	}
	c.policy = r.opt.Policy
	if c.policy == "" {
		c.policy = "eager"
	}
	info, err := schedule.PolicyByName(c.policy)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Dynamic != nil:
		c.dynamic = info.Dynamic
	case info.Static != nil:
		c.plan, err = info.Static(&schedule.Problem{Graph: g, Platform: r.opt.Platform, Costs: c.costs, Steps: 1})
	default:
		err = fmt.Errorf("policy %q needs a plan", c.policy)
	}
	return c, err
}

// layouts returns the layout of every graph.
func (r *Runner) layouts() ([]*schedule.Layout, error) {
	given := make([]*schedule.Layout, len(r.graphs))
	plans := make([]*schedule.Plan, len(r.graphs))
	costs := make([]*schedule.Costs, len(r.graphs))
	missing := false
	for i, c := range r.graphs {
		plans[i], costs[i] = c.plan, c.costs
		given[i] = entry(r.opt.Layouts, i)
		if given[i] == nil && c.plan != nil {
			given[i] = c.plan.Layout
		}
		missing = missing || given[i] == nil
	}
	if missing {
		// Offsets of shared buffers agree only among layouts made together.
		if r.opt.Variant != "" {
			costs = nil
		}
		return schedule.LayoutProgram(r.prog, plans, ScratchBytes(r.prog, costs, len(r.opt.Platform.Workers)))
	}
	for i, c := range r.graphs {
		if err := checkLayout(c.graph, given[i]); err != nil {
			return nil, fmt.Errorf("graph %q: %w", c.graph.Name, err)
		}
	}
	return given, nil
}

// compile binds the tasks of a graph and compiles its plan.
func (r *Runner) compile(c *compiledGraph) error {
	b := binder{opt: &r.opt, graph: c.graph, layout: c.layout, costs: c.costs, arenas: r.arenas}
	var err error
	if c.tasks, err = b.bindAll(); err != nil {
		return err
	}
	workers := int64(len(r.opt.Platform.Workers))
	if need, have := roundUp(b.scratchBytes)*workers, c.layout.ArenaBytes[schedule.ScratchArena]; need > have {
		return fmt.Errorf("%d workers need %d bytes of workspace, the layout has %d", workers, need, have)
	}
	if c.plan == nil {
		return nil
	}
	if c.replay, err = compileReplay(c.graph, c.plan, c.layout, int(workers)); err != nil {
		return err
	}
	for w, list := range c.replay.lists {
		device := r.opt.Platform.Workers[w].Device
		for _, it := range list {
			if t := &c.tasks[it.task]; t.hook == nil && t.run[device] == nil {
				return fmt.Errorf("the plan puts task %q on worker %q, which has no cost for it", c.graph.Tasks[it.task].Name, r.opt.Platform.Workers[w].Name)
			}
		}
	}
	return nil
}

// clearStates sets optimiser state, which starts at zero, in poisoned memory.
func (r *Runner) clearStates() {
	for _, c := range r.graphs {
		for i := range c.graph.Buffers {
			if c.graph.Buffers[i].Role == dag.State {
				clear(r.arenas.storage(c.layout, c.graph, dag.BufferID(i)))
			}
		}
	}
}

func (r *Runner) startWorkers() {
	cpus := workerCPUs()
	n := len(r.opt.Platform.Workers)
	parallel := min(runtime.GOMAXPROCS(0), len(cpus))
	if n > parallel {
		r.warnings = append(r.warnings, fmt.Sprintf("%d workers share %d cores: their times say nothing about the platform", n, parallel))
	} else {
		r.spin = spinLimit
	}
	piece := len(r.arenas[schedule.ScratchArena]) / n &^ (alignBytes - 1)
	pinned := make(chan error, n)
	touch := r.arenas.touch
	if r.opt.Poison {
		touch = r.arenas.poison
	}
	for i := range n {
		w := &worker{id: i, device: r.opt.Platform.Workers[i].Device, cpu: cpus[i%len(cpus)], jobs: make(chan *job, 1)}
		w.scratch = r.arenas[schedule.ScratchArena][i*piece : (i+1)*piece : (i+1)*piece]
		r.workers = append(r.workers, w)
		r.ended.Go(func() { w.main(func() { touch(i, n) }, pinned) })
	}
	for range n {
		if err := <-pinned; err != nil {
			r.warnings = append(r.warnings, err.Error())
		}
	}
}

// Warnings says what makes measured times less trustworthy: workers that share a
// core or could not be pinned.
func (r *Runner) Warnings() []string { return r.warnings }

var errClosed = errors.New("execute: the runner is closed, or a hook ended one of its workers")

// Run executes a number of steps of one graph, without a barrier between them.
// With record, the schedule has every span; without, only the makespan.
//
// When ctx ends, the workers stop between two tasks, and Run returns what ran so
// far with ctx's error. When a task fails it returns what ran with a *TaskError.
// Either way all workers rest when it returns, and parameters may be those of a
// step half done.
func (r *Runner) Run(ctx context.Context, graph, steps int, record bool) (*schedule.Schedule, error) {
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
	j := &job{graph: r.graphs[graph], team: newTeam(len(r.workers), r.spin), steps: steps, record: record, verify: r.verify}
	p := j.graph.problem(r.opt.Platform, steps)
	j.base = time.Now()
	if j.graph.dynamic != nil {
		var err error
		if j.dynamic, err = newDispatcher(p, j.graph.dynamic(p), j); err != nil {
			return nil, fmt.Errorf("execute graph %q: %w", j.graph.graph.Name, err)
		}
	}
	r.reserveSpans(j)
	if ctx.Err() != nil {
		j.team.stop() // AfterFunc would do so a little later, when the run may be over
	}
	unwatch := context.AfterFunc(ctx, j.team.stop)
	defer unwatch()
	j.base = time.Now()
	j.done.Add(len(r.workers))
	for _, w := range r.workers {
		w.jobs <- j
	}
	j.done.Wait()
	s, err := j.collect(r.workers, p)
	if failure := j.failure.Load(); failure != nil {
		r.closed = errors.Is(*failure, errGoexit)
		return s, *failure
	}
	if err == nil && j.cut() {
		err = context.Cause(ctx)
	}
	return s, err
}

// problem is a number of steps of the graph on a platform.
func (c *compiledGraph) problem(p *platform.Platform, steps int) *schedule.Problem {
	return &schedule.Problem{Graph: c.graph, Platform: p, Costs: c.costs, Steps: steps,
		Reuse: c.layout.Reuse, ReuseNext: c.layout.ReuseNext}
}

// reserveSpans gives every worker room to note all it may run, so that noting
// allocates nothing. Room that is never touched costs no memory.
func (r *Runner) reserveSpans(j *job) {
	for i, w := range r.workers {
		n := len(j.graph.tasks) * j.steps
		if j.dynamic == nil {
			n = len(j.graph.replay.lists[i]) * j.steps
		}
		w.spans = w.spans[:0]
		if j.record && cap(w.spans) < n {
			w.spans = make([]span, 0, n)
		}
	}
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
	r.ended.Wait()
}
