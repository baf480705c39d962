package train

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"dahl/dag"
	"dahl/plan/layerwise"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/strategy"
	"dahl/platform"
)

const (
	// mostEach is how many stages a device has at most in pipelines that a search begins with, and mostBatches how many micro-batches there are for each: with four
	// the bubble is a fifth of the work at most, and each of more micro-batches has its launches and transfers.
	mostEach, mostBatches = 4, 4
	// mostSizes is up to which all numbers of devices count. Above it they are powers of two, or all.
	mostSizes = 8
)

// mostNamed is how many strategies by name a search plans for at most on a machine of four accelerators, and as many more for each doubling of these.
const mostNamed = 25

// onePart is the number of micro-batches of an inference, whose steps follow each other through the stages.
var onePart = []int{1}

// named lists strategies as --policy takes them, on a set of devices, in groups: over all devices that are no processors first, and then over powers of two of them,
// each with two micro-batches for a device, one and four. Processors load samples and take metrics. A set of processors alone has their cores as the devices. A set
// that the machine does not have has none.
func (c *choices) named(set string) (groups [][]space.Choice) {
	p, err := c.platformOf(set)
	if err != nil {
		return nil
	}
	number, devices := 0, Accelerators(p)
	most := mostNamed * max(1, bits.Len(uint(devices))-2)
	if devices == 0 {
		for _, d := range p.Usable() {
			devices += d.Count
		}
	}
	for n := devices; n >= 2; n = 1 << (bits.Len(uint(n-1)) - 1) {
		var group []space.Choice
		add := func(format string, numbers ...any) {
			group = append(group, space.Choice{Devices: set, Strategy: fmt.Sprintf(format, numbers...)})
		}
		for _, shared := range sharing {
			add("%s:%d", shared, n)
		}
		eachGrid(n, func(replicas, each int) { add("data-parallel:%d+tensor-parallel:%d", replicas, each) })
		numbers := []int{2 * n, n, 4 * n}
		if c.Options.Evaluate {
			numbers = onePart
		}
		for i, batches := range numbers {
			if batches <= c.Options.Batch {
				add("1f1b:%dx%d", n, batches)
				add("gpipe:%dx%d", n, batches)
				add("interleaved:%dx2x%d", n, batches)
				if i == 0 {
					addShared(n, batches, add)
				}
			}
			if number += len(group); number > most {
				return groups
			}
			groups, group = append(groups, group), nil
		}
	}
	return groups
}

// eachGrid visits the grids of at least two rows and two columns whose number of rows is a power of two.
func eachGrid(devices int, visit func(replicas, each int)) {
	for replicas := 2; 2*replicas <= devices; replicas *= 2 {
		if devices%replicas == 0 {
			visit(replicas, devices/replicas)
		}
	}
}

// addShared adds pipelines whose stages have several devices each: replicas, parts of the weights, or both.
func addShared(devices, batches int, add func(format string, numbers ...any)) {
	eachGrid(devices, func(share, stages int) {
		add("tensor-parallel:%d+1f1b:%dx%d", share, stages, batches)
		add("data-parallel:%d+1f1b:%dx%d", share, stages, batches)
		eachGrid(share, func(replicas, each int) {
			add("data-parallel:%d+tensor-parallel:%d+1f1b:%dx%d", replicas, each, stages, batches)
		})
	})
}

// sharing are the strategies by which all devices share each layer.
var sharing = []string{"data-parallel", "tensor-parallel", "spatial", "owt"}

// strategies lists the strategies that a search tries on a machine: over two or more of the devices that are no processors, or over one of them and processors.
// Processors alone share a memory, in which parts of the samples need no transfers and leave no gaps. Numbers of micro-batches are powers of two. GPipe is
// among the named ones alone, since it is another order of the same graph: all policies plan for the best choices.
func (c *choices) strategies(p *platform.Platform) (all []space.Choice) {
	var devices, processors []*platform.Device
	for _, d := range p.Usable() {
		if d.IsProcessor() {
			processors = append(processors, d)
		} else {
			devices = append(devices, d)
		}
	}
	most := len(devices)
	if most == 1 {
		devices = append(devices, processors[:min(1, len(processors))]...)
	}
	for n := 2; n <= len(devices); n++ {
		add := func(format string, numbers ...any) {
			all = append(all, space.Choice{Devices: platform.List(devices[:n]), Strategy: fmt.Sprintf(format, numbers...)})
		}
		power := n&(n-1) == 0
		if n > mostSizes && !power && n < len(devices) {
			continue
		}
		if n <= most && (power || n == most) {
			for _, shared := range sharing {
				add("%s:%d", shared, n)
			}
			eachGrid(n, func(replicas, each int) { add("data-parallel:%d+tensor-parallel:%d", replicas, each) })
		}
		for _, batches := range c.powers(mostBatches * n) {
			add("1f1b:%dx%d", n, batches)
			for each := 2; each <= mostEach; each++ {
				add("interleaved:%dx%dx%d", n, each, batches)
			}
			if power {
				addShared(n, batches, add)
			}
		}
	}
	return all
}

