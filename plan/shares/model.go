package shares

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
)

// Sets are sets of devices: by device of a machine, from how many units to how many.
type Sets struct {
	Least []int `json:"least"`
	Most  []int `json:"most"`
}

// All are all sets of a machine.
func All(p *platform.Platform) Sets {
	s := Sets{make([]int, len(p.Devices)), make([]int, len(p.Devices))}
	for i := range p.Devices {
		if !p.Devices[i].PlacedOnly {
			s.Most[i] = p.Devices[i].Count
		}
	}
	return s
}

// Model is a step on some sets of devices, as far as bounds know it: the simulator charges no less of anything in it.
type Model struct {
	Objective  problem.Objective
	Steady     bool      // the first of a chain follows the last of the step before
	FloorWatts float64   // drawn all the time, whatever runs
	Units      []int     // by device
	Memory     []int     // by device
	Views      [][][]Way // by work: one or two views of the ways to run it; the least of each holds
	Sometimes  []bool    // by work: only ways with it in Also have it
	Chains     [][]dag.Link
	// Latency is, by place, the nanoseconds that anything takes to get there at least. Places are memories, and the memories of
	// processors together, which anything from another one of them reaches sooner. That place has the rest of the latency.
	Latency []float64
	Places  [][]int // by memory: it, and the place of several with it
}

// Way is a form of some work that a lowering may have.
type Way struct {
	Levels []Level
	Sums   []Sum
	Also   []int    // works that a lowering with this form has
	Adds   []Option // of all results, for each accumulator but one
}

// Level is options to run tiles that have a share from Least to Most. If there are sums, it is the share of all results that all tiles of a
// result have together.
type Level struct {
	Least, Most float64
	Options     []Option
}

// Option is how long tiles take on a device, by one of its variants at one of its clocks.
type Option struct {
	Device     int
	Fixed      float64 // nanoseconds of each tile
	Nanos      float64 // of all of the work, in addition
	Nanojoules float64 // of all of the work, above FloorWatts
	// A tile with another term of all results takes Again more than its share of Nanos, where what it moves decides.
	Again, AgainNanojoules float64
}

// NewModel makes the model of a step on some sets of the devices of a machine. It fails where a device draws less
// busy than idle, or some work can run nowhere.
func NewModel(step *Step, p *platform.Platform, sets Sets, o problem.Objective, steady bool) (*Model, error) {
	m := &Model{Objective: o, Steady: steady, FloorWatts: p.HostWatts().Value, Units: sets.Most, Chains: step.Chains}
	for i := range p.Devices {
		m.Memory = append(m.Memory, int(p.Devices[i].Memory))
		m.FloorWatts += floorWatts(&p.Devices[i], sets.Most[i])
	}
	for i := range p.Links {
		m.FloorWatts += platform.LeastWatts(p.Links[i].IdleWatts, p.Links[i].Sleeps)
	}
	m.addPlaces(p)
	for i := range step.Work {
		views, err := m.views(step.forms[i], p, sets)
		if err == nil && len(views) == 0 {
			err = fmt.Errorf("%s can run on no device", step.Work[i].Name)
		}
		if err != nil {
			return nil, err
		}
		m.Views, m.Sometimes = append(m.Views, views), append(m.Sometimes, step.Work[i].Sometimes)
	}
	return m, nil
}

// floorWatts is the least power of a device of which some units are in a set and none is busy. Without a processor in a
// set one of its units stays for tasks of the program.
func floorWatts(d *platform.Device, most int) float64 {
	if d.IsProcessor() {
		most = max(1, most)
	}
	unused := d.ClockInForce().Idle
	for _, s := range slices.Backward(d.Sleeps) {
		if s.After > 0 {
			unused = s.Watts
			break
		}
	}
	watts := float64(float64(most)*problem.RestWatts(d, d.FreeClocks())) + float64(float64(d.Count-most)*unused)
	if d.MayBeOff {
		watts = min(watts, d.OffWatts)
	}
	return below(watts)
}

// addPlaces finds latencies.
func (m *Model) addPlaces(p *platform.Platform) {
	several := make([]bool, len(p.Memories))
	for i := range p.Devices {
		several[p.Devices[i].Memory] = several[p.Devices[i].Memory] || p.Devices[i].IsProcessor()
	}
	least, most := math.Inf(1), 0.0
	for to := range p.Memories {
		m.Places = append(m.Places, []int{to})
		alone := make([]bool, len(p.Memories))
		alone[to] = true
		nanos := latency(p, to, alone)
		if math.IsInf(nanos, 1) {
			nanos = 0
		}
		if m.Latency = append(m.Latency, nanos); several[to] {
			least, most = min(least, latency(p, to, several)), max(most, nanos)
		}
	}
	if math.IsInf(least, 1) || least <= most {
		return
	}
	for at := range several {
		if several[at] {
			m.Places[at] = append(m.Places[at], len(m.Latency))
		}
	}
	m.Latency = append(m.Latency, least-most)
}

// latency is the least time into a memory from any one that is none of some.
func latency(p *platform.Platform, to int, but []bool) float64 {
	least := math.Inf(1)
	for from := range p.Memories {
		if _, ok := p.Route(platform.MemoryID(from), platform.MemoryID(to)); ok && !but[from] {
			least = min(least, float64(p.RouteTime(platform.MemoryID(from), platform.MemoryID(to), 0)))
		}
	}
	return least
}

// below is a little less than a number that was rounded a few times.
func below(x float64) float64 { return x - math.Abs(x)*1e-12 }

