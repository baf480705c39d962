package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/kernels"
)

// A folded lowering ([dag.Fold]) has the tasks of one of several equal devices that share a network, as in M. Shoeybi et al., "Megatron-LM",
// arXiv:1909.08053, 2019. Layers with weights come in pairs: the first has some of its outputs, or of its heads, on each device, and the second one these as inputs.
// Its results are sums over the devices. Between pairs each device has some positions of all features (V. Korthikanti et al., "Reducing activation
// recomputation in large transformer models", MLSys 2023), or with [dag.Fold.Whole] all of them.
//
// So a network of T positions is another one on a device. It has the same layers with fewer outputs, tokens or heads, and layers that exchange values:
//
//	            before a pair    backward          behind a pair    backward
//	positions   gather           reduce_scatter    scatter          all_gather
//	whole       spread           all_reduce        reduce           nothing
//
// A gather is done again for the backward pass, so that nobody keeps what it made.
//
// All devices of a fold have equal tasks and meet in each exchange. So each of them ends when the first one does, and to simulate one is to simulate all.

// Sharer is a layer of which each of several devices may have a part of the outputs, tokens or heads.
type Sharer interface {
	// Share is the part that each of n devices has. It fails where there are no equal parts.
	Share(n int) (Layer, error)
}

// folds reports whether the graph has the tasks of one device among equal ones.
func (l *lowerer) folds() bool { return l.opt.Lowering.Fold.Tensor > 0 }

// folded is the network of one device of a fold, with its batch and the layers that it computes twice.
func (m *Model) folded(opt *LowerOptions) (*Model, error) {
	f := opt.Lowering.Fold
	if f.Tensor == 0 {
		return m, nil
	}
	parts := max(1, f.Data)
	if opt.Batch%parts > 0 || opt.FullBatch%parts > 0 {
		return m, fmt.Errorf("a batch of %d is no equal parts for %d devices", opt.Batch, parts)
	}
	opt.Batch, opt.FullBatch = opt.Batch/parts, opt.FullBatch/parts
	if f.Tensor == 1 {
		return m, nil
	}
	of := folding{model: m, fold: f, opt: opt}
	if err := of.layers(); err != nil {
		return m, err
	}
	device, err := New(m.Name, m.Input, of.list...)
	if err != nil {
		return m, err
	}
	device.Defaults = m.Defaults
	return device, nil
}

// folding makes the network of one device.
type folding struct {
	model *Model
	fold  dag.Fold
	opt   *LowerOptions
	list  []Layer
	made  []foldedValue // by layer of the network
}

// foldedValue is the output of a layer on a device.
type foldedValue struct {
	name     string // of the layer that has it
	columns  bool   // it is some of the features
	gathered bool   // it has been gathered for pairs, by a layer named so
}

const (
	gatherSuffix  = ".gather"
	scatterSuffix = ".scatter"
)

func (f *folding) layers() error {
	for i, layer := range f.model.layers() {
		if err := f.add(&f.model.Stages[i], layer.(Named)); err != nil {
			return fmt.Errorf("layer %q, shared by %d devices: %w", f.model.Stages[i].Name, f.fold.Tensor, err)
		}
	}
	return nil
}

// add adds a layer in the form that a device has, with the exchanges before and behind it.
func (f *folding) add(s *Stage, layer Named) (err error) {
	columns := 0
	for _, from := range s.Inputs {
		if from != ModelInput && f.made[from].columns {
			columns++
		}
	}
	sharer, shares := s.Layer.(Sharer)
	first := s.Traits.Weight && columns == 0 // of a pair
	if first {
		f.gather(s.Inputs[0])
	}
	layer.Inputs = slices.Clone(layer.Inputs)
	for i, from := range s.Inputs {
		if from != ModelInput {
			layer.Inputs[i] = f.made[from].name
			if first {
				layer.Inputs[i] += gatherSuffix
			}
		}
	}
	tokens := slices.Contains(s.Inputs, ModelInput)
	second := s.Traits.Weight && !first || tokens
	switch {
	case !shares && (s.Traits.Weight || tokens || s.Traits.Blocks != nil):
		return fmt.Errorf("a layer of kind %q is not shared", s.Layer.Kind())
	case columns > 0 && columns < len(s.Inputs):
		return fmt.Errorf("it reads all features of one layer, and some of another")
	case shares && (first || !second || tokens):
		if layer.Layer, err = sharer.Share(f.fold.Tensor); err != nil {
			return err
		}
	}
	f.list = append(f.list, layer)
	value := foldedValue{name: s.Name, columns: (columns > 0 || first) && !second}
	if second {
		value.name = s.Name + scatterSuffix
		f.exchange(value.name, s.Name, exchangeKind{"scatter", reduceScatter, allGather}, exchangeKind{"reduce", allReduce, ""})
	}
	f.made = append(f.made, value)
	return nil
}

// gather lets devices have all positions of a value, which is done once.
func (f *folding) gather(from int) {
	v := &f.made[from]
	if v.gathered {
		return
	}
	v.gathered = true
	name := v.name + gatherSuffix
	f.exchange(name, v.name, exchangeKind{"gather", allGather, reduceScatter}, exchangeKind{"spread", "", allReduce})
	if !f.fold.Whole {
		f.opt.Lowering.Recompute = append(slices.Clip(f.opt.Lowering.Recompute), name)
	}
}

func (f *folding) exchange(name, of string, positions, whole exchangeKind) {
	kind := positions
	if f.fold.Whole {
		kind = whole
	}
	f.list = append(f.list, Named{Name: name, Layer: exchange{exchangeKind: kind, devices: f.fold.Tensor}, Inputs: []string{of}})
}

// A device of a fold takes the tasks of a stage on a micro-batch one after the other in the order of the program, as a GPU does whose kernels all go to one stream. Otherwise
// gradients of weights would fill the gaps of a pipeline, as in P. Qi et al., "Zero bubble pipeline parallelism", ICLR 2024. Without a pipeline micro-batches follow each other, too.

// stream lets each task of a stage on a micro-batch follow the one before it, and so for the whole batch. Tasks of the host are left out.
func (l *lowerer) stream() error {
	if !l.folds() {
		return nil
	}
	type block struct{ stage, batch int32 }
	before := map[block]dag.TaskID{}
	return l.retask(func(t dag.TaskID, task *dag.Task) {
		if of := (block{task.Labels.Stage, task.Labels.MicroBatch}); task.Placement == nil || task.Placement.Device != kernels.HostKind {
			if len(l.opt.Lowering.Stages) == 1 {
				of.batch = min(of.batch, 1)
			}
			if last, known := before[of]; known {
				task.After = append(task.After[:len(task.After):len(task.After)], last)
			}
			before[of] = t
		}
	})
}
