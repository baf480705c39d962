package execute

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// compiledGraph is a graph ready to run.
type compiledGraph struct {
	index   int
	origin  *dag.Graph // the graph of the program
	graph   *dag.Graph // the graph that runs: origin, or the graph placed in several memories
	problem *schedule.Problem
	kernels *kernels.Table
	layout  *layout.Layout   // of the host memory
	layouts []*layout.Layout // by memory
	order   [][]dag.TaskID   // of a plan, by lane
	placed  *place.Graph     // of a plan; nil means that a policy decides while the graph runs
	tasks   []boundTask
	issues  []deviceTask // by task; nil without devices
	// For a plan, by lane; nil where the lane is no device's. batches are for runs without a
	// record, singles for recorded ones.
	batches, singles []*batches

	replay *replay // of a plan
	ahead  *replay // of a plan for several memories, in a run that is not recorded

	enter, leave []*boundMove
	states       []*wiredMove // of other ranks before a run, from rank 0
}

func (r *Runner) prepare() error {
	if err := r.prog.Check(); err != nil {
		return err
	}
	if err := CheckWorkers(r.platform); err != nil {
		return err
	}
	var err error
	if r.part, err = newNodePart(r.platform, r.opt.Ranks); err != nil {
		return err
	}
	if n := r.opt.Ranks; n != nil {
		r.post.parker = &n.parker
	}
	if err := CheckClocks(r.platform, r.decision.ClocksUsed()); err != nil && !r.opt.AnyClock {
		return err
	}
	r.spread = r.platform.Spread()
	if err := r.readDecision(); err != nil {
		return err
	}
	for _, c := range r.graphs {
		if err := r.compile(c); err != nil {
			return fmt.Errorf("graph %q: %w", c.graph.Name, err)
		}
	}
	return nil
}

// readDecision reads the decision for every graph, allocates the arenas and opens the devices.
func (r *Runner) readDecision() error {
	host, prog := r.part.host, &dag.Program{Name: r.prog.Name, Order: r.prog.Order}
	for i, g := range r.prog.Graphs {
		layouts := r.decision.Layouts(i)
		c := &compiledGraph{index: i, origin: g, graph: g, problem: r.decision.Problem(i, 1, false), kernels: operationsOf(r.decision), layouts: layouts, layout: layouts[host], placed: r.decision.Graphs[i].Placed}
		if c.placed != nil {
			var err error
			if c.graph, err = c.placed.Graph(); err != nil {
				return err
			}
			for _, t := range c.placed.Unlaned() {
				if !r.part.crosses(c.placed.Move(t)) {
					return fmt.Errorf("graph %q: %q waits for no copy engine, and %s does not say how many its devices have; write copy_engines", g.Name, c.graph.Tasks[t].Name, r.platform.Name)
				}
			}
		}
		r.graphs, prog.Graphs = append(r.graphs, c), append(prog.Graphs, c.graph)
	}
	r.lanes, r.devices = place.Lanes(r.platform), make([]*device, len(r.platform.Memories))
	if err := r.addWires(); err != nil {
		return err
	}
	layouts := r.layoutsOf(host)
	if err := checkShared(prog, layouts); err != nil {
		return err
	}
	var err error
	if r.arenas, err = newArenas(layouts, &r.platform.Memories[host]); err != nil || !r.spread {
		return err
	}
	return r.openDevices()
}

// CheckClocks refuses clocks that nobody sets: emulated devices obey theirs.
func CheckClocks(p *platform.Platform, used [][]platform.ClockID) error {
	for id, clocks := range used {
		d := &p.Devices[id]
		for _, clock := range clocks {
			if clock > 0 && !d.IsEmulated() {
				return fmt.Errorf("platform %q: device %q is to run at its clock %q, which is for the caller to set; see Options.AnyClock", p.Name, d.Name, d.ClockAt(clock).Name)
			}
		}
	}
	return nil
}

// operationsOf is the operations among which a program finds its own.
func operationsOf(d *schedule.Decision) *kernels.Table {
	t, _ := d.Priced.Target().(hardware.Target)
	return t.Kernels
}

// Runnable is a platform as this program executes it. A device with a memory of its own gets one
// copy engine in each direction if it does not say how many it has. Runnable refuses a platform
// unless its workers are cores of one memory and devices with memories of their own.
func Runnable(p *platform.Platform) (*platform.Platform, error) {
	if err := CheckWorkers(p); err != nil {
		return nil, err
	}
	q := *p
	q.Devices = slices.Clone(p.Devices)
	for d := range q.Devices {
		if device := &q.Devices[d]; !q.IsHost(device.Memory) {
			device.CopyEnginesIn, device.CopyEnginesOut = max(1, device.CopyEnginesIn), max(1, device.CopyEnginesOut)
		}
	}
	return &q, q.Complete()
}