// powers lists the numbers of micro-batches up to one.
func (c *choices) powers(most int) (all []int) {
	if c.Options.Evaluate {
		return onePart
	}
	for batches := 2; batches <= min(c.Options.Batch, most); batches *= 2 {
		all = append(all, batches)
	}
	return all
}

// staged is a network in the stages of a strategy, with the work of its layers by the model.
type staged struct {
	strategy.Split
	network  *strategy.Network
	lowering dag.Lowering
	layers   []layerwise.Layer
	idle     float64 // watts of the devices
}

// stagedBy lowers the network with the strategy of a choice by the times of the model, and makes no graph.
func (m *modelled) stagedBy(choice space.Choice) (s staged, err error) {
	by, err := strategy.ByName(choice.Strategy)
	if err != nil {
		return s, err
	}
	s.Split = by.Split
	w := m.choices.Workload
	if w.Platform, err = m.choices.platformOf(choice.Devices); err != nil {
		return s, err
	}
	if s.layers, s.idle, err = m.Layers(choice.Devices, max(1, s.MicroBatches)*s.Shares()); err != nil {
		return s, err
	}
	s.layers = m.choices.layersOf(s.layers)
	s.network = w.network(DefaultLowering(w.Model, w.Platform, w.Options.Batch, w.Options.Type))
	s.network.Times = func(_ dag.Lowering, places []strategy.Seat) (names []string, seconds [][]float64, err error) {
		for i := range s.layers {
			of := make([]float64, len(places))
			for k, place := range places {
				of[k] = s.layers[i].Seconds[place.Device]
			}
			names, seconds = append(names, s.layers[i].Name), append(seconds, of)
		}
		return names, seconds, nil
	}
	s.lowering, err = s.Split.Lowering(s.network)
	return s, err
}

// firsts are the first layers of the stages, by number.
func (s *staged) firsts() (from []int) {
	for i := range s.lowering.Stages {
		from = append(from, slices.IndexFunc(s.layers, func(l layerwise.Layer) bool { return l.Name == s.lowering.Stages[i].From }))
	}
	return from
}

// nearStrategies lists strategies that differ a little from one with a pipeline: in the number of micro-batches, or in a layer that belongs to the stage before
// or behind. Others have none.
func (m *modelled) nearStrategies(choice space.Choice) (all []space.Choice, err error) {
	s, err := m.stagedBy(choice)
	if err != nil || s.Order == "" {
		return nil, err
	}
	add := func(near strategy.Split) {
		all = append(all, space.Choice{Devices: choice.Devices, Strategy: near.String()})
	}
	for _, batches := range []int{s.MicroBatches - s.Stages, s.MicroBatches - 1, s.MicroBatches + 1, s.MicroBatches + s.Stages} {
		if !m.choices.Options.Evaluate && batches > 1 && batches <= m.choices.Options.Batch {
			near := s.Split
			near.MicroBatches = batches
			add(near)
		}
	}
	from := s.firsts()
	for i := 1; i < len(from); i++ {
		for _, to := range []int{from[i] - 1, from[i] + 1} {
			if to < 1 || to >= len(s.layers) || slices.Contains(from, to) {
				continue
			}
			near := s.Split
			near.From = nil
			for k, first := range from[1:] {
				if k+1 == i {
					first = to
				}
				near.From = append(near.From, s.layers[max(0, first)].Name)
			}
			add(near)
		}
	}
	return all, nil
}

