package exact

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// model is a problem as the search sees it. Times are nanoseconds.
type model struct {
	graph     *dag.Graph
	platform  *platform.Platform
	objective Objective
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
	least    []int64           // by device: dispatch and call; -1: it cannot run there
	worker   platform.WorkerID // where it has to run; -1: anywhere
	group    int               // -1: none
}

// setting is a device and a clock of it, for a task.
type setting struct {
	device platform.DeviceID
	clock  platform.ClockID
	takes  int64   // the call, by the variant that takes least
	joules float64 // of the call by the variant that draws least, beside what a unit draws that waits
}

// piece is what a task wrote of one storage for the same readers, or what was there before the run.
// It goes to another memory once.
type piece struct {
	writer  int32               // -1: it was there
	home    platform.MemoryID   // where it was then
	readers uint64              // tasks
	ways    [][]int64           // by memories: how long it takes; -1: no way
	hops    [][]float64         // by memories that are next to each other: joules
	through []platform.MemoryID // by memories: the one on the way, -1 if none
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
	m.addDevices(o)
	m.addTasks()
	if err := m.addSettings(priced, o); err != nil {
		return nil, err
	}
	if err := m.addPieces(); err != nil {
		return nil, err
	}
	m.addTwins()
	m.sort()
	m.addTails()
	m.addAreas()
	return m, nil
}

// perNs turns watts into what the objective counts of a nanosecond.
func (m *model) perNs(watts float64) float64 {
	if m.objective == Time {
		return 0
	}
	return float64(watts * 1e-9)
}

// least is the least that a unit draws that does nothing.
func least(watts float64, sleeps []platform.SleepState) float64 {
	for i := range sleeps {
		watts = min(watts, sleeps[i].Watts)
	}
	return watts
}

// maySleep reports whether a plan that lists sleep states may draw less than all that are searched.
func (m *model) maySleep() bool {
	return m.objective != Time && slices.ContainsFunc(m.platform.Devices, func(d platform.Device) bool { return len(d.Sleeps) > 0 })
}

