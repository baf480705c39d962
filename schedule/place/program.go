package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// Program is a program compiled for a platform of several memories. The transfers between them are tasks like any
// other.
//
// Every memory has buffers of its own, the *replicas* of the origin's buffers. Every transfer inside a step is a task
// of operation [CopyOp] from one replica to another, right after its writer. Package dag then derives the
// dependences, with reuse of the source and of the destination and with the step before. A replay of the lists of
// Order is right whatever the times, if it waits for the predecessors of each task.
type Program struct {
	Origin   *dag.Program
	Platform *platform.Platform
	Graphs   []*Graph // in the origin's order
	Lanes    []Lane   // the workers of the platform, then the copy engines
	// Layouts say, by graph and memory, where its buffers lie; the offsets of others are -1.
	// They are made when they are first asked for, where no order rests on them and there is
	// room for all.
	Layouts func() [][]*layout.Layout
	// Attempts is how many times the program was made, each time with more evictions; 1 where all has room.
	Attempts int
}

// CopyOp is the operation of a transfer. Its accesses are pairs of a region to read and one of the same shape to
// write.
const CopyOp = "copy"

// Lane runs one list of tasks in order: a worker, or a copy engine.
type Lane struct {
	Name   string
	Worker platform.WorkerID // -1 for a copy engine
	// Memory is the worker's memory, or the device memory of the engine: with In the engine copies into it, else out
	// of it.
	Memory platform.MemoryID
	In     bool
}

// Graph is one graph of a placed program. Tasks are its own unless a comment names the origin. It has the origin's
// tasks and the transfers between them, in program order. With evictions the order comes from an estimate.
type Graph struct {
	Origin     *dag.Graph
	*dag.Links                // dependences of the tasks
	Order      [][]dag.TaskID // by lane; transfers that no limited engine makes are on none

	// Graph is all of it with names and regions. It is made at the first call, since a replay of the lists does not
	// need it. It fails where a name is given twice.
	Graph func() (*dag.Graph, error)

	// Enter lists the moves before the first step, from the homes of storages to the memories that read them before a
	// step writes them. They can be made one by one in this order. Leave lists the moves after the last step. They
	// bring home the contents that storages keep.
	Enter, Leave []*Move

	// All layouts together rely on the orders Reuse within a step and MemoryReuseNext from step to step, which Links
	// lacks. A runner that keeps them finds everything where and as it should be.
	// A step may then begin in one memory while another still works
	// on the contents of the step before.
	Reuse, MemoryReuseNext []dag.Edge
	// Orders are Reuse and MemoryReuseNext, by the number of steps between the two tasks, and further orders. The
	// latter only make a schedule of this graph one of the origin, with its buffers in one memory.
	Orders func() [][]dag.Edge

	*traffic
	replicas        *replicas       // nil means nothing moves
	carries, writes []bool          // by replica: it keeps its contents from step to step, a task writes it
	streamed        map[string]bool // names of replicas that are not kept, and share room with others
	buffers         func() *writtenOut
	engines         func() map[engineGroup][]int // by what they can make: the lanes
	spillPlan       *SpillPlan                   // nil means nothing leaves a memory and comes back
}

// Move is one movement from one memory to another.
type Move struct {
	Buffer   dag.BufferID // storage of the origin
	From, To platform.MemoryID
	// For is the task of the origin that reads it first, -1 if none does; of the next
	// step if NextStep.
	For      dag.TaskID
	Writer   dag.TaskID // of the origin: what it moves it has written; -1: what was there before, or came back
	NextStep bool
	// Anywhere marks an input without a writer and without a home. The schedule does not say where it is before the
	// run, and its upload is no transfer of the schedule.
	Anywhere bool
	Atoms    []int32 // of the origin, ascending
	Bytes    int64
	Reason   Reason

	Part, Parts int32 // number of the part of a staged move, from 0 on, and of how many; zero Parts means that it is whole
	Share       Share // of its only atom
}

// StepOf is the step of the task for which a move is made in a step of a run: that one or
// the next. In the last step too it is made for the next, which there is not; that counts
// as of the last.
func (m *Move) StepOf(made int32, steps int) int32 {
	if m.NextStep {
		return min(made+1, int32(steps-1))
	}
	return made
}

// RegionPair is where a part of a move comes from and goes to; the shapes are equal.
type RegionPair struct{ From, To dag.Region }

// Reason says why something moves; empty where it is not known.
type Reason string

// The reasons. Placing prefetches, and evicts what comes back.
const (
	ReasonPrefetch Reason = "prefetch" // a task will need it
	ReasonEvict    Reason = "evict"    // it has to leave and is valid nowhere else
	ReasonReload   Reason = "reload"   // it was evicted and is needed again
	ReasonEnter    Reason = "enter"    // it is there before the first step and needed elsewhere
	ReasonLeave    Reason = "leave"    // the last step left it, and it has to be at home
)

