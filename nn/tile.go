package nn

import "dahl/dag"

const none = dag.None

// tensor is the values between two layers, with the batch in front, and their gradient. The
// gradient is dag.None if nothing needs it.
type tensor struct {
	name        string // of the values
	sample      []int  // shape of one sample: C×H×W, T×C of a sequence, or any other that lies as it is, its first extent counted as channels
	kind        dag.DType
	features    bool  // an image has its channels first, as a vector of features does; else last
	shape       []int // of a buffer of its own
	value, grad dag.BufferID

	valueIn, gradIn part

	// rectified: the values come out of a fused ReLU, and grad is the gradient before the ReLU. A
	// task that writes grad puts 0 where the value is 0.
	rectified bool
	// stopped: likewise, but the layer itself puts the zeros there, when all readers have written grad.
	stopped bool
	// normal: how to normalise the values. Their reader does so, with a ReLU. Nil means that they are read
	// as they are.
	normal *Operand
	// function: the values come out of this fused function, and grad is the gradient before it. The task that writes grad multiplies by the slope, at the
	// values before if these are not nil.
	function *Stage
	before   *tensor
	// turned: the features lie as H×W×C of this C×H×W. Nil means as usual.
	turned []int
}

// part says which channels of a larger buffer a tensor is: as many as it has, from the first on.
// The zero value stands for a buffer of its own.
type part struct {
	shape []int // of the buffer
	first int
}

// from is the part that begins at a channel of x, if p is the part of x.
func (p part) from(x *tensor, channel int) part {
	if p.shape == nil {
		p.shape = x.shape
	}
	return part{p.shape, p.first + channel}
}

// tensor is a batch of samples without buffers yet.
func (l *lowerer) tensor(name string, sample []int) tensor {
	return tensor{name: name, sample: sample, kind: l.opt.Type, shape: batchShape(l.size(), sample), value: none, grad: none}
}

// features is a batch of samples in the order of features, without buffers yet.
func (l *lowerer) features(name string, sample []int) tensor {
	x := l.tensor(name, sample)
	x.features, x.shape = true, withBatch(l.size(), sample)
	return x
}

// channelsLast reports whether the samples are images with their channels last.
func (x *tensor) channelsLast() bool { return len(x.sample) == 3 && !x.features }

// channels is the number of channels or features.
func (x *tensor) channels() int { return Channels(x.sample) }

// at is where some samples of the values are.
func (x *tensor) at(samples dag.Range) (dag.BufferID, dag.Box) {
	return x.value, x.boxIn(x.valueIn, samples)
}

// gradAt is where some samples of the gradient are.
func (x *tensor) gradAt(samples dag.Range) (dag.BufferID, dag.Box) {
	return x.grad, x.boxIn(x.gradIn, samples)
}

func (x *tensor) boxIn(p part, samples dag.Range) dag.Box {
	p = p.from(x, 0)
	channels := dag.Range{Lo: p.first, Hi: p.first + x.channels()}
	switch {
	case x.channelsLast():
		return boxOf(p.shape, samples, dag.Range{Lo: 0, Hi: p.shape[1]}, dag.Range{Lo: 0, Hi: p.shape[2]}, channels)
	case len(x.sample) == 2:
		return boxOf(p.shape, samples, dag.Range{Lo: 0, Hi: p.shape[1]}, channels)
	}
	return boxOf(p.shape, samples, channels)
}

// all is the samples of the tensor.
func (x *tensor) all() dag.Range { return dag.Range{Hi: x.shape[0]} }

// axes maps each dimension of the tensor to a dimension of a layer; channels are its inputs or its outputs.
func (x *tensor) axes(channels dag.Dimension) []dag.Dimension {
	switch {
	case x.channelsLast():
		return []dag.Dimension{dag.AlongSamples, dag.AlongRows, dag.AlongColumns, channels}
	case len(x.sample) == 2:
		return []dag.Dimension{dag.AlongSamples, dag.AlongRows, channels}
	}
	return []dag.Dimension{dag.AlongSamples, channels}
}

// values and gradient are all of the tensor and of its gradient, as operands of a layer.
func (x *tensor) values(channels dag.Dimension) Operand {
	return Operand{Region: regionOf(x.at(x.all())), axes: x.axes(channels)}
}

func (x *tensor) gradient(channels dag.Dimension) Operand {
	return Operand{Region: regionOf(x.gradAt(x.all())), axes: x.axes(channels)}
}

// boxOf restricts the first dimensions of a shape; nil if nothing is restricted.
func boxOf(shape []int, first ...dag.Range) dag.Box {
	box := dag.Whole(shape)
	copy(box, first)
	if box.IsWhole(shape) {
		return nil
	}
	return box
}

// boxAt restricts one dimension of a shape; nil if that restricts nothing.
func boxAt(shape []int, dimension int, r dag.Range) dag.Box {
	box := dag.Whole(shape)
	box[dimension] = r
	return boxOf(shape, box...)
}

// eachRange visits [0, extent) in ranges of a size; the last one may be shorter.
func eachRange(extent, size int, visit func(dag.Range)) {
	for lo := 0; lo < extent; lo += size {
		visit(dag.Range{Lo: lo, Hi: min(lo+size, extent)})
	}
}

// clip turns 0 into the whole extent and limits a tile to it.
func clip(size, extent int) int {
	if size == 0 || size > extent {
		return extent
	}
	return size
}

func writes(b dag.BufferID, box dag.Box) dag.Access  { return access(b, box, dag.Write) }
func reads(b dag.BufferID, box dag.Box) dag.Access   { return access(b, box, dag.Read) }
func updates(b dag.BufferID, box dag.Box) dag.Access { return access(b, box, dag.ReadWrite) }

func access(b dag.BufferID, box dag.Box, mode dag.Mode) dag.Access {
	return dag.Access{Region: regionOf(b, box), Mode: mode}
}

func regionOf(b dag.BufferID, box dag.Box) dag.Region { return dag.Region{Buffer: b, Box: box} }

// whole is a buffer as an operand of a layer.
func whole(b dag.BufferID, axes ...dag.Dimension) Operand {
	return Operand{Region: dag.Region{Buffer: b}, axes: axes}
}
