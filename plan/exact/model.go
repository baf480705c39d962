package exact

import (
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// model is a problem as the search sees it. Times are nanoseconds.
type model struct {
	graph     *dag.Graph
	platform  *platform.Platform
	problem   *problem.Problem
	objective problem.Objective
	tasks     []task
	sorted    []int32 // tasks, those before that others wait for
	pieces    []piece
	devices   []device
	unlike    bool // units of a device differ, since tasks name workers or each other
	groups    int  // of tasks that are to share a worker
	staged    bool // some way between memories passes the host's
	varied    bool // some call takes or draws less by a variant that a plan without variants does not run it by

	// What is drawn all the time, in joules per nanosecond: by the host and links. Devices add theirs.
	restJ float64

	tails                 [][]int64 // by task and device: from its end there to the end of the step, at least
	ranks                 []int64   // by task: from its start to the end of the step, at least
	timeAreas, energyArea []area
}

// task is one of the graph.
type task struct {
	before   uint64  // tasks that it waits for
	after    uint64  // tasks that wait for it
	reads    []int32 // pieces
	settings []setting
	least    []int64 // by device: dispatch and call; -1 means it cannot run there
	allowed  []bool  // by worker
	group    int     // -1 means none
}

// setting is a device and a clock of it, for a task.
type setting struct {
	device platform.DeviceID
	clock  platform.ClockID
	takes  int64   // the call, by the variant that takes least
	joules float64 // of the call by the most frugal variant, above a waiting unit's
}

// piece is all that one task wrote of one storage for the same readers, or contents from before the run.
// It goes to another memory once.
type piece struct {
	writer  int32             // -1 means it was there
	home    platform.MemoryID // where it was then
	readers uint64            // tasks
	ways    [][]int64         // by memories: how long it takes; -1 means no way
	hops    [][]float64       // by memories that are next to each other: joules
}

// device is one of the platform.
type device struct {
	workers    []platform.WorkerID
	twins      uint64 // devices before it
	memory     platform.MemoryID
	dispatch   int64
	switches   bool // a change of clock takes something, and the clock is a unit's own
	switchTime int64
	switchJ    float64
	restJ      float64 // joules per nanosecond of all its units, where the run uses it
	unusedJ    float64 // and where it does not
}

const noWay = math.MaxInt64 / 8

func newModel(priced *schedule.Priced, o Options) (*model, error) {
	m := &model{graph: priced.Program.Graphs[0], platform: priced.Platform, objective: o.Objective}
	data, err := problem.NewData(m.platform, m.graph, false)
	if err != nil {
		return nil, err
	}
	if m.problem, err = problem.New(priced, nil, o.Clocks, data); err != nil {
		return nil, err
	}
	m.addDevices()
	m.addTasks()
	m.addSettings(priced)
	m.addPieces()
	m.addTwins()
	m.sort()
	m.addTails()
	m.addAreas()
	return m, nil
}

// perNs turns watts into what the objective counts of a nanosecond.
func (m *model) perNs(watts float64) float64 {
	if m.objective == problem.Time {
		return 0
	}
	return float64(watts * 1e-9)
}

// maySleep reports whether a plan with sleep states may draw less than all plans of the search.
func (m *model) maySleep() bool {
	return m.objective != problem.Time && slices.ContainsFunc(m.platform.Devices, func(d platform.Device) bool { return len(d.Sleeps) > 0 })
}

func (m *model) addDevices() {
	p := m.platform
	m.restJ = m.perNs(p.HostWatts().Value)
	if m.objective == problem.Time {
		m.restJ = 1
	}
	for l := range p.Links {
		m.restJ += m.perNs(platform.LeastWatts(p.Links[l].IdleWatts, p.Links[l].Sleeps))
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		own := device{memory: d.Memory, dispatch: int64(d.Dispatch)}
		if d.UnitClocks || d.Count == 1 {
			own.switches, own.switchTime, own.switchJ = d.Switch != platform.Transition{}, int64(d.Switch.Takes), m.perNs(d.Switch.Joules*1e9)
		}
		own.restJ = float64(float64(d.Count) * m.perNs(problem.RestWatts(d, m.problem.Clocks[i])))
		own.unusedJ = own.restJ
		if d.MayBeOff {
			own.unusedJ = min(own.restJ, m.perNs(d.OffWatts))
		}
		m.devices = append(m.devices, own)
	}
	for w := range p.Workers {
		d := &m.devices[p.Workers[w].Device]
		d.workers = append(d.workers, platform.WorkerID(w))
	}
}

func (m *model) addTasks() {
	groups := map[int32]int{}
	m.tasks = make([]task, len(m.graph.Tasks))
	for t := range m.tasks {
		own := &m.tasks[t]
		for _, before := range m.graph.Preds(dag.TaskID(t)) {
			own.before |= 1 << before
			m.tasks[before].after |= 1 << t
		}
		own.allowed, own.group = make([]bool, len(m.platform.Workers)), -1
		for _, w := range m.problem.Workers[t] {
			own.allowed[w] = true
		}
		for w := range own.allowed {
			m.unlike = m.unlike || own.allowed[w] != own.allowed[w-m.platform.Workers[w].Index]
		}
		if of := m.problem.Groups[t]; of >= 0 {
			if _, known := groups[of]; !known {
				groups[of] = len(groups)
			}
			own.group, m.unlike = groups[of], true
		}
	}
	m.groups = len(groups)
}

// addSettings finds what the calls take and draw.
func (m *model) addSettings(priced *schedule.Priced) {
	for t := range m.tasks {
		m.tasks[t].least = slices.Repeat([]int64{-1}, len(m.devices))
	}
	for id := range m.devices {
		d := &m.platform.Devices[id]
		rest := problem.RestWatts(d, m.problem.Clocks[id])
		for _, clock := range m.problem.Clocks[id] {
			costs, byVariant := m.problem.AtClock[clock], priced.ByVariant(0, clock)
			for t := range m.tasks {
				own := &m.tasks[t]
				cost, ok := costs.Of(dag.TaskID(t), platform.DeviceID(id))
				if !ok || !slices.ContainsFunc(m.devices[id].workers, func(w platform.WorkerID) bool { return own.allowed[w] }) {
					continue
				}
				s := setting{device: platform.DeviceID(id), clock: clock}
				s.takes, s.joules = m.callOf(d, clock, rest, &cost)
				for _, other := range byVariant[costs.Class[t]][id] {
					takes, joules := m.callOf(d, clock, rest, &other)
					m.varied = m.varied || takes < s.takes || joules < s.joules
					s.takes, s.joules = min(s.takes, takes), min(s.joules, joules)
				}
				own.settings = append(own.settings, s)
				if all := s.takes + m.devices[id].dispatch; own.least[id] < 0 || all < own.least[id] {
					own.least[id] = all
				}
			}
		}
	}
}

// callOf returns the least time of a call, and its least joules above a waiting unit's.
func (m *model) callOf(d *platform.Device, clock platform.ClockID, rest float64, cost *schedule.Cost) (takes int64, joules float64) {
	takes = max(int64(cost.Least()), int64(cost.First))
	above := min(d.WattsAboveIdle(clock, 1), d.WattsAboveIdle(clock, d.Count))
	idle := d.ClockAt(clock).Idle - rest
	if cost.Joules != 0 {
		return takes, m.perNs(float64(cost.Joules*1e9)) + float64(m.perNs(idle)*float64(takes))
	}
	return takes, float64(m.perNs(idle+above) * float64(takes))
}

// addPieces adds the contents that tasks read.
func (m *model) addPieces() {
	n := platform.MemoryID(len(m.platform.Memories))
	for i := range m.problem.Pieces {
		of := &m.problem.Pieces[i]
		p := piece{writer: of.Writer, home: of.Home}
		if int(of.Writer) == len(m.tasks) {
			p.writer = -1
		}
		for _, r := range of.Readers {
			p.readers |= 1 << r.Of
			m.tasks[r.Of].reads = append(m.tasks[r.Of].reads, int32(i))
		}
		for from := range n {
			ways, hops := make([]int64, n), make([]float64, n)
			for to := range n {
				way := &m.problem.Ways[from][to]
				ways[to] = min(noWay, routeTime(m.platform, from, to, of.Bytes)) // no more than in parts over two hops
				if way.PassesHost {
					m.staged = true
				} else if ways[to] < noWay {
					hops[to] = float64(m.perNs(way.JoulesPerByte*1e9) * float64(of.Bytes))
				}
			}
			p.ways, p.hops = append(p.ways, ways), append(p.hops, hops)
		}
		m.pieces = append(m.pieces, p)
	}
}

// routeTime is how long a copy takes that has all links for itself. A nanosecond is the least. What is
// above a whole one by rounding alone does not count, as in the simulator.
func routeTime(p *platform.Platform, from, to platform.MemoryID, bytes int64) int64 {
	if from == to {
		return 0
	}
	if _, ok := p.Route(from, to); !ok {
		return noWay
	}
	ns := 1.0
	for _, use := range p.LinkUses(from, to) {
		l := &p.Links[use.Link]
		times := float64(use.Times)
		if l.Sharing == platform.Fatpipe {
			times = 1
		}
		ns = max(ns, float64(bytes)/(l.BandwidthBytesPerSec/times)*1e9)
	}
	return min(noWay, int64(p.RouteTime(from, to, 0))+int64(math.Ceil(min(noWay, float64(ns*(1-1e-9))))))
}

// sort puts the tasks after those that they wait for.
func (m *model) sort() {
	for done := uint64(0); len(m.sorted) < len(m.tasks); {
		for t := range m.tasks {
			if done&(1<<t) == 0 && m.tasks[t].before&^done == 0 {
				done |= 1 << t
				m.sorted = append(m.sorted, int32(t))
			}
		}
	}
}
