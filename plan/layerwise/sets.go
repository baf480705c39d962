package layerwise

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// set is a set of devices with the costs of tiles there.
type set struct {
	*platform.Platform
	tables []*table // by device
	idle   float64  // watts of everything without work
	watts  []watts  // by device
	costs  map[*tiled]*costs
	units  int

	processors int // units of devices that any task may run on,
	last       int // the last of these devices, or -1 where they have one unit together,
	others     int // and the other devices

	memories int   // of its devices and of the host
	memory   []int // by device: its number among them; the host's is 0
	ways     []way // by pair of these

	clocks []*set // the same devices at other clocks
}

// costs are the mean costs of an operation's tiles, by device.
type costs struct {
	ns     []float64 // with dispatch; below zero a tile cannot run there
	joules []float64 // of all tiles
	merge  []float64 // ns of a sum of accumulators
}

// watts are the watts of busy units of a device above idle: n of them draw n times each, and first once.
type watts struct{ first, each float64 }

// way is the way between two memories.
type way struct {
	latency, nsPerByte, joulesPerByte float64
	engine                            bool // a transfer occupies an engine at one end all the time
}

// tableKey tells the devices of all sets apart whose tiles may differ in cost: by number of units, of units that share the memory, and clock.
type tableKey struct {
	device         string // the first of those that differ in their names only
	units, sharing int
	placed         bool
	clock          platform.ClockID
}

// table is the prices of tiles on a device, by class of cost.
type table struct{ prices []price }

// price is the cost of a tile on a device.
type price struct {
	ns     float64 // with its dispatch; below zero it cannot run there
	joules float64 // above idle, without what the first busy unit draws more
	known  bool
}

// setOf is a set of devices by its list.
func (m *Model) setOf(devices string) (*set, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if s := m.sets[devices]; s != nil {
		return s, nil
	}
	p, err := m.network.Machine(devices)
	if err != nil {
		return nil, fmt.Errorf("layer-wise model: %w", err)
	}
	s, err := m.newSet(p)
	if err != nil {
		return nil, err
	}
	clocks := 0
	for d := range p.Devices {
		clocks = max(clocks, int(p.Devices[d].NumClocks()))
	}
	for c := range platform.ClockID(clocks) {
		if q := p.AtClocks(c); q != p {
			at, err := m.newSet(q)
			if err != nil {
				return nil, err
			}
			s.clocks = append(s.clocks, at)
		}
	}
	if at := slices.IndexFunc(m.unlike, s.equal); at >= 0 {
		s = m.unlike[at]
	} else {
		m.unlike = append(m.unlike, s)
	}
	m.sets[devices] = s
	return s, nil
}

// newSet is all devices of a machine at the clocks in force.
func (m *Model) newSet(p *platform.Platform) (*set, error) {
	s := &set{Platform: p, last: -1, idle: p.HostWatts().Value, costs: map[*tiled]*costs{}}
	for d := range p.Devices {
		device := &p.Devices[d]
		s.idle += device.Watts(device.AtClock, 0)
		first, each := device.BusyWatts(device.AtClock)
		s.watts = append(s.watts, watts{first, each})
		if !device.PlacedOnly {
			s.units += device.Count
			if device.IsProcessor() {
				if s.processors += device.Count; s.processors > 1 {
					s.last = d
				}
			} else {
				s.others++
			}
		}
	}
	for i := range p.Links {
		s.idle += p.Links[i].IdleWatts
	}
	s.findWays()
	return s, s.findTables(m)
}

// equal reports whether any step takes as long on another set, and as many joules.
func (s *set) equal(o *set) bool {
	return s.idle == o.idle && s.memories == o.memories && slices.Equal(s.tables, o.tables) && slices.Equal(s.watts, o.watts) &&
		slices.Equal(s.memory, o.memory) && slices.Equal(s.ways, o.ways) && slices.EqualFunc(s.clocks, o.clocks, (*set).equal)
}

