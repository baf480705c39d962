package certificate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// Model is one step of a graph on some devices, as far as bounds know it: everything in it is no more
// than what the simulator charges.
type Model struct {
	Objective problem.Objective
	// Steady: the step is one of many that follow each other. Times are then means over all steps, with starts relative to the
	// step, and T is the distance of two steps.
	Steady   bool
	Tasks    []Task
	Devices  []Device
	Memories []Memory
	Edges    []Edge
	Versions []Version
	// FloorWatts are drawn all the time, whatever runs: the host, idle units and links.
	FloorWatts float64
	// CrossingNanos is a time for the moves between memories or nodes that every plan has to make.
	CrossingNanos int64
	// Conditions restrict the plans of the model; none: of all.
	Conditions []Condition
	// LeastSpan is a known lower bound of T: it is no less.
	LeastSpan float64
	// Context ends the search for the least time of pools, which then is 0; nil means nothing does.
	Context context.Context

	mostSpan  float64         // T is no more; zero means nothing is known
	excluded  []bool          // by column: shares that the conditions make 0; nil means none
	partings  []parting       // by nodes
	shares    []int32         // by task: the column of its first option; and one past the last
	edgesFrom [][]int32       // by task: its edges
	after     [2][][]int32    // by how many steps later, and task: those that follow it at once
	before    [2][][]int32    // and that it follows
	pooled    *int64          // of all tasks; 0 means it is not known yet
	spreads   map[int32]int64 // by task that a spread is around; -1 means all
	tied      *int64          // of all partings; negative means it is not known yet
	periods   map[string]bool // by reference and length: whether they are refuted

	reached []set // by steps, direction and task, as of reachKey; nil means nobody has asked
}

// Task is the ways to run a task.
type Task struct{ Options []Option }

// Option is a device and a clock on which a task can run.
type Option struct {
	Device     int
	Clock      platform.ClockID
	Nanos      int64   // for which it keeps a unit, dispatch included
	AwakeNanos int64   // of those, in which its device draws AwakeWatts
	Nanojoules float64 // above what the unit adds to Model.FloorWatts, and without AwakeWatts
}

// Device is a pool of equal units at a memory.
type Device struct {
	Name          string
	Units, Memory int
	AwakeWatts    float64 // above the watts of units, while any of them runs
}

// Memory is how bytes get into a memory at best.
type Memory struct {
	NanojoulesPerByte float64 // of links above idle
	Engines           int     // copies into it at once; zero means not limited
}

// Edge orders two tasks of one step, or of steps Back apart, and holds the bytes that the later one reads.
type Edge struct {
	From, To int32
	Back     int32
	Bytes    int64
	Nanos    []int64 // by memory: how long these bytes take at least to get there from elsewhere
}

// Version is contents that tasks read, written by one task or there before the step.
type Version struct {
	Writer  int32 // -1 means Home has them before the step
	Home    int
	Bytes   int64
	Readers []int32
	Nanos   []float64 // by memory: for how long the copies of it into there keep an engine at least

	storage int32 // of which it is a part, until versions are merged
}

// NewModel makes the model of a step of the first graph of a program, one that runs alone or a steady one. It fails where a
// device draws less busy than idle, or a task can run nowhere.
func NewModel(c *schedule.Priced, o problem.Objective, steady bool) (*Model, error) {
	m, err := newDevices(c, o, steady)
	if err != nil {
		return nil, err
	}
	if err := m.addData(c.Program.Graphs[0], c.Platform); err != nil {
		return nil, err
	}
	m.partings = partingsOf(c.Platform)
	m.link()
	m.number()
	return m, nil
}

// On is the model of the same step on other devices of the same machine. What tasks read of each other is taken from m,
// since it takes longest to find.
func (m *Model) On(c *schedule.Priced) (*Model, error) {
	on, err := newDevices(c, m.Objective, m.Steady)
	if err != nil {
		return nil, err
	}
	if len(on.Tasks) != len(m.Tasks) || len(on.Memories) != len(m.Memories) {
		panic("certificate: a model of another graph or machine")
	}
	on.Edges, on.Versions, on.edgesFrom, on.after, on.before = m.Edges, m.Versions, m.edgesFrom, m.after, m.before
	on.partings = m.partings
	on.number()
	return on, nil
}

// newDevices is a model without what tasks read of each other.
func newDevices(c *schedule.Priced, o problem.Objective, steady bool) (*Model, error) {
	p := c.Platform
	m := &Model{Objective: o, Steady: steady, FloorWatts: p.HostWatts().Value, CrossingNanos: int64(c.CrossingTime(0, steady))}
	for i := range p.Devices {
		if err := m.addDevice(&p.Devices[i]); err != nil {
			return nil, err
		}
	}
	for i := range p.Links {
		m.FloorWatts += platform.LeastWatts(p.Links[i].IdleWatts, p.Links[i].Sleeps)
	}
	for to := range p.Memories {
		memory := memoryOf(p, platform.MemoryID(to))
		if !p.IsHost(platform.MemoryID(to)) { // which has none
			memory.Engines, _ = p.CopyEngines(platform.MemoryID(to))
		}
		m.Memories = append(m.Memories, memory)
	}
	m.addTasks(c)
	return m, nil
}

