package schedule

import (
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

	// Reuse and ReuseNext are orders beyond the graph's that let buffers share
	// bytes; they come from a Layout. To starts after From has ended: of the same
	// step for Reuse, of the step before for ReuseNext.
	Reuse     []Edge
	ReuseNext []Edge

	Seed uint64 // for policies that draw random numbers

	// Layouts, by memory, are where the storages lie in the whole run. Of storages that
	// share bytes in a memory other than the host's, one at a time is there; a storage
	// without a place in it is never. A memory without a layout holds any bytes up to its
	// capacity. Nil: none has one. They are for policies that decide at run time
	// ([LayoutOnDemand]).
	Layouts []*Layout
}

// Edge is an order between two tasks.
type Edge struct{ From, To dag.TaskID }

// Cost is what one task costs on one device.
type Cost struct {
	Duration time.Duration
	Joules   float64 // per call; 0: the platform's busy power over Duration
	Variant  string  // "": the machine's default
	Source   CostSource
	RelError float64 // of the fit, as a fraction; 0: not known

	WorkspaceBytes int64 // scratch of one call

	First time.Duration // in the first step of a run; 0: as Duration
	// Of a call measured by itself and not in steps, by where its operands are, with
	// all units of the device busy and with one; all zero: as Duration.
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

// Costs is the cost of every task on every device, and the variant fixed for it.
// Tasks of equal operation, type, shape, work, given costs and placement share a class.
type Costs struct {
	Class   []int32  // by task
	ByClass [][]Cost // by class and device; Duration < 0: cannot run there
}

// Of returns the cost of a task on a device; ok is false where it cannot run.
func (c *Costs) Of(t dag.TaskID, d platform.DeviceID) (cost Cost, ok bool) {
	cost = c.ByClass[c.Class[t]][d]
	return cost, cost.Duration >= 0
}

// memoryOf is the memory in which a worker finds its operands.
func (p *Problem) memoryOf(w platform.WorkerID) platform.MemoryID {
	return p.Platform.Devices[p.Platform.Workers[w].Device].Memory
}

// least is the shortest that a task can take, whatever runs beside it and before it.
func (c *Cost) least() time.Duration {
	if !c.byCaches() {
		return c.Duration
	}
	return min(c.Busy.Warm, c.Busy.Near, c.Busy.Far, c.Alone.Warm, c.Alone.Near, c.Alone.Far)
}

// byCaches reports whether the duration depends on where the operands are.
func (c *Cost) byCaches() bool { return c.Alone.Near > 0 }

// occupies is how long a task keeps a worker: dispatch and kernel. The worker
// must be able to run it.
func (p *Problem) occupies(t dag.TaskID, w platform.WorkerID) time.Duration {
	d := p.Platform.Workers[w].Device
	return p.Platform.Devices[d].Dispatch + p.Costs.ByClass[p.Costs.Class[t]][d].Duration
}
