package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
)

// Several devices may share a stage. Each has a part of one dimension: of the samples of a micro-batch, of outputs, or of rows. No tile crosses
// the bounds of these parts. A task is placed on the device with the middle of its tile. Layers and other tasks without that dimension have it as follows:
//
//	outputs  the input gradient of a layer without weights, such as a ReLU, is shared along its inputs
//	any      all other operations without the dimension are shared along samples, such as the loss
//
// A task that has neither, such as an update of a bias, is placed on the first device.

// checkSharing refuses what several devices cannot share.
func checkSharing(s *dag.Stage) error {
	switch along := []dag.Dimension{dag.AlongSamples, dag.AlongOutputs, dag.AlongRows}; {
	case !slices.Contains(along, s.Along):
		return fmt.Errorf("along = %q; devices share %v", s.Along, along)
	case s.Sum < 0 || s.Sum >= dag.NumExchanges:
		return fmt.Errorf("sum = %q; write direct, ring or tree", s.Sum)
	}
	for i, d := range s.Devices {
		if slices.Contains(s.Devices[:i], d) {
			return fmt.Errorf("device %q is there twice; write each once", d)
		}
	}
	return nil
}

// sharing is the stage of a layer if several devices share it, else nil.
func (l *lowerer) sharing(layer string) *dag.Stage {
	if l.opt.Lowering.Stages == nil {
		return nil
	}
	if s := &l.opt.Lowering.Stages[l.stageOf(layer)]; s.Shared() {
		return s
	}
	return nil
}

// shareSides says which side of an operation of a layer the devices share, if there are several.
func (l *lowerer) shareSides(layer string, sides []side) {
	s := l.sharing(layer)
	if s == nil {
		return
	}
	along := []dag.Dimension{s.Along, dag.AlongSamples}
	if s.Along == dag.AlongOutputs {
		along = slices.Insert(along, 1, dag.AlongInputs)
	}
	for _, d := range along {
		i := slices.IndexFunc(sides, func(s side) bool { return s.along == d && s.cuttable && s.extent > 1 })
		if i >= 0 {
			sides[i].shares = len(s.Devices)
			return
		}
	}
}

// seat is the device of a tile. Nil means that devices do not share the operation.
func (l *lowerer) seat(layer string, sides []side, ranges []dag.Range) *dag.Placement {
	i := slices.IndexFunc(sides, func(s side) bool { return s.shares > 1 })
	if i < 0 {
		return nil
	}
	middle := (ranges[i].Lo + ranges[i].Hi) / 2
	return &dag.Placement{Device: l.sharing(layer).Devices[dag.Share(middle, sides[i].extent, sides[i].shares)]}
}

// cutShares limits the tiles of layers to the shares of devices.
func (l *lowerer) cutShares() {
	lowering := &l.opt.Lowering
	all := map[string]dag.LayerLowering{}
	samples := min(l.opt.Batch, ceilDiv(l.opt.FullBatch, max(lowering.MicroBatches, 1)))
	for i := range l.m.Stages {
		s := &l.m.Stages[i]
		all[s.Name] = lowering.Of(s.Name)
		of := l.sharing(s.Name)
		if of == nil {
			continue
		}
		ll, in, out := all[s.Name], extents(s.In[0]), extents(s.Out)
		limit := func(c *dag.Cut, d dag.Dimension, extent int) {
			*c.Of(d) = min(clip(*c.Of(d), extent), ceilDiv(extent, len(of.Devices)))
		}
		if ll.InputGradient == (dag.Cut{}) {
			ll.InputGradient = mirrored(ll.Forward, s.Out, s.In[0])
		}
		back := &ll.InputGradient
		switch {
		case of.Along == dag.AlongOutputs:
			limit(&ll.Forward, dag.AlongOutputs, out[0])
			limit(&ll.WeightGradient, dag.AlongOutputs, out[0])
			if s.Traits.Weight {
				limit(back, dag.AlongOutputs, out[0])
			} else {
				limit(back, dag.AlongInputs, in[0])
			}
		case of.Along == dag.AlongRows && out[1] > 1:
			limit(&ll.Forward, dag.AlongRows, out[1])
			limit(&ll.WeightGradient, dag.AlongRows, out[1])
			limit(back, dag.AlongRows, in[1])
		default:
			limit(&ll.Forward, dag.AlongSamples, samples)
			limit(&ll.WeightGradient, dag.AlongSamples, samples)
			limit(back, dag.AlongSamples, samples)
		}
		all[s.Name] = ll
	}
	lowering.Layers = all
}
