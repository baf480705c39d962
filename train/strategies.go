package train

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/layerwise"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/strategy"
	"dahl/platform"
)

// mostEach is how many stages a device has at most in pipelines that a search tries. Above mostSizes, numbers of devices are powers of two, or all.
const mostEach, mostSizes = 4, 8

// strategies lists the strategies that a search tries on a machine: over two or more of the devices that are no processors, or over one of them and processors.
// Processors alone share a memory, in which parts of the samples need no transfers and leave no gaps. Numbers of micro-batches are powers of two. GPipe is
// no choice of its own, since it is another order of the same graph: all policies plan for the best choices.
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
			for _, shared := range []string{"data-parallel", "tensor-parallel", "spatial", "owt"} {
				add("%s:%d", shared, n)
			}
		}
		for batches := 2; batches <= c.Options.Batch; batches *= 2 {
			add("1f1b:%dx%d", n, batches)
			for each := 2; each <= mostEach; each++ {
				add("interleaved:%dx%dx%d", n, each, batches)
			}
			for share := 2; 2*share <= n && n%share == 0 && power; share *= 2 {
				add("tensor-parallel:%d+1f1b:%dx%d", share, n/share, batches)
				add("data-parallel:%d+1f1b:%dx%d", share, n/share, batches)
			}
		}
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
	if s.layers, s.idle, err = m.Layers(choice.Devices, max(1, s.MicroBatches)*max(1, s.Devices)); err != nil {
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
		if batches > 1 && batches <= m.choices.Options.Batch {
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
// one micro-batch passes all stages, and the others follow at the pace of the slowest stage, or of the device that sends for the longest time. A micro-batch waits
// for each transfer on its way forward and backward. Several units of a device count as one, since tasks of a micro-batch are few.
func (s *staged) estimated(aim problem.Aim) (float64, bool) {
	from, stages := s.firsts(), s.lowering.Stages
	batches, each := float64(max(1, s.MicroBatches)), float64(max(1, s.Each))
	e, slowest, once, gradients := layerwise.Estimate{}, 0.0, 0.0, 0.0
	moved := map[platform.DeviceID]float64{} // seconds of results of a micro-batch that a device sends
	before := platform.DeviceID(-1)
	for i := range stages {
		to := len(s.layers)
		if i+1 < len(stages) {
			to = from[i+1]
		}
		if from[i] < 0 || to < from[i] {
			return 0, false
		}
		device := s.deviceOf(stages[i].Places()[0])
		takes := 0.0
		for _, l := range s.layers[from[i]:to] {
			takes += l.Seconds[device] / batches / float64(len(stages[i].Places()))
			e.Joules += l.Joules[device]
		}
		messages, exchanged := s.network.Exchanges(&s.lowering, i, max(1, s.MicroBatches))
		takes, gradients = takes+messages, max(gradients, exchanged)
		slowest, once = max(slowest, takes), once+takes/each
		if before >= 0 && before != device {
			memory := func(d platform.DeviceID) platform.MemoryID { return s.network.Platform.Devices[d].Memory }
			way := s.network.Platform.RouteTime(memory(before), memory(device), int64(s.layers[from[i]].Exchanged/batches)).Seconds()
			moved[before], moved[device], once = moved[before]+way/2, moved[device]+way/2, once+way
		}
		before = device
	}
	for _, seconds := range moved {
		slowest = max(slowest, seconds/each)
	}
	e.Seconds = once + (batches*each-1)*slowest + gradients
	e.Joules += s.idle * e.Seconds
	return e.Value(aim), !math.IsInf(e.Seconds, 1)
}

// deviceOf is the device of a name of a device or a unit.
func (s *staged) deviceOf(name string) platform.DeviceID {
	p := s.network.Platform
	at := slices.IndexFunc(p.Workers, func(w platform.Worker) bool { return w.Name == name || p.Devices[w.Device].Name == name })
	return p.Workers[at].Device
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