// findWays numbers the memories and finds the ways between them.
func (s *set) findWays() {
	used, limited := []platform.MemoryID{s.HostMemory()}, make([]bool, len(s.Memories))
	for d := range s.Devices {
		device := &s.Devices[d]
		limited[device.Memory] = limited[device.Memory] || device.CopyEnginesIn > 0 || device.CopyEnginesOut > 0
		if !slices.Contains(used, device.Memory) {
			used = append(used, device.Memory)
		}
		s.memory = append(s.memory, slices.Index(used, device.Memory))
	}
	if s.memories = len(used); len(s.Devices) == 1 {
		s.memories = 1 // nothing moves in a steady step
	}
	for _, from := range used {
		for _, to := range used {
			latency := float64(s.RouteTime(from, to, 0))
			s.ways = append(s.ways, way{latency, (float64(s.RouteTime(from, to, 1<<30)) - latency) / (1 << 30), s.RouteJoulesPerByte(from, to), limited[from] || limited[to]})
		}
	}
}

// costsOf are the costs of an operation under a cut.
func (m *Model) costsOf(s *set, n *node, t *tiled) (*costs, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if c := s.costs[t]; c != nil {
		return c, nil
	}
	if err := m.priced(s, n, t); err != nil {
		return nil, err
	}
	devices := len(s.Devices)
	c := &costs{ns: make([]float64, devices), joules: make([]float64, devices), merge: make([]float64, devices)}
	for _, k := range t.kinds {
		for d, of := range s.tables {
			p, count := of.prices[k.class], float64(k.count)
			switch c.joules[d] += count * p.joules; {
			case p.ns < 0:
				c.ns[d] = math.Inf(-1)
			case k.merge:
				c.merge[d] += count * p.ns / float64(t.regions())
			default:
				c.ns[d] += count * p.ns / float64(t.tiles)
			}
		}
	}
	if len(s.costs) >= mostCosts {
		clear(s.costs)
	}
	s.costs[t] = c
	return c, nil
}

// findTables finds the tables of the devices, which other sets may have too.
func (s *set) findTables(m *Model) error {
	if m.like == nil {
		whole, err := m.network.Machine("")
		if err != nil {
			return fmt.Errorf("layer-wise model: %w", err)
		}
		m.like = likeDevices(whole)
	}
	for d := range s.Devices {
		device := &s.Devices[d]
		key := tableKey{device: m.like[device.Name], units: device.Count, placed: device.PlacedOnly, clock: device.AtClock}
		for e := range s.Devices {
			if s.Devices[e].Memory == device.Memory {
				key.sharing += s.Devices[e].Count
			}
		}
		if m.tables[key] == nil {
			m.tables[key] = &table{}
		}
		s.tables = append(s.tables, m.tables[key])
	}
	return nil
}

// likeDevices finds for each device of a machine the first one that differs in its name and its place only.
func likeDevices(p *platform.Platform) map[string]string {
	type nameless struct {
		platform.Device
		memory platform.Memory
		models []platform.Model
	}
	var all []nameless
	like := map[string]string{}
	for d := range p.Devices {
		of := nameless{Device: p.Devices[d], memory: p.Memories[p.Devices[d].Memory]}
		of.Name, of.Memory, of.Ordinal, of.memory.Name = "", 0, 0, ""
		for _, model := range p.Models {
			if model.Device == p.Devices[d].Name {
				model.Device = ""
				of.models = append(of.models, model)
			}
		}
		first := slices.IndexFunc(all, func(known nameless) bool { return reflect.DeepEqual(known, of) })
		if all = append(all, of); first < 0 {
			first = d
		}
		like[p.Devices[d].Name] = p.Devices[first].Name
	}
	return like
}

// priced makes sure that the prices of an operation's tiles are known.
func (m *Model) priced(s *set, n *node, t *tiled) error {
	var tasks []dag.Task
	var classes []int32
	for _, of := range s.tables {
		if missing := len(m.tasks) - len(of.prices); missing > 0 {
			of.prices = append(of.prices, make([]price, missing)...)
		}
		for _, k := range t.kinds {
			if !of.prices[k.class].known && !slices.Contains(classes, k.class) {
				tasks, classes = append(tasks, m.tasks[k.class]), append(classes, k.class)
			}
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	all, err := m.network.Price(n.Graph, tasks, s.Platform)
	if err != nil {
		return fmt.Errorf("layer-wise model: %w", err)
	}
	for i, costs := range all {
		for d := range costs {
			p := price{ns: -1, known: true}
			if ns := float64(costs[d].Duration); ns >= 0 {
				p.ns, p.joules = ns+float64(s.Devices[d].Dispatch), s.watts[d].each*ns*1e-9
				if costs[d].Joules > 0 {
					p.joules = costs[d].Joules
				}
			}
			s.tables[d].prices[classes[i]] = p
		}
	}
	return nil
}
