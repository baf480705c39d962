package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan/strategy"
	"dahl/plan/tiling"
	"dahl/schedule/policy"
)

// network is the workload as strategies see it, with a lowering that it has without them.
func (w *Workload) network(l dag.Lowering) *strategy.Network {
	o := &w.Options
	n := &strategy.Network{
		Platform: w.Platform, Batch: o.Batch, Layers: []strategy.Layer{{Name: nn.InputName}}, Default: l,
		Whole: func(bytes int64) dag.Lowering { return nn.WholeLowering(w.Model, o.Batch, bytes, o.Type) },
		Times: w.timesOfLayers, Fixed: o.Lowering != nil || o.Tiles != (tiling.Tiling{}),
	}
	size, learns := float64(cmp.Or(o.Type, dag.Float32).SizeBytes()), false
	for i := range w.Model.Stages {
		s := &w.Model.Stages[i]
		of := strategy.Layer{Name: s.Name, In: size * float64(nn.Elems(s.In[0])), Out: size * float64(nn.Elems(s.Out)), Learns: learns}
		switch len(s.Out) {
		case 2:
			of.Positions, of.Attends = s.Out[0], s.Traits.Blocks != nil
		case 3:
			of.Rows = s.Out[1]
		}
		_, of.Statistics = s.Layer.(nn.Tracker)
		for _, p := range s.Params {
			if p.Of == "" {
				of.Weights += size * float64(p.Elems())
			}
			if len(p.Shape) > 1 && s.Traits.Weight {
				of.Inputs = nn.Channels(s.In[0])
			}
			if len(p.Shape) == 4 { // a kernel of rows and columns
				beyond := float64(p.Shape[2] / 2)
				of.BorderIn, of.BorderOut = beyond*of.In/float64(s.In[0][1]), beyond*of.Out/float64(s.Out[1])
			}
		}
		learns = learns || len(s.Params) > 0
		n.Layers = append(n.Layers, of)
	}
	return n
}

// StepOf is a training step of the decided plan by the closed formulas of papers. False means that there are none for it.
func (w *Workload) StepOf() (strategy.Step, bool) {
	if w.Model == nil || w.Options.Evaluate || w.Lowering == nil || w.Lowering.Stages == nil {
		return strategy.Step{}, false
	}
	d := &w.Decision.Graphs[0]
	return strategy.StepOf(&d.Problem, d.Plan, w.Lowering, w.network(*w.Lowering))
}

// layerNames lists the input and the layers.
func (w *Workload) layerNames() []string {
	return append([]string{nn.InputName}, naming.List(w.Model.Stages, func(s nn.Stage) string { return s.Name })...)
}

// timesOfLayers lists the layers, fused ones by the first, and the seconds of all tasks of each in a step, by place. Losses, results
// and the clipping of gradients belong to the last layer.
func (w *Workload) timesOfLayers(l dag.Lowering, places []strategy.Seat) (layers []string, times [][]float64, err error) {
	alone := *w
	alone.Options.Strategy = nil
	priced, err := alone.PriceAs(l)
	if err != nil {
		return nil, nil, err
	}
	g, costs := priced.Program.Graphs[0], priced.Costs(0)
	names := w.layerNames()
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
			cost, runs := costs.Of(dag.TaskID(t), place.Device)
			if !runs {
				all[at][i] = math.Inf(1)
			}
			all[at][i] += float64(cost.Duration+w.Platform.Devices[place.Device].Dispatch) / float64(place.Units) / float64(time.Second)
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
	slices.Sort(known)
	known = slices.Compact(known)
	for _, unit := range w.Platform.Workers {
		if !w.Platform.Devices[unit.Device].PlacedOnly && !slices.Contains(known, unit.Name) {
			known = append(known, unit.Name)
		}
	}
	for i, s := range l.Stages {
		for _, device := range s.Places() {
			if known != nil && !slices.Contains(known, device) {
				return fmt.Errorf("lowering: stage %d, from %q: %w", i+1, s.From, naming.Unknown("device", device, known))
			}
		}
	}
	return nil
}
