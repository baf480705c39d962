package improve

import (
	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// model is the evaluator's form of a problem, laid out for speed. Times are nanoseconds.
type model struct {
	platform   *platform.Platform
	tasks      int
	steady     bool
	waits      waits
	class      []int32  // by task: of its calls
	rank       []int32  // by task: of its name
	reach      int32    // the most steps back that a task may look
	calls      [][]call // by device and clock (slot), then class
	slot       []int32  // by device: of its first clock
	devices    []device
	workers    []worker
	data       *problem.Data // nil means all is in one memory
	manyClocks bool
	timeOnly   bool    // nobody asks for joules
	rest       float64 // watts of the host and of links that idle
}

// waits are the tasks that each task waits for, of its own step and of steps before.
type waits struct {
	start []int32 // by task, and one past the last
	of    []wait
}

type wait struct{ task, back int32 }

// call is one of a class of tasks on a device at a clock.
type call struct {
	takes, first int64   // first: in the first step
	joules       float64 // above an idle unit's; of shared, without what the first busy unit adds
	shared       bool    // that is added too
}

// device is one of the platform.
type device struct {
	*platform.Device
	toCPU       int64 // the greatest of all devices, where it takes another's end so long to be seen here
	count       float64
	idle, first []float64 // watts by clock: of an idle unit; what the first busy unit adds beyond the others
	shares      bool      // some first is not 0
	clocks      bool      // there are several
}

// worker is one unit. Units whose clock changes together are one domain.
type worker struct {
	device, domain int32
	memory         platform.MemoryID
}

// newModel makes the model of a problem of a graph with some copies of its buffers.
func newModel(of *problem.Problem, priced *schedule.Priced, g *dag.Graph, o *Options) *model {
	p := priced.Platform
	m := &model{platform: p, data: of.Data, tasks: len(g.Tasks), steady: o.Steady, timeOnly: o.Objective == problem.Time, rest: p.HostWatts().Value}
	for l := range p.Links {
		m.rest += p.Links[l].IdleWatts
	}
	m.addWaits(g)
	for t := range dag.TaskID(m.tasks) {
		m.rank = append(m.rank, g.Rank(t))
	}
	m.addDevices()
	for w := range p.Workers {
		own := worker{device: int32(p.Workers[w].Device), domain: int32(w), memory: p.MemoryOf(platform.WorkerID(w))}
		if !p.Devices[own.device].UnitClocks {
			own.domain -= int32(p.Workers[w].Index)
		}
		m.workers = append(m.workers, own)
	}
	m.addCalls(of, priced.Costs(0))
	return m
}

func (m *model) addWaits(g *dag.Graph) {
	for t := range dag.TaskID(m.tasks) {
		m.waits.start = append(m.waits.start, int32(len(m.waits.of)))
		for back := range g.Reach() + 1 {
			for _, list := range g.PredsBack(t, back) {
				for _, before := range list {
					m.waits.of = append(m.waits.of, wait{before, back})
				}
			}
			if !m.steady {
				break
			}
		}
	}
	m.waits.start = append(m.waits.start, int32(len(m.waits.of)))
	m.reach = g.Reach()
}

func (m *model) addDevices() {
	p := m.platform
	toCPU := int64(0)
	for i := range p.Devices {
		toCPU = max(toCPU, int64(p.Devices[i].HandoffToCPU))
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		own := device{Device: d, count: float64(d.Count), clocks: len(d.Clocks) > 1}
		if d.HandoffToCPU == 0 {
			own.toCPU = toCPU
		}
		for c := range d.NumClocks() {
			first, _ := d.BusyWatts(c)
			own.idle, own.first = append(own.idle, d.ClockAt(c).Idle), append(own.first, first)
			own.shares = own.shares || first != 0
		}
		m.manyClocks = m.manyClocks || own.clocks
		m.devices = append(m.devices, own)
	}
}

// addCalls finds what the calls take and draw.
func (m *model) addCalls(of *problem.Problem, costs *schedule.Costs) {
	m.class = costs.Class
	for id := range m.devices {
		m.slot = append(m.slot, int32(len(m.calls)))
		for clock := range m.platform.Devices[id].NumClocks() {
			row := make([]call, len(costs.ByClass))
			for t, class := range m.class {
				if int(clock) >= len(of.AtClock) {
					break // it is not allowed
				}
				if cost, ok := of.AtClock[clock].Of(dag.TaskID(t), platform.DeviceID(id)); ok {
					row[class] = m.callOf(&m.platform.Devices[id], clock, &cost)
				}
			}
			m.calls = append(m.calls, row)
		}
	}
}

func (m *model) callOf(d *platform.Device, clock platform.ClockID, cost *schedule.Cost) call {
	c := call{takes: int64(cost.Duration), first: int64(max(cost.Duration, cost.First)), joules: cost.Joules}
	if cost.Joules == 0 {
		_, each := d.BusyWatts(clock)
		c.joules, c.shared = float64(each*float64(cost.Duration))/1e9, true
	}
	return c
}
