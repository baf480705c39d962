package train

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule/policy"
)

// Pipeline is a pipeline by numbers: its stages are cut so that the longest one takes the least time.
type Pipeline struct {
	Order        string // a policy in [policy.Pipelines]
	Devices      int
	Each         int // stages on each device
	MicroBatches int
}

// maxOfPipeline bounds each number, so that their products are numbers.
const maxOfPipeline = 1 << 16

// PipelineForms says how pipelines by numbers are written.
const PipelineForms = "ORDER:DEVICESxMICRO-BATCHES or interleaved:DEVICESxSTAGES-EACHxMICRO-BATCHES, as in 1f1b:4x8"

// ParsePipeline reads an order with numbers, such as "1f1b:4x8", or "interleaved:2x2x8" with the number of stages on each device in the middle.
func ParsePipeline(text string) (*Pipeline, error) {
	order, numbers, _ := strings.Cut(text, ":")
	if _, err := policy.PipelineByName(order); err != nil {
		return nil, err
	}
	p := &Pipeline{Order: order, Each: 1}
	to := []*int{&p.Devices, &p.MicroBatches}
	if order == policy.Interleaved.Doc().Name {
		to = slices.Insert(to, 1, &p.Each)
	}
	parts := strings.Split(numbers, "x")
	ok := len(parts) == len(to)
	for i := 0; ok && i < len(to); i++ {
		n, err := strconv.Atoi(parts[i])
		ok, *to[i] = err == nil && n >= 1 && n <= maxOfPipeline, n
	}
	if !ok {
		return nil, fmt.Errorf("%q: write %s", text, PipelineForms)
	}
	return p, nil
}

// seat is a unit for a stage, or some units of a device.
type seat struct {
	name   string
	device platform.DeviceID
	units  int
}

// seats are the devices of a number of stages: those with memories of their own first, in the order of the platform. One stage beyond these
// has all units of the first processor, and several have one each.
func seats(p *platform.Platform, number int) ([]seat, error) {
	var accelerators, cores, whole []seat
	for w, unit := range p.Workers {
		d := &p.Devices[unit.Device]
		switch {
		case d.PlacedOnly:
		case !d.IsProcessor():
			accelerators = append(accelerators, seat{p.Workers[w].Name, unit.Device, 1})
		default:
			if whole == nil {
				whole = []seat{{d.Name, unit.Device, d.Count}}
			}
			cores = append(cores, seat{p.Workers[w].Name, unit.Device, 1})
		}
	}
	if 0 < len(accelerators) && len(accelerators) == number-1 && whole != nil {
		cores = whole
	}
	all := append(accelerators, cores...)
	if len(all) < number {
		return nil, fmt.Errorf("a pipeline of %d devices: %q has %d units; take fewer", number, p.Name, len(all))
	}
	return all[:number], nil
}

// pipelined gives a lowering the stages of the pipeline by numbers of the options. Where nobody chooses tiles, layers are whole if each stage has a
// device that is no processor.
func (w *Workload) pipelined(l dag.Lowering) (dag.Lowering, error) {
	of := w.Options.Pipeline
	if l.Stages != nil {
		return l, fmt.Errorf("the lowering has stages of its own; leave them out, or the numbers behind %s", of.Order)
	}
	places, err := seats(w.Platform, of.Devices)
	if err != nil {
		return l, err
	}
	if o := &w.Options; o.Lowering == nil && o.Tiles == (tiling.Tiling{}) && !slices.ContainsFunc(places, func(s seat) bool { return w.Platform.Devices[s.device].IsProcessor() }) {
		least := int64(math.MaxInt64)
		for _, s := range places {
			if bytes := w.Platform.Memories[w.Platform.Devices[s.device].Memory].CapacityBytes; bytes > 0 {
				least = min(least, bytes)
			}
		}
		l = nn.WholeLowering(w.Model, o.Batch, least, o.Type)
	}
	l.MicroBatches, l.Order = of.MicroBatches, of.Order
	layers, times, err := w.timesOfLayers(l, places)
	if err != nil {
		return l, err
	}
	firsts := plan.Balance(times, of.Devices*of.Each)
	if firsts == nil {
		return l, fmt.Errorf("%d stages: the network has %s with tasks, the input among them", of.Devices*of.Each, naming.Count(len(layers), "layer"))
	}
	for s, first := range firsts {
		l.Stages = append(l.Stages, dag.Stage{From: layers[first], Device: places[s%of.Devices].name})
	}
	return l, nil
}

// timesOfLayers lists the layers, fused ones by the first, and the seconds of all tasks of each in a step, by place. Losses, results
// and the clipping of gradients belong to the last layer.
func (w *Workload) timesOfLayers(l dag.Lowering, places []seat) (layers []string, times [][]float64, err error) {
	alone := *w
	alone.Options.Pipeline = nil
	priced, err := alone.PriceAs(l)
	if err != nil {
		return nil, nil, err
	}
	g, costs := priced.Program.Graphs[0], priced.Costs(0)
	names := append([]string{nn.InputName}, naming.List(w.Model.Stages, func(s nn.Stage) string { return s.Name })...)
	begun, all := make([]bool, len(names)), make([][]float64, len(names))
	for i := range all {
		all[i] = make([]float64, len(places))
	}
	for t := range g.Tasks {
		task := &g.Tasks[t]
		at := slices.Index(names, task.Labels.Layer)
		if at < 0 {
			at = len(names) - 1
		}
		if task.Placement != nil {
			continue // it stays there
		}
		begun[at] = true
		for i, place := range places {
			cost, runs := costs.Of(dag.TaskID(t), place.device)
			if !runs {
				all[at][i] = math.Inf(1)
			}
			all[at][i] += float64(cost.Duration+w.Platform.Devices[place.device].Dispatch) / float64(place.units) / float64(time.Second)
		}
	}
	for i, name := range names {
		if begun[i] { // else it is fused with a layer before
			layers, times = append(layers, name), append(times, all[i])
		}
	}
	return layers, times, nil
}

// checkStages refuses stages on devices that the platform does not have, and unknown orders. Without a machine any device is fine, and a nil lowering
// has no stages.
func (w *Workload) checkStages() error {
	l := w.Lowering
	if l == nil {
		return nil
	}
	if l.Order != "" {
		if _, err := policy.PipelineByName(l.Order); err != nil {
			return fmt.Errorf("lowering: %w", err)
		}
	}
	var known []string
	for _, d := range w.Platform.Usable() {
		known = append(known, d.Name, d.Kind)
	}
	for _, unit := range w.Platform.Workers {
		if !w.Platform.Devices[unit.Device].PlacedOnly {
			known = append(known, unit.Name)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for i, s := range l.Stages {
		for _, device := range s.Places() {
			if known != nil && !slices.Contains(known, device) {
				return fmt.Errorf("lowering: stage %d, from %q: %w", i+1, s.From, naming.Unknown("device", device, known))
			}
		}
	}
	return nil
}