// estimated estimates a step with the stages of a strategy by the times of layers from the model, for comparisons of strategies. In a pipeline
// one micro-batch passes all stages, and the others follow at the pace of the slowest stage, or of the link that is busy for the longest time. A micro-batch waits
// for each transfer on its way forward and backward. Several units of a device count as one, since tasks of a micro-batch are few.
func (s *staged) estimated(aim problem.Aim, inference bool) (float64, bool) {
	from, stages := s.firsts(), s.lowering.Stages
	batches, each := float64(max(1, s.MicroBatches)), float64(max(1, s.Each))
	e, slowest, once, gradients := layerwise.Estimate{}, 0.0, 0.0, 0.0
	moved := map[platform.LinkID]float64{}  // seconds of results of a micro-batch
	busy := map[platform.DeviceID]float64{} // seconds of all stages of a device
	before := platform.DeviceID(-1)
	for i := range stages {
		to := len(s.layers)
		if i+1 < len(stages) {
			to = from[i+1]
		}
		if from[i] < 0 || to < from[i] {
			return 0, false
		}
		at := s.devicesOf(&stages[i])
		device, takes := at[0], 0.0
		for _, l := range s.layers[from[i]:to] {
			takes += l.Seconds[device] / batches / float64(len(stages[i].Places()))
			e.Joules += l.Joules[device]
		}
		messages, exchanged := s.network.Exchanges(&s.lowering, i, max(1, s.MicroBatches))
		meet := float64(s.meeting(at))
		takes, gradients = takes+meet*messages, max(gradients, meet*exchanged)
		p := s.network.Platform
		if i > 0 && before == device && len(at) > 1 && stages[i].Along != stages[i-1].Along { // parts of samples become parts of outputs
			takes += p.RouteTime(p.Devices[at[0]].Memory, p.Devices[at[1]].Memory, int64(s.layers[from[i]].Exchanged/batches)).Seconds()
		}
		slowest, once = max(slowest, takes), once+takes/each
		busy[device] += takes
		if before >= 0 && before != device {
			there, back := p.Devices[before].Memory, p.Devices[device].Memory
			way := p.RouteTime(there, back, int64(s.layers[from[i]].Exchanged/batches)).Seconds()
			once += way
			for _, direction := range [][2]platform.MemoryID{{there, back}, {back, there}} {
				route, _ := p.Route(direction[0], direction[1])
				for _, link := range route {
					moved[link] += way / 2
				}
			}
		}
		before = device
	}
	for _, seconds := range moved {
		slowest = max(slowest, seconds/each)
	}
	if e.Seconds = once + (batches*each-1)*slowest + gradients; inference {
		e.Seconds = max(slowest, slices.Max(slices.Collect(maps.Values(busy)))) // the next step follows at once
	}
	e.Joules += s.idle * e.Seconds
	return e.Value(aim), !math.IsInf(e.Seconds, 1)
}

// devicesOf are the devices of a stage, which names them or their units.
func (s *staged) devicesOf(stage *dag.Stage) (all []platform.DeviceID) {
	p := s.network.Platform
	for _, name := range stage.Places() {
		at := slices.IndexFunc(p.Workers, func(w platform.Worker) bool { return w.Name == name || p.Devices[w.Device].Name == name })
		all = append(all, p.Workers[at].Device)
	}
	return all
}

// meeting is how many messages meet on a link when each device sends one to the next, at least one.
func (s *staged) meeting(devices []platform.DeviceID) int {
	most, on, p := 1, map[platform.LinkID]int{}, s.network.Platform
	for i, d := range devices {
		route, _ := p.Route(p.Devices[d].Memory, p.Devices[devices[(i+1)%len(devices)]].Memory)
		for _, link := range route {
			on[link]++
			most = max(most, on[link])
		}
	}
	return most
}

// layersOf is the work of layers. What is no layer, such as the loss, belongs to the last one.
func (w *Workload) layersOf(work []layerwise.Layer) (layers []layerwise.Layer) {
	names := w.layerNames()
	for i := range work {
		of := &work[i]
		if slices.Contains(names, of.Name) || len(layers) == 0 {
			layers = append(layers, *of)
			continue
		}
		last := &layers[len(layers)-1]
		for d := range last.Seconds {
			last.Seconds[d] += of.Seconds[d]
			last.Joules[d] += of.Joules[d]
		}
	}
	return layers
}