func (m *model) addDevices(o Options) {
	p := m.platform
	m.restJ = m.perNs(p.HostPower.Value)
	if m.objective == Time {
		m.restJ = 1
	}
	for l := range p.Links {
		m.restJ += m.perNs(least(p.Links[l].IdleWatts, p.Links[l].Sleeps))
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		own := device{memory: d.Memory, dispatch: int64(d.Dispatch)}
		if d.UnitClocks || d.Count == 1 {
			own.switches, own.switchTime, own.switchJ = d.Switch != platform.Transition{}, int64(d.Switch.Takes), m.perNs(d.Switch.Joules*1e9)
		}
		own.restJ = float64(float64(d.Count) * m.perNs(m.restWatts(o, platform.DeviceID(i))))
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

// clocks are those of a device that tasks may run at.
func (m *model) clocks(o Options, id platform.DeviceID) (all []platform.ClockID) {
	if int(id) < len(o.Clocks) && o.Clocks[id] != nil {
		return o.Clocks[id]
	}
	for c := range m.platform.Devices[id].NumClocks() {
		all = append(all, c)
	}
	return all
}

// restWatts is the least that a unit draws that runs nothing. It begins at the clock in force.
func (m *model) restWatts(o Options, id platform.DeviceID) float64 {
	d := &m.platform.Devices[id]
	watts := d.ClockInForce().Idle
	for _, c := range m.clocks(o, id) {
		watts = min(watts, d.ClockAt(c).Idle)
	}
	return least(watts, d.Sleeps)
}

func (m *model) addTasks() {
	g, groups := m.graph, map[string]int{}
	m.tasks = make([]task, len(g.Tasks))
	for t := range m.tasks {
		own := &m.tasks[t]
		own.worker, own.group = -1, -1
		for _, before := range g.Preds(dag.TaskID(t)) {
			own.before |= 1 << before
			m.tasks[before].after |= 1 << t
		}
		pl := g.Tasks[t].Placement
		if pl == nil {
			continue
		}
		if w, ok := m.platform.WorkerByName(pl.Device); ok {
			if _, isDevice := m.platform.DeviceByName(pl.Device); !isDevice {
				own.worker, m.unlike = w, true
			}
		}
		if pl.Colocate != "" {
			if _, known := groups[pl.Colocate]; !known {
				groups[pl.Colocate] = len(groups)
			}
			own.group, m.unlike = groups[pl.Colocate], true
		}
	}
	m.groups = len(groups)
}

// addSettings finds what the calls take and draw.
func (m *model) addSettings(priced *schedule.Priced, o Options) error {
	for t := range m.tasks {
		m.tasks[t].least = slices.Repeat([]int64{-1}, len(m.devices))
	}
	for id := range m.devices {
		d := &m.platform.Devices[id]
		rest := m.restWatts(o, platform.DeviceID(id))
		for _, clock := range m.clocks(o, platform.DeviceID(id)) {
			costs, err := priced.AtClock(0, clock, nil)
			if err != nil {
				return err
			}
			byVariant := priced.ByVariant(0, clock)
			for t := range m.tasks {
				cost, ok := costs.Of(dag.TaskID(t), platform.DeviceID(id))
				if !ok || m.tasks[t].worker >= 0 && m.platform.Workers[m.tasks[t].worker].Device != platform.DeviceID(id) {
					continue
				}
				s := setting{device: platform.DeviceID(id), clock: clock}
				s.takes, s.joules = m.callOf(d, clock, rest, &cost)
				for _, other := range byVariant[costs.Class[t]][id] {
					takes, joules := m.callOf(d, clock, rest, &other)
					m.varied = m.varied || takes < s.takes || joules < s.joules
					s.takes, s.joules = min(s.takes, takes), min(s.joules, joules)
				}
				m.tasks[t].settings = append(m.tasks[t].settings, s)
				if all := s.takes + m.devices[id].dispatch; m.tasks[t].least[id] < 0 || all < m.tasks[t].least[id] {
					m.tasks[t].least[id] = all
				}
			}
		}
	}
	for t := range m.tasks {
		if len(m.tasks[t].settings) == 0 {
			return fmt.Errorf("task %q: no worker of platform %q can run it", m.graph.Tasks[t].Name, m.platform.Name)
		}
	}
	return nil
}

// callOf is the least that a call takes, and the least that it draws beside what its unit would draw waiting.
func (m *model) callOf(d *platform.Device, clock platform.ClockID, rest float64, cost *schedule.Cost) (takes int64, joules float64) {
	takes = max(int64(cost.Least()), int64(cost.First))
	above := d.WattsAboveIdle(clock, 1)
	for n := 2; n <= d.Count; n++ {
		above = min(above, d.WattsAboveIdle(clock, n))
	}
	idle := d.ClockAt(clock).Idle - rest
	if cost.Joules != 0 {
		return takes, m.perNs(float64(cost.Joules*1e9)) + float64(m.perNs(idle)*float64(takes))
	}
	return takes, float64(m.perNs(idle+above) * float64(takes))
}

// addPieces finds what tasks read of what others wrote, or of what was there.
func (m *model) addPieces() error {
	type version struct {
		writer  int32
		storage dag.BufferID
	}
	g := m.graph
	writer := slices.Repeat([]int32{-1}, g.NumAtoms())
	readers := map[[2]int32]uint64{} // by writer and atom
	var order [][2]int32
	for t := range m.tasks {
		for _, writes := range [2]bool{false, true} {
			for i, a := range g.Tasks[t].Accesses {
				if writes && !a.Mode.Writes() || !writes && !a.Mode.Reads() {
					continue
				}
				for _, atom := range g.Atoms(dag.TaskID(t), i) {
					if writes {
						writer[atom] = int32(t)
						continue
					}
					key := [2]int32{writer[atom], atom}
					if readers[key] == 0 {
						order = append(order, key)
					}
					readers[key] |= 1 << t
				}
			}
		}
	}
	type group struct {
		version
		readers uint64
	}
	bytes, groups := map[group]int64{}, []group(nil)
	for _, key := range order {
		storage := g.AtomStorage(dag.AtomID(key[1]))
		if key[0] < 0 && !g.WrittenStorages()[storage] && g.Buffers[storage].Home == "" {
			continue // an input, which is wherever it is needed
		}
		of := group{version{key[0], storage}, readers[key]}
		if _, known := bytes[of]; !known {
			groups = append(groups, of)
		}
		bytes[of] += g.AtomBytes(dag.AtomID(key[1]))
	}
	for _, of := range groups {
		home, err := place.Home(m.platform, &g.Buffers[of.storage])
		if err != nil {
			return err
		}
		m.addPiece(piece{writer: of.writer, home: home, readers: of.readers}, bytes[of])
	}
	return nil
}

// addPiece adds a piece of some bytes, and how it moves.
func (m *model) addPiece(p piece, bytes int64) {
	pl := m.platform
	n, host := len(pl.Memories), pl.HostMemory()
	for from := range platform.MemoryID(n) {
		ways, hops := make([]int64, n), make([]float64, n)
		for to := range platform.MemoryID(n) {
			through := platform.MemoryID(-1)
			ways[to] = routeTime(pl, from, to, bytes) // no more than in parts over two hops
			if pl.Passes(from, to, host) {
				through, m.staged = host, true
			} else if ways[to] < noWay {
				hops[to] = m.routeJoules(from, to, bytes)
			}
			ways[to] = min(ways[to], noWay)
			p.through = append(p.through, through)
		}
		p.ways, p.hops = append(p.ways, ways), append(p.hops, hops)
	}
	for readers := p.readers; readers != 0; readers &= readers - 1 {
		own := &m.tasks[bits.TrailingZeros64(readers)]
		own.reads = append(own.reads, int32(len(m.pieces)))
	}
	m.pieces = append(m.pieces, p)
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

// routeJoules is what a copy draws beside the idle watts of links.
func (m *model) routeJoules(from, to platform.MemoryID, bytes int64) (joules float64) {
	for _, use := range m.platform.LinkUses(from, to) {
		l := &m.platform.Links[use.Link]
		capacity := l.BandwidthBytesPerSec
		if l.Sharing == platform.Duplex {
			capacity *= 2
		}
		joules += float64(m.perNs((l.BusyWatts-l.IdleWatts)/capacity*1e9) * float64(bytes) * float64(use.Times))
	}
	return joules
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
