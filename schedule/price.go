package schedule

import (
	"fmt"
	"slices"
	"sync"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// Target says by which implementations a program will run. A simulation of any
// machine and an execution on this one have targets of their own.
type Target interface {
	// Offers lists the implementations of a task on a device of a kind, the default first. An empty list means that
	// the device cannot run it.
	// An operation that the target does not know is offered once, without a name.
	Offers(g *dag.Graph, t dag.TaskID, kind string) []Offer
}

// Offer is one implementation of a task on a kind of device.
type Offer struct {
	Variant        string // "": the implementation that the machine takes by default
	WorkspaceBytes int64  // scratch of one call, rounded to the alignment of the kind's memory
	// Host says that the caller does it, on the first node of a cluster.
	Host bool
}

// Unbound is the target of a program whose tasks need no kernel: every device can run
// every task for which there is a duration.
var Unbound Target = unbound{}

type unbound struct{}

func (unbound) Offers(*dag.Graph, dag.TaskID, string) []Offer { return []Offer{{}} }

// Priced is a program on a machine for a target, with the cost, the variant and the workspace of every task on every
// device. It is immutable, so that any number of
// goroutines may decide on it. [Priced.On] gives the same program on a part of the machine.
type Priced struct {
	Program  *dag.Program
	Platform *platform.Platform

	target Target
	graphs []pricedGraph
	whole  *Priced         // of the whole machine; nil if this is it
	bounds []func() *bound // by graph
}

// Target is the target of the prices.
func (c *Priced) Target() Target { return c.target }

// pricedGraph is one graph of a priced program.
type pricedGraph struct {
	untimed, timed *Costs    // one and the same where timing takes no time
	scratchBytes   []int64   // by memory: for each worker that computes there the greatest workspace of a call
	versions       [][]int32 // by memory and buffer: the plan's number of versions there; nil means as many as the graph says
	checked        func() error
	fit            func() (*Fit, error) // where no task is given to a worker yet
}

// Price finds the cost of every task of a program on every device of a platform.
//
// The costs in a graph win. A task with such costs runs only where one of them matches.
// The platform's models answer for the others, on the devices for which the
// target has an offer. It fails when a task can run nowhere.
func Price(prog *dag.Program, p *platform.Platform, target Target) (*Priced, error) {
	if len(p.Workers) == 0 || len(p.Memories) == 0 {
		return nil, fmt.Errorf("platform %q has no workers or no memory", p.Name)
	}
	c := &Priced{Program: prog, Platform: p, target: target}
	for _, g := range prog.Graphs {
		priced, err := c.price(g, nil, nil)
		if err != nil {
			return nil, err
		}
		c.graphs = append(c.graphs, priced)
	}
	c.bounds = c.newBounds()
	return c, nil
}

// price finds the costs of one graph. Variants are fixed by a plan, or by the whole machine. Nil means that none are.
// Clocks come from a plan.
func (c *Priced) price(g *dag.Graph, variants Variants, clocks []platform.ClockID) (priced pricedGraph, err error) {
	priced.untimed, err = newCosts(g, c.Platform, costOptions{target: c.target, variants: variants, clocks: clocks})
	if err == nil && slices.ContainsFunc(c.Platform.Devices, func(d platform.Device) bool { return d.Timing > 0 }) {
		priced.timed, err = newCosts(g, c.Platform, costOptions{target: c.target, variants: variants, clocks: clocks, timed: true})
	} else {
		priced.timed = priced.untimed
	}
	if err != nil {
		return priced, fmt.Errorf("graph %q on platform %q: %w", g.Name, c.Platform.Name, err)
	}
	problem := &Problem{Graph: g, Platform: c.Platform, Costs: priced.untimed, Steps: 1}
	priced.checked = sync.OnceValue(problem.Check)
	priced.fit = sync.OnceValues(func() (*Fit, error) { return newFit(problem) })
	priced.scratchBytes = scratchOf(c.Platform, slices.Compact([]*Costs{priced.untimed, priced.timed}))
	return priced, nil
}

// scratchOf is the workspace for calls of some costs in each memory.
func scratchOf(p *platform.Platform, costs []*Costs) []int64 {
	most, all := make([]int64, len(p.Memories)), make([]int64, len(p.Memories))
	for _, c := range costs {
		for class := range c.ByClass {
			for d, cost := range c.Devices(int32(class)) {
				m := p.Devices[d].Memory
				most[m] = max(most[m], cost.WorkspaceBytes)
			}
		}
	}
	for _, w := range p.Workers {
		m := p.Devices[w.Device].Memory
		all[m] += most[m]
	}
	return all
}

// On is the same program on some devices of the machine, which [platform.Platform.Select]
// takes from a list such as "cpu:4,gpu0". Every call keeps the variant that it has on the
// whole machine; its time is that for the number of units selected. The host's power keeps the watts of the units
// left out.
func (c *Priced) On(devices string) (*Priced, error) {
	whole := c
	if c.whole != nil {
		whole = c.whole
	}
	p, err := whole.Platform.Select(devices)
	if err != nil {
		return nil, err
	}
	view := &Priced{Program: c.Program, Platform: p, target: c.target, whole: whole}
	for i, g := range c.Program.Graphs {
		priced, err := view.price(g, whole.graphs[i].untimed.Variants(g, whole.Platform), nil)
		if err != nil {
			return nil, err
		}
		view.graphs = append(view.graphs, priced)
	}
	view.bounds = view.newBounds()
	return view, nil
}

// fixing is the same program with the variants, the clocks and the versions of buffers of plans, by graph. A plan may
// be nil. If a plan has no variants, the ones without its clocks hold, so that results do not depend on clocks.
func (c *Priced) fixing(plans []*Plan) (_ *Priced, err error) {
	fixed, prog := *c, *c.Program
	fixed.graphs, prog.Graphs = slices.Clone(c.graphs), slices.Clone(prog.Graphs)
	for i, plan := range plans {
		if plan == nil {
			continue
		}
		g, variants := c.Program.Graphs[i], plan.Variants
		if len(variants) > 0 || plan.Clocks != nil {
			if len(variants) == 0 {
				variants = c.Costs(i).Variants(g, c.Platform)
			}
			if fixed.graphs[i], err = c.price(g, variants, plan.Clocks); err != nil {
				return nil, err
			}
		}
		if plan.Versions != nil {
			if fixed.graphs[i].versions, err = plan.VersionsIn(g, c.Platform); err != nil {
				return nil, err
			}
			if prog.Graphs[i], err = withMost(g, fixed.graphs[i].versions); err != nil {
				return nil, err
			}
			fixed.Program = &prog
		}
	}
	if fixed.Program == &prog {
		fixed.boundAnew()
	}
	return &fixed, nil
}

// withMost is a graph with as many versions of each buffer as the memory with most of them.
func withMost(g *dag.Graph, copies [][]int32) (*dag.Graph, error) {
	most := slices.Clone(copies[0])
	for _, here := range copies[1:] {
		for b, n := range here {
			most[b] = max(most[b], n)
		}
	}
	with, err := g.WithVersions(most)
	if err != nil {
		return nil, fmt.Errorf("graph %q: versions of the plan: %w", g.Name, err)
	}
	return with, nil
}

// boundAnew renews the bounds for the present graphs of c, on the whole machine too.
func (c *Priced) boundAnew() {
	if c.whole != nil {
		whole := *c.whole
		whole.Program, c.whole = c.Program, &whole
		whole.boundAnew()
	}
	c.bounds = c.newBounds()
}

// Costs are the costs of one graph in steps without timing of tasks.
func (c *Priced) Costs(graph int) *Costs { return c.graphs[graph].untimed }

// AtClock are the costs of one graph with all tasks at a clock, on every device with a clock of that number. A
// decision by a plan with these clocks and these variants, or none, has the same costs.
func (c *Priced) AtClock(graph int, clock platform.ClockID, variants Variants) (*Costs, error) {
	g := c.Program.Graphs[graph]
	if len(variants) == 0 {
		variants = c.Costs(graph).Variants(g, c.Platform)
	}
	return newCosts(g, c.Platform, costOptions{target: c.target, variants: variants, clocks: slices.Repeat([]platform.ClockID{clock}, len(g.Tasks))})
}

// ByVariant lists the costs of a call by variant, by class of [Priced.Costs] and by device, at a clock of every
// device with a clock of that number. The variant of a free choice comes first, and then each other one of the graph
// or a model. A device that cannot run the call has none.
//
// Where the first was measured inside steps, costs measured by themselves are left out, since their times lack the
// slowdown by neighbours. No other cost is in any plan.
func (c *Priced) ByVariant(graph int, clock platform.ClockID) [][][]Cost {
	g, classes, p := c.Program.Graphs[graph], c.Costs(graph), c.Platform.AtClocks(clock)
	all := make([][][]Cost, len(classes.ByClass))
	for t, class := range classes.Class {
		if all[class] != nil {
			continue
		}
		all[class] = make([][]Cost, len(p.Devices))
		for d := range p.Devices {
			task, device := &g.Tasks[t], &p.Devices[d]
			if !mayRunOn(task.Placement, p, platform.DeviceID(d)) {
				continue
			}
			offers := c.target.Offers(g, dag.TaskID(t), device.Kind)
			for _, variant := range variantsOf(task, modelsOf(p, task, device)) {
				list := all[class][d]
				cost, ok := costOn(task, p, platform.DeviceID(d), offers, variant, false)
				if ok && !slices.Contains(list, cost) && (len(list) == 0 || cost.InSteps || !list[0].InSteps) {
					all[class][d] = append(list, cost)
				}
			}
		}
	}
	return all
}

// Timed are the costs of one graph in steps with timing of tasks, as in a recorded run. They are Costs itself where
// timing takes no time.
func (c *Priced) Timed(graph int) *Costs { return c.graphs[graph].timed }

// Problem is a number of steps of one graph, without the orders and places of a decision.
func (c *Priced) Problem(graph, steps int) *Problem {
	return &Problem{Graph: c.Program.Graphs[graph], Platform: c.Platform, Costs: c.graphs[graph].untimed, Steps: steps, Versions: c.graphs[graph].versions}
}

// scratchBytes is the scratch arena of each memory, by graph.
func (c *Priced) scratchBytes() [][]int64 {
	all := make([][]int64, len(c.graphs))
	for i := range c.graphs {
		all[i] = c.graphs[i].scratchBytes
	}
	return all
}

// HostLayouts place all buffers of each graph in the host's memory.
func (c *Priced) HostLayouts() ([]*layout.Layout, error) {
	scratch := c.scratchBytes()
	atHost := make([]int64, len(scratch))
	for i := range scratch {
		atHost[i] = scratch[i][c.Platform.HostMemory()]
	}
	return layout.Program(c.Program, atHost)
}
