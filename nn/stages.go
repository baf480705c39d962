package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/naming"
)

// Stages make a pipeline of a step. A stage has consecutive layers, and all its tasks are placed on one device, or on the devices that share it: forward and
// backward pass, copies of weights, sums of gradients and updates. The first one also loads the samples. The last one has the loss, the
// results and the clipping of gradients. Tasks carry the number of their stage, by which policies order micro-batches.
//
// Several stages may name one device, which then has several parts of the network.
//
// A group of layers that one task computes belongs to the stage of its first layer. So a stage begins with the next
// group if its first layer is in the middle of one.

// checkStages refuses stages out of order.
func (m *Model) checkStages(stages []dag.Stage) error {
	names, last := m.lowered(), -1
	for i, s := range stages {
		at := m.position(s.From)
		switch {
		case !slices.Contains(names[:1], s.From) && m.stageNamed(s.From) < 0:
			return fmt.Errorf("lowering: stage %d, from %q: %w", i+1, s.From, naming.Unknown("layer", s.From, slices.Delete(slices.Clone(names), 1, 2)))
		case i == 0 && at > 1:
			return fmt.Errorf("lowering: stage 1 begins with %q; write %q, the first layer, or %q", s.From, names[2], names[0])
		case at <= last:
			return fmt.Errorf("lowering: stage %d begins with %q, which does not come behind %q, where stage %d begins", i+1, s.From, stages[i-1].From, i)
		case slices.Contains(s.Places(), ""):
			return fmt.Errorf("lowering: stage %d has no device; write device = and the name of a device, a unit or a kind", i+1)
		case s.Device != "" && s.Devices != nil:
			return fmt.Errorf("lowering: stage %d has device %q and devices %q; write one of the two", i+1, s.Device, s.Devices)
		}
		if err := checkSharing(&s); err != nil {
			return fmt.Errorf("lowering: stage %d, from %q: %w", i+1, s.From, err)
		}
		last = at
	}
	return nil
}

// position is the place of a layer in the order of the network, from 1 on. The input is at 0, and everything but layers behind the last one.
func (m *Model) position(name string) int {
	if name == InputName {
		return 0
	}
	if i := m.stageNamed(name); i >= 0 {
		return i + 1
	}
	return len(m.Stages) + 1
}

// stageNamed is the index of a layer; -1 means that the model has no such layer.
func (m *Model) stageNamed(name string) int {
	return slices.IndexFunc(m.Stages, func(s Stage) bool { return s.Name == name })
}

// stageOf is the number of the stage with a layer, from 0 on.
func (l *lowerer) stageOf(layer string) int {
	i, known := l.stageOfLayer[layer]
	if !known {
		at := l.m.position(layer)
		for i = len(l.opt.Lowering.Stages) - 1; i > 0 && l.m.position(l.opt.Lowering.Stages[i].From) > at; i-- {
		}
		l.stageOfLayer[layer] = i
	}
	return i
}

// stage places the tasks of each stage.
func (l *lowerer) stage() error {
	stages := l.opt.Lowering.Stages
	if stages == nil {
		return nil
	}
	places := make([]*dag.Placement, len(stages))
	for i, s := range stages {
		places[i] = &dag.Placement{Device: s.Places()[0]}
	}
	return l.retask(func(_ dag.TaskID, task *dag.Task) {
		i := l.stageOf(task.Labels.Layer)
		task.Labels.Stage = int32(i + 1)
		if task.Placement == nil {
			task.Placement = places[i]
		}
	})
}

// retask changes the tasks of the graph, in place if nobody looks at it between passes.
func (l *lowerer) retask(change func(dag.TaskID, *dag.Task)) (err error) {
	if l.opt.After == nil {
		return l.graph.Change(change)
	}
	l.graph, err = l.graph.Retask(change)
	return err
}
