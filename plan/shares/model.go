package shares

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
	Steady     bool    // the first of the chain follows the last of the step before
	FloorWatts float64 // drawn all the time, whatever runs
	Units      []int   // by device
	Memory     []int   // by device
	Options    [][]Option
	Also       [][][]Option // by group: options of more work, outside the chain
	Chain      []Link
	Latency    []float64 // by memory: nanoseconds that anything takes to get there at least
}

// Option is a way to run tiles of some work.
type Option struct {
	Device      int
	Least, Most float64 // shares of a tile
	Fixed       float64 // nanoseconds of each tile
	Nanos       float64 // of all of the work, in addition
	Nanojoules  float64 // of all of the work, above FloorWatts
	Also        int     // the group of Model.Also that a lowering with the option has, counted from 1; zero means none
}

// NewModel makes the model of a step on some sets of the devices of a machine. It fails where a device draws less
// busy than idle, or some work can run nowhere.
func NewModel(step *Step, p *platform.Platform, sets Sets, o problem.Objective, steady bool) (*Model, error) {
	m := &Model{Objective: o, Steady: steady, FloorWatts: p.HostPower.Value, Units: sets.Most, Chain: step.Chain}
	for i := range p.Devices {
		m.Memory = append(m.Memory, int(p.Devices[i].Memory))
		m.FloorWatts += floorWatts(&p.Devices[i], sets.Most[i])
	}
	for i := range p.Links {
		m.FloorWatts += platform.LeastWatts(p.Links[i].IdleWatts, p.Links[i].Sleeps)
	}
	for to := range platform.MemoryID(len(p.Memories)) {
		m.Latency = append(m.Latency, latency(p, to))
	}
	for i := range step.Work {
		options, err := m.options(&step.Work[i], p, sets)
		if err != nil {
			return nil, err
		}
		m.Options = append(m.Options, options)
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

// latency is the least time from any other memory.
func latency(p *platform.Platform, to platform.MemoryID) float64 {
	least := math.Inf(1)
	for from := range platform.MemoryID(len(p.Memories)) {
		if _, ok := p.Route(from, to); ok && from != to {
			least = min(least, float64(p.RouteTime(from, to, 0)))
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// below is a little less than a number that was rounded a few times.
func below(x float64) float64 { return x - math.Abs(x)*1e-12 }

// options prices work on all devices at all clocks, in all its forms.
func (m *Model) options(w *Work, p *platform.Platform, sets Sets) (all []Option, err error) {
	groups := make([]int, len(w.Forms))
	for k := range w.Forms {
		var group [][]Option
		for i := range w.Forms[k].Also {
			options, err := m.options(&w.Forms[k].Also[i], p, sets)
			if err != nil {
				return nil, err
			}
			group = append(group, options)
		}
		if group != nil {
			m.Also = append(m.Also, group)
			groups[k] = len(m.Also)
		}
	}
	for id := range p.Devices {
		d := &p.Devices[id]
		if sets.Most[id] == 0 {
			continue
		}
		sharing := 0
		for other := range p.Devices {
			if p.Devices[other].Memory == d.Memory {
				sharing += sets.Least[other]
			}
		}
		sharing += max(0, 1-sets.Least[id])
		for _, clock := range d.FreeClocks() {
			busy, extra := leastBusy(d, clock, sets.Most[id])
			if busy < 0 {
				return nil, fmt.Errorf("device %q draws less busy than idle, and bounds do not know that", d.Name)
			}
			for k := range w.Forms {
				f := &w.Forms[k]
				for i, l := range f.levels {
					least := f.smallest()
					if i+1 < len(f.levels) {
						least = f.levels[i+1].most
					}
					for _, floor := range p.Floors(f.Op, f.Type, platform.DeviceID(id), clock, max(1, sets.Least[id]), sets.Most[id], sharing, f.Flops, l.bytes) {
						o := Option{Device: id, Also: groups[k], Least: least, Most: l.most, Fixed: float64(d.Dispatch) + floor.Fixed, Nanos: floor.Nanos}
						if floor.Joules > 0 {
							o.Nanojoules = below(floor.Joules*1e9 + float64(extra*floor.Nanos))
						} else {
							o.Nanojoules = below((extra + busy) * floor.Nanos)
						}
						if m.Objective == problem.Time {
							o.Nanojoules = 0
						}
						all = append(all, o)
					}
				}
			}
		}
	}
	if all = efficient(all); len(all) == 0 {
		return nil, fmt.Errorf("%s can run on no device", w.Name)
	}
	return all, nil
}

// leastBusy is the least power of a busy unit above its idle power, whatever the number of busy units, and by how
// much it draws more idle at the clock than it does at rest.
func leastBusy(d *platform.Device, clock platform.ClockID, most int) (busy, extra float64) {
	return below(min(d.WattsAboveIdle(clock, 1), d.WattsAboveIdle(clock, most))), d.ClockAt(clock).Idle - problem.RestWatts(d, d.FreeClocks())
}

// efficient leaves out options that take no less of anything than another one of the device with the same shares of tiles. Options
// that differ only in their shares become one.
func efficient(all []Option) (kept []Option) {
	no := func(a, b *Option) bool {
		return b.Device == a.Device && (b.Also == 0 || b.Also == a.Also) && b.Least <= a.Least && b.Most >= a.Most && b.Fixed <= a.Fixed && b.Nanos <= a.Nanos && b.Nanojoules <= a.Nanojoules
	}
	slices.SortStableFunc(all, func(a, b Option) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Nanos, b.Nanos), cmp.Compare(a.Fixed, b.Fixed), cmp.Compare(a.Nanojoules, b.Nanojoules), cmp.Compare(a.Also, b.Also),
			cmp.Compare(b.Most, a.Most), cmp.Compare(a.Least, b.Least))
	})
	merged := all[:0]
	for _, o := range all {
		if n := len(merged); n > 0 {
			last := &merged[n-1]
			same := o
			same.Least, same.Most = last.Least, last.Most
			if same == *last && o.Most >= last.Least {
				last.Least = min(last.Least, o.Least)
				continue
			}
		}
		merged = append(merged, o)
	}
	for i := range merged { // an option is no better than one after it with equal nanoseconds
		if !slices.ContainsFunc(kept, func(b Option) bool { return no(&merged[i], &b) }) {
			kept = append(kept, merged[i])
		}
	}
	return kept
}
