package execute

import (
	"fmt"
	"hash/maphash"
	"sync"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// compiledGraph is a graph ready to run.
type compiledGraph struct {
	origin *dag.Graph // as in the program
	graph  *dag.Graph // what runs: the origin's, or placed in several memories
	policy string
	layout *schedule.Layout // of the host memory
	// By memory, where there are several. With a policy the one of the host's is as layout,
	// and the others are of the same buffers.
	layouts []*schedule.Layout
	plan    *schedule.Plan  // of the origin
	costs   *schedule.Costs // of the origin
	placed  *schedule.PlacedGraph
	tasks   []boundTask
	issues  []deviceTask // by task; nil: there are no devices
	// Of a plan, by lane, nil where it is no device's: what is issued at once in a run that
	// is not recorded, and in one that is.
	segments, singles []*segments

	replay  *replay                                   // of a plan,
	ahead   *replay                                   // of a plan for several memories, in a run that is not recorded, or
	dynamic func(p *schedule.Problem) schedule.Policy // a scheduler for one run

	enter, leave []boundMove

	// Of a policy on several memories:
	launches [][]launchID // by lane and task
	planes   [][]plane    // by memory and storage
	pieces   [][]piece    // by atom
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
	var err error
	if r.spread, err = checkWorkers(r.opt.Platform); err != nil {
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
	if err := r.place(); err != nil {
		return err
	}
	for _, c := range r.graphs {
		if err := r.compile(c); err != nil {
			return fmt.Errorf("graph %q: %w", c.graph.Name, err)
		}
	}
	if r.opt.Verify {
		r.verify = &verifier{seed: maphash.MakeSeed()}
	}
	return nil
}

// place decides where every storage lies, and allocates.
func (r *Runner) place() error {
	if r.spread {
		dynamic := 0
		for _, c := range r.graphs {
			if c.dynamic != nil {
				dynamic++
			}
		}
		switch dynamic {
		case 0:
			return r.placeInMemories()
		case len(r.graphs):
			return r.placeOnDemand()
		}
		return fmt.Errorf("%d of %d graphs have no plan; with several memories either all follow plans or none", dynamic, len(r.graphs))
	}
	layouts, err := r.layouts()
	if err != nil {
		return err
	}
	for i, c := range r.graphs {
		c.layout = layouts[i]
	}
	return r.allocate(r.prog, layouts)
}

// allocate makes the arenas of the host memory for the graphs of a program.
func (r *Runner) allocate(prog *dag.Program, layouts []*schedule.Layout) (err error) {
	if err := checkShared(prog, layouts); err != nil {
		return err
	}
	r.arenas, err = newArenas(layouts, &r.opt.Platform.Memories[r.opt.Platform.HostMemory()])
	return err
}

// checkWorkers refuses a platform whose workers are not the cores of one machine and
// devices of other kinds with memories of their own; spread reports whether there are
// any of these.
func checkWorkers(p *platform.Platform) (spread bool, err error) {
	if len(p.Workers) == 0 {
		return false, fmt.Errorf("platform %q has no workers", p.Name)
	}
	host, cores := p.HostMemory(), 0
	kinds := make([]string, len(p.Memories))
	for _, w := range p.Workers {
		d := &p.Devices[w.Device]
		here := &kinds[d.Memory]
		switch {
		case d.Kind == "cpu" && d.Memory != host:
			return false, fmt.Errorf("platform %q: worker %q is at memory %q, other cpu workers at %q; they must share one memory",
				p.Name, w.Name, p.Memories[d.Memory].Name, p.Memories[host].Name)
		case d.Kind != "cpu" && d.Kind != "emulated" && d.Kind != "cuda":
			return false, fmt.Errorf("platform %q: worker %q is of kind %q; cpu, cuda and emulated devices are executed", p.Name, w.Name, d.Kind)
		case *here != "" && *here != d.Kind:
			return false, fmt.Errorf("platform %q: worker %q of kind %q is at memory %q, where there are %s workers; write a memory of its own",
				p.Name, w.Name, d.Kind, p.Memories[d.Memory].Name, *here)
		}
		*here = d.Kind
		if d.Kind == "cpu" {
			cores++
		}
	}
	if cores == 0 {
		return false, fmt.Errorf("platform %q: worker %q is of kind %q, and there is no cpu worker, which hands over batches and fetches results", p.Name, p.Workers[0].Name, p.Devices[p.Workers[0].Device].Kind)
	}
	return cores < len(p.Workers), nil
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
	c := &compiledGraph{origin: g, graph: g, plan: entry(r.opt.Plans, i), costs: entry(r.opt.Costs, i)}
	if c.costs == nil {
		var err error
		if c.costs, err = schedule.NewCosts(g, r.opt.Platform, schedule.CostOptions{Variant: r.opt.Variant}); err != nil {
			return nil, err
		}
		LimitCosts(g, r.opt.Platform, c.costs)
	}
	if c.plan != nil {
		c.policy = c.plan.Policy
		if h := c.plan.GraphHash; h != "" && h != g.Hash() {
			return nil, fmt.Errorf("the plan is for a graph with hash %.12s…, this one has %.12s…", h, g.Hash())
		}
		return c, nil
	}
	c.policy = r.opt.Policy
	if c.policy == "" && r.spread {
		c.policy = "heft"
	} else if c.policy == "" {
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
		return schedule.LayoutProgram(r.prog, plans, ScratchBytes(r.prog, costs, r.opt.Variant, r.cores()))
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
	b := binder{opt: &r.opt, compiledGraph: c, arenas: r.arenas}
	if c.placed != nil {
		b.laneOf = lanesOfTasks(len(c.graph.Tasks), c.placed.Order)
	}
	var err error
	if c.tasks, err = b.bindAll(); err != nil {
		return err
	}
	if need, have := roundUp(b.scratchBytes)*int64(r.cores()), c.layout.ArenaBytes[schedule.ScratchArena]; need > have {
		return fmt.Errorf("%d workers need %d bytes of workspace, the layout has %d", r.cores(), need, have)
	}
	switch {
	case c.placed != nil:
		c.replay, err = compileReplay(c.graph, c.placed.Order, c.placed.Reuse, c.placed.ReuseNext, len(r.placed.Lanes))
		if err == nil {
			c.ahead, err = compileReplay(c.graph, c.placed.Order, c.placed.Reuse, c.placed.RoomNext, len(r.placed.Lanes))
		}
	case c.plan != nil:
		c.replay, err = compileReplay(c.graph, c.plan.Order, c.layout.Reuse, c.layout.ReuseNext, len(r.opt.Platform.Workers))
	case r.spread:
		return r.bindOnDemand(c)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.checkRunnable(c); err != nil {
		return err
	}
	if c.placed != nil {
		return r.bindDevices(c, b.laneOf)
	}
	return nil
}

// checkRunnable verifies that every task has a kernel or a hook on the core that the plan
// puts it on.
func (r *Runner) checkRunnable(c *compiledGraph) error {
	p := r.opt.Platform
	for w, worker := range p.Workers {
		if p.Devices[worker.Device].Kind != "cpu" {
			continue
		}
		for _, it := range c.replay.lists[w] {
			if t := &c.tasks[it.task]; t.hook == nil && t.run[worker.Device] == nil {
				return fmt.Errorf("the plan puts task %q on worker %q, which has no cost for it", c.graph.Tasks[it.task].Name, worker.Name)
			}
		}
	}
	return nil
}

// cores is the number of cpu workers.
func (r *Runner) cores() (n int) {
	for _, w := range r.opt.Platform.Workers {
		if r.opt.Platform.Devices[w.Device].Kind == "cpu" {
			n++
		}
	}
	return n
}

// LimitCosts takes from the costs of a graph what the executor cannot run: what the
// caller does (feed, fetch) anywhere but on a cpu, and operations on devices of whose
// kind they have no variant. Whoever plans for execution calls it.
func LimitCosts(g *dag.Graph, p *platform.Platform, c *schedule.Costs) {
	for d := range p.Devices {
		kind := p.Devices[d].Kind
		if kind == "cpu" {
			continue
		}
		for t := range g.Tasks {
			if k, ok := operation(g.Tasks[t].Op); ok && (k.Host || k.DefaultFor(kind) == nil) {
				c.ByClass[c.Class[t]][d] = schedule.Cost{Duration: -1}
			}
		}
	}
}
