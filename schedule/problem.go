package schedule

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Problem is one graph to be run on one platform a number of times.
type Problem struct {
	Graph    *dag.Graph
	Platform *platform.Platform
	Costs    *Costs
	Steps    int

	// Reuse and ReuseNext are orders that let buffers share bytes. They come from a Layout and
	// add to the graph's. To starts after From has ended: in the same step for Reuse, in the step
	// before for ReuseNext.
	Reuse     []dag.Edge
	ReuseNext []dag.Edge

	// States are the clocks and sleep states of a plan.
	States

	Plan *Plan // that runs follow; nil means that a policy decides while they run, or nothing is decided yet

	Seed uint64 // for policies that draw random numbers

	// Versions is the number of versions of each storage by a plan, by memory and buffer. Nil means as many as the
	// graph says.
	Versions [][]int32

	// whole counts the needs of a task in a memory by whole storages, together with all parameters and optimiser
	// state. A memory then has room for any tasks that it runs, one at a time, whatever part of a storage they use.
	whole bool

	fit func() (*Fit, error) // of a checked problem; nil where [NewFit] has to find it
}

// WithWholeStorages is a copy of a problem that counts memory by whole storages, together with all parameters and
// optimiser state. If some task then has no worker with room for it, the copy counts as before.
func (p *Problem) WithWholeStorages() *Problem {
	whole := *p
	whole.whole, whole.fit = true, nil
	if _, err := newFit(&whole); err != nil {
		whole.whole = false
	}
	return &whole
}

// Orders are Reuse and ReuseNext, by the number of steps between the two tasks.
func (p *Problem) Orders() [][]dag.Edge { return [][]dag.Edge{p.Reuse, p.ReuseNext} }

// versionsIn is the number of versions of a storage in a memory.
func (p *Problem) versionsIn(storage dag.BufferID, m platform.MemoryID) int32 {
	if p.Versions == nil {
		return p.Graph.Versions(storage)
	}
	return p.Versions[m][storage]
}

// Cost is the cost of one task on one device.
type Cost struct {
	Duration time.Duration
	Joules   float64 // per call; zero means the platform's busy power over Duration
	Variant  string  // "": the machine's default
	Source   CostSource
	RelError float64 // of the fit, as a fraction; 0 means not known

	WorkspaceBytes int64 // scratch of one call

	First   time.Duration // in the first step of a run; 0 means as Duration
	InSteps bool          // Duration was measured inside training steps, among neighbours
	// Busy and Alone are times of a call measured by itself and not in steps, by where its
	// operands are: with all units of the device busy, and with one. All zero: as Duration.
	Busy, Alone platform.CacheTimes
	Spread      platform.Distribution // of a call relative to its mean; all zero: not known
}

// CostSource says where a duration comes from.
type CostSource string

// The sources of a duration, from best to worst.
const (
	FromGraph    CostSource = "graph"
	FromMeasured CostSource = "measured"
	FromFit      CostSource = "fit"
	FromRoofline CostSource = "roofline"
)

// Sources lists the sources of durations, from best to worst.
var Sources = []CostSource{FromGraph, FromMeasured, FromFit, FromRoofline}

// guessable is the part of the time of all tasks up to which LeastKnown disregards a source: a load of samples that was not measured is no
// reason to guess convolutions.
const guessable = 0.01

// LeastKnown is the worst source of durations, as an index of Sources, but for sources of a hundredth of the time of all tasks.
func (c *Costs) LeastKnown() int {
	total, by := 0.0, make([]float64, len(Sources))
	for class, tasks := range c.tasks() {
		for _, cost := range c.Devices(int32(class)) {
			by[slices.Index(Sources, cost.Source)] += tasks * float64(cost.Duration)
			total += tasks * float64(cost.Duration)
		}
	}
	worst, rest := len(Sources)-1, 0.0
	for ; worst > 0; worst-- {
		if rest += by[worst]; rest > guessable*total {
			break
		}
	}
	return worst
}