// Input is one graph to be placed.
type Input struct {
	Order        [][]dag.TaskID                                        // the tasks of a step by worker, in the order in which it runs them
	Occupies     func(t dag.TaskID, w platform.WorkerID) time.Duration // how long a task keeps a worker
	ScratchBytes []int64                                               // by memory: for the workspaces of kernels
	Lags         []int32                                               // by task: how many steps it runs behind the first ones; nil means none
	Written                                                            // what is decided already
}

// placement is the worker of every task and its place in the worker's list.
func (plan *Input) placement(tasks int) (workers []platform.WorkerID, position []int32) {
	workers, position = make([]platform.WorkerID, tasks), make([]int32, tasks)
	for w, list := range plan.Order {
		for at, t := range list {
			workers[t], position[t] = platform.WorkerID(w), int32(at)
		}
	}
	return workers, position
}

// Compile places a plan for every graph of a program. Where a plan lists versions of buffers, the graph has of each
// buffer as many as the memory with most ([dag.Graph.WithVersions]). Compile fails when a transfer has no route, or
// when a memory is too small.
//
// Compile keeps to the transfers, places and evictions of a plan. It refuses them where its placement of the tasks
// needs others, or where they are not safe. With all of them,
// as [Program.Written] gives them, the placed graph depends neither on the costs nor on the
// other graphs of the program.
//
// Where nothing leaves the host memory the graphs are the origin's own.
func Compile(prog *dag.Program, p *platform.Platform, plans []Input) (*Program, error) {
	c := &compiler{prog: prog, p: p, lanes: Lanes(p), plans: plans, limits: map[platform.MemoryID]int64{}, estimated: map[int]estimatedOrder{}}
	return c.compile()
}

// compiler makes a placed program.
type compiler struct {
	prog   *dag.Program
	p      *platform.Platform
	lanes  []Lane
	plans  []Input                     // by graph
	limits map[platform.MemoryID]int64 // bytes that may be live in a memory; absent: all

	estimated map[int]estimatedOrder // by graph, once evictions were tried
}

// estimatedOrder is the order along which evictions are decided. It is the same whatever the limits.
type estimatedOrder struct {
	started []dag.TaskID
	names   []string
}

// maxSpills bounds the attempts to make the contents of a memory smaller. The live bytes may fit while the layout
// does not, since it has gaps. Each attempt takes away the excess and a share of the memory, which doubles from attempt to attempt.
const maxSpills = 12

// compile lays the program out, and again with less in a memory that is too small.
func (c *compiler) compile() (*Program, error) {
	var tooLarge error
	for attempts := range maxSpills {
		placed, unlike, err := c.attempt()
		if err != nil && tooLarge != nil {
			return nil, fmt.Errorf("%w; with less in it: %w", tooLarge, err)
		}
		if err != nil {
			return nil, err
		}
		placed.Attempts = attempts + 1
		if unlike == nil && c.layOutLater(placed) {
			placed.Layouts = sync.OnceValue(func() [][]*layout.Layout {
				layouts, _, err := placed.layOut(true)
				if err != nil {
					panic("place: buffers that have room cannot be laid out: " + err.Error())
				}
				return layouts
			})
			return placed, nil
		}
		var layouts [][]*layout.Layout
		excess, err := placed.overfull()
		if excess == nil {
			layouts, excess, err = placed.layOut(false)
		}
		if excess == nil {
			for i := range layouts {
				placed.Graphs[i].keepOrders(layouts[i])
			}
			placed.Layouts = func() [][]*layout.Layout { return layouts }
			return placed, cmp.Or(unlike, err)
		}
		tooLarge = err
		lagged := slices.ContainsFunc(c.plans, func(plan Input) bool { return plan.Lags != nil })
		for m, bytes := range excess {
			if c.p.IsHost(m) || lagged {
				return nil, tooLarge
			}
			if _, limited := c.limits[m]; !limited {
				c.limits[m] = c.p.Memories[m].CapacityBytes - c.mostScratch(m)
			} else {
				c.limits[m] -= bytes + c.limits[m]>>(maxSpills-attempts)
			}
			if c.limits[m] <= 0 {
				return nil, tooLarge
			}
		}
	}
	return nil, tooLarge
}

func (c *compiler) mostScratch(m platform.MemoryID) int64 {
	var most int64
	for i := range c.plans {
		most = max(most, layout.Align(c.plans[i].ScratchBytes[m]))
	}
	return most
}