// addDevice adds a device. With n units busy it draws what all draw idle, AwakeWatts, and n times the
// watts of a unit, at each of its clocks: the power is linear from one busy unit to all.
func (m *Model) addDevice(d *platform.Device) error {
	awake := math.Inf(1)
	for _, clock := range d.FreeClocks() {
		first, each := d.BusyWatts(clock)
		awake = min(awake, first)
		if each < 0 {
			return fmt.Errorf("device %q draws less busy than idle, and bounds do not know that", d.Name)
		}
	}
	floor := float64(float64(d.Count) * problem.RestWatts(d, d.FreeClocks()))
	if d.MayBeOff {
		floor = min(floor, d.OffWatts)
	}
	m.FloorWatts += floor
	m.Devices = append(m.Devices, Device{Name: d.Name, Units: d.Count, Memory: int(d.Memory), AwakeWatts: awake})
	return nil
}

// addTasks prices the tasks at every clock. Each option takes the shortest time and the fewest joules of all variants, states
// of caches and neighbours.
func (m *Model) addTasks(c *schedule.Priced) {
	p, costs := c.Platform, c.Costs(0)
	clocks := platform.ClockID(1)
	for i := range p.Devices {
		clocks = max(clocks, p.Devices[i].NumClocks())
	}
	byClass := make([][]Option, len(costs.ByClass))
	for clock := range clocks {
		for class, byDevice := range c.ByVariant(0, clock) {
			for id, byVariant := range byDevice {
				if d := &p.Devices[id]; len(byVariant) > 0 && slices.Contains(d.FreeClocks(), clock) {
					o := optionOf(d, id, clock, &byVariant[0])
					for k := range byVariant[1:] {
						o.atMost(optionOf(d, id, clock, &byVariant[1+k]))
					}
					byClass[class] = append(byClass[class], o)
				}
			}
		}
	}
	for _, class := range costs.Class {
		m.Tasks = append(m.Tasks, Task{slices.Clone(byClass[class])})
	}
}

// optionOf is a call with some cost on a device at a clock.
func optionOf(d *platform.Device, id int, clock platform.ClockID, cost *schedule.Cost) Option {
	least := int64(cost.Least())
	o := Option{Device: id, Clock: clock, Nanos: int64(d.Dispatch) + least, AwakeNanos: least}
	extra := d.ClockAt(clock).Idle - problem.RestWatts(d, d.FreeClocks())
	if cost.Joules != 0 {
		o.AwakeNanos, o.Nanojoules = 0, below(float64(cost.Joules*1e9)+float64(extra*float64(least)))
	} else {
		_, each := d.BusyWatts(clock)
		o.Nanojoules = below(float64((extra + each) * float64(least)))
	}
	return o
}

// atMost makes an option take no more than another one of its device and clock.
func (o *Option) atMost(other Option) {
	o.Nanos, o.AwakeNanos, o.Nanojoules = min(o.Nanos, other.Nanos), min(o.AwakeNanos, other.AwakeNanos), min(o.Nanojoules, other.Nanojoules)
}

// below and above are numbers a little below and above one that was rounded a few times.
func below(x float64) float64 { return x - math.Abs(x)*1e-12 }
func above(x float64) float64 { return x + math.Abs(x)*1e-12 }

// memoryOf finds for how little bytes can get into a memory.
func memoryOf(p *platform.Platform, to platform.MemoryID) Memory {
	least := math.Inf(1)
	for from := range platform.MemoryID(len(p.Memories)) {
		if _, ok := p.Route(from, to); ok && from != to {
			least = min(least, below(max(0, p.RouteJoulesPerByte(from, to)*1e9)))
		}
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	return Memory{NanojoulesPerByte: least}
}

// link lists the edges by task.
func (m *Model) link() {
	n := len(m.Tasks)
	m.edgesFrom = make([][]int32, n)
	for back := range m.after {
		m.after[back], m.before[back] = make([][]int32, n), make([][]int32, n)
	}
	for i, e := range m.Edges {
		m.edgesFrom[e.From] = append(m.edgesFrom[e.From], int32(i))
		m.after[e.Back][e.From] = append(m.after[e.Back][e.From], e.To)
		m.before[e.Back][e.To] = append(m.before[e.Back][e.To], e.From)
	}
}

// number numbers the columns, of which nothing is known yet.
func (m *Model) number() {
	n := len(m.Tasks)
	m.reached = make([]set, 4*n)
	m.pooled, m.spreads, m.periods, m.tied = new(int64), map[int32]int64{}, map[string]bool{}, new(int64)
	*m.tied = -1
	m.shares = make([]int32, n+1)
	for t := range m.Tasks {
		m.shares[t+1] = m.shares[t] + int32(len(m.Tasks[t].Options))
	}
}
