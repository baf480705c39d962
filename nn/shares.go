package nn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/naming"
)

// Several devices may share a stage. Each has a part of one dimension: of the samples of a micro-batch, of outputs, or of rows. No tile crosses
// the bounds of these parts. A task is placed on the device with the middle of its tile. Layers and other tasks without that dimension have it as follows:
//
//	outputs  the input gradient of a layer without weights, such as a ReLU, is shared along its inputs. So are all passes of a layer with weights whose
//	         forward tasks have parts of the inputs: its results are sums over devices
//	         layers of sequences between pairs of these are shared along samples or positions (pairs.go)
//	any      all other operations without the dimension are shared along samples, such as the loss
//
// A task that has neither, such as the statistics of a batch normalisation over all samples, is placed on the first device. Each device may sum the moments of its samples
// first ([dag.Statistics]).
//
// Devices that share samples or rows have copies of the weights in other layouts, and gradients in these, each for itself. What they have summed of one
// gradient becomes one sum by an exchange ([dag.Exchange]). If that goes in slices, so do the updates: each device has the optimiser's state of its slice, as in
// S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020. The updated weights go from there to
// all other devices, as soon as they are written.

// checkSharing refuses what several devices cannot share.
func checkSharing(s *dag.Stage) error {
	switch along := []dag.Dimension{dag.AlongSamples, dag.AlongOutputs, dag.AlongRows}; {
	case !slices.Contains(along, s.Along):
		return fmt.Errorf("along = %q; write samples, outputs or rows", s.Along)
	case s.Sum < 0 || s.Sum >= dag.NumExchanges:
		return fmt.Errorf("sum = %q; write direct, ring, tree or hierarchical", s.Sum)
	case s.Replicas < 0 || s.Replicas > 1 && len(s.Devices)%s.Replicas > 0:
		return fmt.Errorf("replicas = %d of %s; write a number that divides them", s.Replicas, naming.Count(len(s.Devices), "device"))
	case s.Shares != nil && (s.Along != dag.AlongSamples || len(s.Shares) != len(s.Devices) || slices.Min(s.Shares) < 1):
		return fmt.Errorf("shares = %s, along = %q; write a whole number above 0 for each device, and along = samples", strings.Join(naming.List(s.Shares, strconv.Itoa), ", "), s.Along)
	case s.Replicas > 1 && s.Along == dag.AlongSamples:
		return fmt.Errorf("replicas = %d, along = %q: replicas are parts of the samples; write along = outputs or rows, or leave replicas out", s.Replicas, s.Along)
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

// summing is the stage of a layer if several devices share it, with the dimension along which they share its weights. Else it is nil.
func (l *lowerer) summing(layer string) *dag.Stage {
	s := l.sharing(layer)
	if s != nil {
		if along := l.sharedAlong(layer); along != s.Along {
			of := *s
			of.Along, s = along, &of
		}
	}
	return s
}

// sharedAlong is the dimension that devices share of a layer: inputs, if they share outputs and the lowering cuts a layer with weights along its inputs.
func (l *lowerer) sharedAlong(layer string) dag.Dimension {
	s, i := l.sharing(layer), l.m.stageNamed(layer)
	if s.Along != dag.AlongOutputs || i < 0 {
		return s.Along
	}
	if l.between(i) {
		return l.alongBetween(s)
	}
	if inputs := l.opt.Lowering.Of(layer).Forward.Inputs; l.m.Stages[i].Traits.Weight && inputs > 0 && inputs < Channels(l.m.Stages[i].In[0]) {
		return dag.AlongInputs
	}
	return s.Along
}

// SumsApart reports whether each device first sums over its own samples, before a tree sums over the devices. Where nobody says, two devices do not: they exchange about as many messages
// either way, and would have more tasks.
func (n *Node) SumsApart() bool {
	s := n.l.sharing(n.Name)
	if n.l.opt.totals || s == nil {
		return n.l.opt.totals
	}
	devices := len(s.Devices)
	if s.Along == dag.AlongOutputs {
		devices = s.Replicas
	}
	least := map[dag.Statistics]int{dag.ByNumber: 3, dag.OnEach: 2}[s.Statistics]
	return least > 0 && devices >= least
}

// sharedWeight is the dimension along which copies, gradients and updates of a layer's weight are cut, and its index in the weight and in a copy.
func (l *lowerer) sharedWeight(n *Node, f Form) (along dag.Dimension, of, copied int) {
	if f.Inputs != f.Outputs && l.sharing(n.Name) != nil && l.sharedAlong(n.Name) == dag.AlongInputs {
		return dag.AlongInputs, 1, f.Inputs
	}
	return dag.AlongOutputs, 0, f.Outputs
}

// shareSides says which sides of an operation of a layer the devices share, if there are several.
func (l *lowerer) shareSides(layer string, sides []side) {
	s := l.sharing(layer)
	if s == nil {
		return
	}
	along := []dag.Dimension{l.sharedAlong(layer), dag.AlongSamples}
	switch along[0] {
	case dag.AlongOutputs:
		along = slices.Insert(along, 1, dag.AlongInputs)
	case dag.AlongInputs:
		along = slices.Insert(along, 1, dag.AlongOutputs)
	}
	replicas, each := s.Grid()
	at := func(d dag.Dimension) int {
		return slices.IndexFunc(sides, func(s side) bool { return s.along == d && s.cuttable && s.extent > 1 })
	}
	samples := at(dag.AlongSamples)
	for _, d := range along {
		if i := at(d); i >= 0 && i != samples {
			blocks := l.blocks(layer)
			if d == dag.AlongOutputs && s.Along == d && blocks != nil && sides[i].extent%sumOf(blocks) == 0 {
				sides[i].shareBlocks(blocks, each)
			} else {
				sides[i].share(equal(each), 1)
			}
			if replicas > 1 && samples >= 0 {
				sides[samples].share(equal(replicas), each)
			}
			return
		}
	}
	if samples >= 0 {
		sides[samples].share(s.Proportions(len(s.Devices)), 1)
	}
}

// share gives devices shares of a side in some proportions, in whole units. The numbers of the devices are that far apart.
func (s *side) share(proportions []int, apart int) {
	s.shares, s.among = nil, len(proportions)
	unit, of, lo, all := s.unit(), 0, 0, sumOf(proportions)
	for k, proportion := range proportions {
		of += proportion
		hi := s.extent / unit * of / all * unit
		s.shares = append(s.shares, dag.Part{Range: dag.Range{Lo: lo, Hi: hi}, Device: k * apart})
		lo = hi
	}
}

// equal are the proportions of n equal shares.
func equal(n int) []int { return slices.Repeat([]int{1}, n) }

func sumOf(numbers []int) (sum int) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// seat is the number of the device with a tile, the first of several that have no sides to share it along. -1 means that devices do not share the operation. shared is into how
// many parts the devices share it.
func (l *lowerer) seat(sides []side, ranges []dag.Range) (device, shared int) {
	device, shared = -1, 1
	for i, s := range sides {
		middle := (ranges[i].Lo + ranges[i].Hi) / 2
		k, _ := slices.BinarySearchFunc(s.shares, middle+1, func(p dag.Part, end int) int { return p.Hi - end })
		if k < len(s.shares) && s.shares[k].Lo <= middle {
			device, shared = max(device, 0)+s.shares[k].Device, shared*s.among
		}
	}
	return device, shared
}

// onDevice is a task on a device of its stage, with the buffers of this device. -1 stands for no device.
func (l *lowerer) onDevice(t dag.Task, device int) dag.Task {
	if device < 0 {
		device = 0
	} else {
		t.Placement = l.b.PlaceOn(l.sharing(t.Labels.Layer).Devices[device])
	}
	for i, a := range t.Accesses {
		if own := l.ofDevices[a.Buffer]; own != nil {
			t.Accesses[i].Buffer = own[device]
			if a.Mode != dag.Read {
				l.filled[l.storage(own[device])] = true
			}
		}
	}
	return t
}

func (l *lowerer) storage(id dag.BufferID) dag.BufferID {
	if of := l.b.BufferAt(id).ViewOf; of != none {
		return of
	}
	return id
}

// onEach gives each device of the stage of a layer a buffer of its own, such as a copy of the weight in another layout, or the gradient in it. Devices that share
// outputs of a replica have one buffer, and each uses a part.
func (l *lowerer) onEach(n *Node, id dag.BufferID) dag.BufferID {
	s := l.sharing(n.Name)
	if s == nil || s.Along == dag.AlongOutputs && s.Replicas < 2 {
		return id
	}
	_, each := s.Grid()
	own := []dag.BufferID{id}
	for k := 1; k < len(s.Devices); k++ {
		if s.Along == dag.AlongOutputs && k%each > 0 {
			own = append(own, own[k-1])
			continue
		}
		b := l.b.BufferAt(id)
		b.Name = deviceName(b.Name, k)
		own = append(own, l.b.Buffer(b))
	}
	l.ofDevices[id] = own
	return id
}

// deviceName is the name of a buffer or a task on a further device.
func deviceName(name string, device int) string { return fmt.Sprintf("%s.device%d", name, device+1) }

// addPart adds a task with ranges of some sides. A task that several devices have, but for buffers of their own, is there once for each buffer. If it writes a buffer of
// all, its results are summed.
func (l *lowerer) addPart(t dag.Task, sides []side, ranges []dag.Range) {
	device, shared := l.seat(sides, ranges)
	own := slices.IndexFunc(t.Accesses, func(a dag.Access) bool { return l.ofDevices[a.Buffer] != nil })
	if own < 0 || shared == len(l.sharing(t.Labels.Layer).Devices) {
		l.add(l.onDevice(t, device))
		return
	}
	of := l.ofDevices[t.Accesses[own].Buffer]
	for k := max(device, 0); k < len(of); k += shared {
		if device < 0 && k > 0 && of[k] == of[k-1] || own > 0 && !l.filled[l.storage(of[k])] {
			continue
		}
		one := t
		one.Accesses = slices.Clone(t.Accesses)
		if one = l.onDevice(one, k); k != max(device, 0) {
			one.Name = deviceName(t.Name, k)
		}
		if own == 0 {
			l.add(one)
			continue
		}
		one = l.completed(one)
		to := &one.Accesses[0]
		to.Mode = dag.Reduce
		one.MovedBytes += l.regionBytes(to.Region) // for a sum, as [dag.Expand] takes it
		l.b.Task(one)
	}
}

func (l *lowerer) regionBytes(r dag.Region) int64 {
	b := l.b.BufferAt(r.Buffer)
	if r.Box == nil {
		return b.Bytes()
	}
	return r.Box.Elems() * b.Type.SizeBytes()
}

// cutShares limits the tiles of layers to the shares of devices.
func (l *lowerer) cutShares() {
	lowering := &l.opt.Lowering
	all := map[string]dag.LayerLowering{}
	samples := min(l.opt.Batch, dag.CeilDiv(l.opt.FullBatch, max(lowering.MicroBatches, 1)))
	for i := range l.m.Stages {
		s := &l.m.Stages[i]
		all[s.Name] = lowering.Of(s.Name)
		of := l.sharing(s.Name)
		if of == nil {
			continue
		}
		ll, in, out := all[s.Name], extents(s.In[0]), extents(s.Out)
		replicas, each := of.Grid()
		limit := func(c *dag.Cut, d dag.Dimension, extent, parts int) {
			*c.Of(d) = min(clip(*c.Of(d), extent), dag.CeilDiv(extent, parts))
		}
		proportions := equal(replicas)
		if ll.InputGradient == (dag.Cut{}) {
			ll.InputGradient = mirrored(ll.Forward, s.Out, s.In[0])
		}
		back := &ll.InputGradient
		switch along := l.sharedAlong(s.Name); {
		case along == dag.AlongInputs:
			limit(&ll.Forward, along, in[0], each)
			limit(&ll.WeightGradient, along, in[0], each)
			limit(back, along, in[0], each)
		case along == dag.AlongOutputs:
			limit(&ll.Forward, dag.AlongOutputs, out[0], each)
			limit(&ll.WeightGradient, dag.AlongOutputs, out[0], each)
			if s.Traits.Weight {
				limit(back, dag.AlongOutputs, out[0], each)
			} else {
				limit(back, dag.AlongInputs, in[0], each)
			}
		case along == dag.AlongRows && out[1] > 1:
			limit(&ll.Forward, dag.AlongRows, out[1], each)
			limit(&ll.WeightGradient, dag.AlongRows, out[1], each)
			limit(back, dag.AlongRows, in[1], each)
		default:
			proportions = of.Proportions(len(of.Devices))
		}
		if most, parts := slices.Max(proportions), sumOf(proportions); len(proportions) > 1 {
			for _, c := range []*dag.Cut{&ll.Forward, &ll.WeightGradient, back} {
				c.Samples = min(clip(c.Samples, samples), dag.CeilDiv(samples*most, parts))
			}
		}
		all[s.Name] = ll
	}
	lowering.Layers = all
}