// views prices work in all its forms: by single tiles, and by all tiles of a result if a form has sums.
func (m *Model) views(forms []form, p *platform.Platform, sets Sets) (views [][]Way, err error) {
	single, results, sums := []Way{}, []Way{}, false
	for k := range forms {
		f := &forms[k]
		levels, err := m.levels(f, p, sets, f.levels, f.smallest(), math.Inf(1))
		if err != nil {
			return nil, err
		}
		if len(levels) == 0 {
			continue
		}
		way := Way{Levels: levels, Sums: []Sum{{1, 1, 0, 1, 1}}, Also: f.Also}
		single = append(single, way)
		if f.Summed != 0 {
			sums = true
			if way.Levels, err = m.levels(f, p, sets, f.results, f.ofResult().smallest(), narrow); err != nil {
				return nil, err
			}
			way.Sums = append(way.Sums, f.sums()...)
			add, err := m.levels(&form{Form: &dag.Form{Op: "add", Type: f.Type}}, p, sets, []level{{1, 3 * f.Result}}, 1, math.Inf(1))
			if err != nil {
				return nil, err
			}
			for _, l := range add {
				way.Adds = l.Options
			}
		}
		results = append(results, way)
	}
	switch {
	case len(single) == 0:
		return nil, nil
	case sums:
		return [][]Way{single, results}, nil
	}
	return [][]Way{single}, nil
}

// narrow is the ratio of the shares of a level of which bounds hold for all options together.
const narrow = 2

// levels prices levels of a form on all devices at all clocks, the last one for tiles down to the smallest. With several options the shares of a level have the ratio narrow at most.
func (m *Model) levels(f *form, p *platform.Platform, sets Sets, levels []level, smallest, narrow float64) (all []Level, err error) {
	for i, l := range levels {
		level := Level{Least: smallest, Most: l.most}
		if i+1 < len(levels) {
			level.Least = levels[i+1].most
		}
		for id := range p.Devices {
			options, err := m.options(f, p, sets, platform.DeviceID(id), l.bytes)
			if err != nil {
				return nil, err
			}
			level.Options = append(level.Options, efficient(options)...)
		}
		switch n := len(all); {
		case len(level.Options) == 0:
		case n > 0 && len(level.Options) == 1 && slices.Equal(all[n-1].Options, level.Options):
			all[n-1].Least = level.Least
		default: // between which of several options is best changes
			for ; len(level.Options) > 1 && level.Least*narrow < level.Most; level.Most /= narrow {
				part := level
				part.Least = level.Most / narrow
				all = append(all, part)
			}
			all = append(all, level)
		}
	}
	return all, nil
}

// options prices a form on a device at all clocks, if tiles move bytes per share.
func (m *Model) options(f *form, p *platform.Platform, sets Sets, id platform.DeviceID, bytes float64) (all []Option, err error) {
	d := &p.Devices[id]
	if sets.Most[id] == 0 {
		return nil, nil
	}
	sharing := max(0, 1-sets.Least[id])
	for other := range p.Devices {
		if p.Devices[other].Memory == d.Memory {
			sharing += sets.Least[other]
		}
	}
	for _, clock := range d.FreeClocks() {
		busy, extra := leastBusy(d, clock, sets.Most[id])
		if busy < 0 {
			return nil, fmt.Errorf("device %q draws less busy than idle, and bounds do not know that", d.Name)
		}
		joules := func(floor *platform.Floor) float64 {
			switch {
			case m.Objective == problem.Time:
				return 0
			case floor.Joules > 0:
				return below(floor.Joules*1e9 + float64(extra*floor.Nanos))
			}
			return below((extra + busy) * floor.Nanos)
		}
		floors := func(flops, bytes float64) []platform.Floor {
			return p.Floors(f.Op, f.Type.String(), id, clock, max(1, sets.Least[id]), sets.Most[id], sharing, flops, bytes)
		}
		moved, again := floors(0, bytes), floors(0, f.Result)
		for i, floor := range floors(f.Flops, bytes) {
			o := Option{Device: int(id), Fixed: float64(d.Dispatch) + floor.Fixed, Nanos: floor.Nanos, Nanojoules: joules(&floor)}
			if f.Summed != 0 && moved[i].Nanos >= floor.Nanos && joules(&moved[i]) >= o.Nanojoules {
				o.Again, o.AgainNanojoules = again[i].Nanos, joules(&again[i])
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// leastBusy is the least power of a busy unit above its idle power, whatever the number of busy units, and by how
// much it draws more idle at the clock than it does at rest.
func leastBusy(d *platform.Device, clock platform.ClockID, most int) (busy, extra float64) {
	return below(min(d.WattsAboveIdle(clock, 1), d.WattsAboveIdle(clock, most))), d.ClockAt(clock).Idle - problem.RestWatts(d, d.FreeClocks())
}

// efficient leaves out options of a device that take no less of anything than another one.
func efficient(all []Option) (kept []Option) {
	numbers := func(o *Option) [5]float64 {
		return [...]float64{o.Fixed, o.Nanos, o.Nanojoules, o.Again, o.AgainNanojoules}
	}
	for i := range all {
		of := numbers(&all[i])
		worse := slices.ContainsFunc(all, func(b Option) bool {
			other := numbers(&b)
			for k := range of {
				if other[k] > of[k] {
					return false
				}
			}
			return other != of
		})
		if !worse && !slices.Contains(kept, all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}