// attempt derives the transfers of each graph, makes them tasks, and orders them on the copy engines. unlike says
// where a plan lists others, as it may before everything fits.
func (c *compiler) attempt() (placed *Program, unlike, err error) {
	placed = &Program{Origin: c.prog, Platform: c.p, Lanes: c.lanes}
	traffics, items, spills := make([]*traffic, len(c.plans)), make([][]stepItem, len(c.plans)), make([]*SpillPlan, len(c.plans))
	streamed := map[string]bool{} // names of replicas
	for i, g := range c.prog.Graphs {
		if traffics[i], items[i], spills[i], err = c.items(i, streamed); err != nil {
			return nil, nil, fmt.Errorf("graph %q: %w", g.Name, err)
		}
	}
	for i, g := range c.prog.Graphs {
		pg := traffics[i].build(items[i], streamed)
		if err := cmp.Or(pg.checkVersions(), pg.orderLanes()); err != nil {
			return nil, nil, fmt.Errorf("graph %q: %w", g.Name, err)
		}
		if err := pg.followTransfers(); err != nil && unlike == nil {
			unlike = fmt.Errorf("graph %q: %w", g.Name, err)
		}
		pg.spillPlan = spills[i].returning(streamed)
		placed.Graphs = append(placed.Graphs, pg)
	}
	return placed, unlike, nil
}

// items finds the moves of a graph, and with evictions the tasks and transfers together. It adds to streamed the
// storages that are not in a memory all the time. A nil spills means that nothing is evicted.
func (c *compiler) items(graph int, streamed map[string]bool) (t *traffic, items []stepItem, spills *SpillPlan, err error) {
	if t, err = newTraffic(c.prog.Graphs[graph], c.p, c.lanes, &c.plans[graph], c.partsSize(&c.plans[graph])); err != nil {
		return nil, nil, nil, err
	}
	limits, started, spills, err := c.spillOrder(graph, t)
	if err != nil || spills == nil {
		return t, nil, nil, err
	}
	returning := map[string]bool{}
	if t.moves != nil { // else there is nothing in those memories
		items = inOrder(t.items(), started, c.p)
		// The evictions and reloads of a memory change no rows in another one.
		rows := t.rowsUsed(len(items), func(i int) (dag.TaskID, *Move) { return items[i].task, items[i].move })
		for _, m := range slices.Sorted(maps.Keys(limits)) {
			if items, err = t.spillMemory(items, m, limits[m], rows, returning); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	for _, name := range spills.Returning {
		returning[name] = true
	}
	maps.Copy(streamed, returning)
	return t, items, spills, nil
}

// partsSize is the size of the parts of staged transfers: the plan's, or where the plan lists no transfers the
// platform's. With evictions everything moves whole.
func (c *compiler) partsSize(plan *Input) int64 {
	switch {
	case len(c.limits) > 0 || plan.Spill != nil:
		return 0
	case plan.Transfers != nil:
		return plan.PartBytes
	}
	return partBytes(c.p)
}

// spillOrder is the limits of live bytes in memories, and the order along which evictions are decided: the plan's, or
// an estimate's. A plan that lists places was found to fit, and gets no lower limits.
func (c *compiler) spillOrder(graph int, t *traffic) (limits map[platform.MemoryID]int64, started []dag.TaskID, spills *SpillPlan, err error) {
	plan := t.plan
	if plan.Spill == nil && (len(c.limits) == 0 || plan.Places != nil) {
		return nil, nil, nil, nil
	}
	if plan.Spill != nil {
		if limits, err = plan.Spill.limits(c.p); err == nil {
			started, err = plan.Spill.started(t.build(nil, nil))
		}
		return limits, started, plan.Spill, err
	}
	order, known := c.estimated[graph]
	if !known {
		pg := t.build(nil, nil)
		if order.started, err = pg.StartOrder(); err != nil {
			return nil, nil, nil, err
		}
		for _, t := range order.started {
			order.names = append(order.names, pg.Name(t))
		}
		c.estimated[graph] = order
	}
	return c.limits, order.started, newSpillPlan(c.p, c.limits, order.names), nil
}

// Lanes lists the workers and the copy engines of a platform. Every memory but a host's has engines into it and
// then engines out of it. Where the devices of a memory do not say how many they have, there is no lane, and a
// transfer starts as soon as it can.
func Lanes(p *platform.Platform) []Lane {
	var lanes []Lane
	for w := range p.Workers {
		lanes = append(lanes, Lane{Name: p.Workers[w].Name, Worker: platform.WorkerID(w), Memory: p.MemoryOf(platform.WorkerID(w))})
	}
	for m := range p.Memories {
		if p.IsHost(platform.MemoryID(m)) {
			continue
		}
		in, out := p.CopyEngines(platform.MemoryID(m))
		for i := range in {
			lanes = append(lanes, Lane{Name: fmt.Sprintf("%s in %d", p.Memories[m].Name, i), Worker: -1, Memory: platform.MemoryID(m), In: true})
		}
		for i := range out {
			lanes = append(lanes, Lane{Name: fmt.Sprintf("%s out %d", p.Memories[m].Name, i), Worker: -1, Memory: platform.MemoryID(m)})
		}
	}
	return lanes
}