// MaxWorkersPerCore is how many workers a core of this machine may have. More only wait for each other, and
// getting ready takes time and memory for each of them.
const MaxWorkersPerCore = 64

// CheckWorkers refuses a platform unless its workers are cores of one memory and devices of other
// kinds with memories of their own, and not far more than this machine has cores.
func CheckWorkers(p *platform.Platform) error {
	if len(p.Workers) == 0 {
		return fmt.Errorf("platform %q has no workers", p.Name)
	}
	if n, here := len(p.Workers), runtime.NumCPU(); n > MaxWorkersPerCore*here {
		return fmt.Errorf("platform %q: %d workers are to run, and this machine has cores for at most %d, %d on each of its %d; select fewer, as by --workers", p.Name, n, MaxWorkersPerCore*here, MaxWorkersPerCore, here)
	}
	cores := 0
	kinds := make([]string, len(p.Memories))
	for _, w := range p.Workers {
		d := &p.Devices[w.Device]
		here := &kinds[d.Memory]
		switch {
		case d.IsProcessor() && !p.IsHost(d.Memory):
			host := p.HostOf(d.Memory)
			such := p.Memories[host].Name
			if i := slices.IndexFunc(p.Devices, func(d platform.Device) bool { return d.IsProcessor() && d.Memory == host }); i >= 0 {
				such = p.Devices[i].Name
			}
			return fmt.Errorf("platform %q: worker %q is at memory %q, other cpu workers at %q; cores of one memory are executed so far: select the devices at one, such as %q",
				p.Name, w.Name, p.Memories[d.Memory].Name, p.Memories[host].Name, such)
		case *here != "" && *here != d.Kind:
			return fmt.Errorf("platform %q: worker %q of kind %q is at memory %q, where there are %s workers; write a memory of its own",
				p.Name, w.Name, d.Kind, p.Memories[d.Memory].Name, *here)
		}
		*here = d.Kind
		if d.IsProcessor() {
			cores++
		}
	}
	if cores == 0 {
		return fmt.Errorf("platform %q: worker %q is of kind %q, and there is no cpu worker, which hands over batches and fetches results", p.Name, p.Workers[0].Name, p.Devices[p.Workers[0].Device].Kind)
	}
	return nil
}

// compile binds the tasks of a graph and compiles its plan.
func (r *Runner) compile(c *compiledGraph) error {
	var laneOf []int32 // by task, of a plan
	if c.placed != nil {
		laneOf = make([]int32, len(c.graph.Tasks))
		for l, list := range c.order {
			for _, t := range list {
				laneOf[t] = int32(l)
			}
		}
	}
	scratchBytes, err := r.bindTasks(c, laneOf)
	if err != nil {
		return err
	}
	if need, have := layout.Align(scratchBytes)*int64(r.cores()), c.layout.ArenaBytes[layout.ScratchArena]; need > have {
		return fmt.Errorf("%d workers need %d bytes of workspace, the layout has %d", r.cores(), need, have)
	}
	if c.placed == nil && r.opt.Ranks != nil {
		return errors.New("its policy decides at run time, which it cannot over several ranks")
	}
	if c.placed == nil {
		return nil
	}
	if c.replay, err = compileReplay(c.graph, c.order, c.placed.Orders(), len(r.lanes), c.placed.Lag); err != nil {
		return err
	}
	if err := r.checkRunnable(c); err != nil || !r.spread {
		return err
	}
	if c.ahead, err = compileReplay(c.graph, c.order, c.placed.MemoryOrders(), len(r.lanes), c.placed.Lag); err != nil {
		return err
	}
	if r.opt.Ranks != nil {
		c.replay.watched, c.ahead.watched = r.findWatched(c.replay), r.findWatched(c.ahead)
	}
	return r.bindDevices(c, laneOf)
}

// checkRunnable verifies that every task of a plan has a kernel or a hook on its core.
func (r *Runner) checkRunnable(c *compiledGraph) error {
	for w, worker := range r.platform.Workers {
		if !r.isCore(w) {
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
	for w := range r.platform.Workers {
		if r.isCore(w) {
			n++
		}
	}
	return n
}