// Guessed reports whether the duration of a task has a worse source than one, an index of Sources, on some device.
func (c *Costs) Guessed(t dag.TaskID, sure int) bool {
	return slices.ContainsFunc(c.ByClass[c.Class[t]], func(cost Cost) bool {
		return cost.Duration >= 0 && slices.Index(Sources, cost.Source) > sure
	})
}

// Costs is the cost of every task on every device, and the variant fixed for it.
// Tasks of equal operation, type, shape, work, given costs and placement share a class. Like devices share a column, so that a
// thousand equal devices cost no more room than one.
type Costs struct {
	Class   []int32  // by task
	ByClass [][]Cost // by class and column; Duration < 0 means cannot run there

	column []int32             // by device; nil means that each has its own
	only   []platform.DeviceID // by class: the one device that may run it. -1 or no list means any
}

// cannot is the cost of a task where it cannot run.
var cannot = Cost{Duration: -1}

// At is the cost of a class of tasks on a device. Duration < 0 means that they cannot run there.
func (c *Costs) At(class int32, d platform.DeviceID) *Cost {
	if c.only != nil && c.only[class] >= 0 && c.only[class] != d {
		return &cannot
	}
	if c.column != nil {
		return &c.ByClass[class][c.column[d]]
	}
	return &c.ByClass[class][d]
}

// Devices visits the devices that can run a class of tasks, with the costs there.
func (c *Costs) Devices(class int32) iter.Seq2[platform.DeviceID, *Cost] {
	first, end := platform.DeviceID(0), platform.DeviceID(max(len(c.column), len(c.ByClass[class])))
	if c.only != nil && c.only[class] >= 0 {
		first, end = c.only[class], c.only[class]+1
	}
	return func(yield func(platform.DeviceID, *Cost) bool) {
		for d := first; d < end; d++ {
			if cost := c.At(class, d); cost.Duration >= 0 && !yield(d, cost) {
				return
			}
		}
	}
}

// tasks counts the tasks of each class.
func (c *Costs) tasks() []float64 {
	tasks := make([]float64, len(c.ByClass))
	for _, class := range c.Class {
		tasks[class]++
	}
	return tasks
}

// Of returns the cost of a task on a device; ok is false where it cannot run.
func (c *Costs) Of(t dag.TaskID, d platform.DeviceID) (cost Cost, ok bool) {
	cost = *c.At(c.Class[t], d)
	return cost, cost.Duration >= 0
}

// Least is the shortest time of a task, whatever its neighbours and the caches are.
func (c *Cost) Least() time.Duration {
	if !c.byCaches() {
		return c.Duration
	}
	return min(c.Busy.Warm, c.Busy.Near, c.Busy.Far, c.Alone.Warm, c.Alone.Near, c.Alone.Far)
}

// byCaches reports whether the duration depends on where the operands are.
func (c *Cost) byCaches() bool { return c.Alone.Near > 0 }

// StatesOf is the clock at which a task runs on a device, by the plan or in force, and the sleep state
// of its unit after it, as an index plus 1.
func (p *Problem) StatesOf(t dag.TaskID, d platform.DeviceID) (clock platform.ClockID, sleeps int32) {
	clock = p.Platform.Devices[d].AtClock
	if p.Clocks != nil && p.Clocks[t] != platform.InForce {
		clock = p.Clocks[t]
	}
	if p.Sleeps != nil {
		sleeps = p.Sleeps[t]
	}
	return clock, sleeps
}

// occupies is how long a task keeps a worker: dispatch and kernel. The worker
// must be able to run it.
func (p *Problem) occupies(t dag.TaskID, w platform.WorkerID) time.Duration {
	d := p.Platform.Workers[w].Device
	return p.Platform.Devices[d].Dispatch + p.Costs.At(p.Costs.Class[t], d).Duration
}

// LongestRun bounds the sum of all durations of a run, so that no time overflows.
const LongestRun = time.Duration(1 << 61)

// check refuses problems that no engine can run.
func (p *Problem) Check() error {
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
	for class, tasks := range p.Costs.tasks() {
		for _, c := range p.Costs.Devices(int32(class)) {
			serial += tasks * float64(c.Duration)
		}
	}
	for t := range p.Graph.Tasks {
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
