package nn

import (
	"strconv"

	"dahl/dag"
)

// Layouts of weights inside a step, beside those of images.
const (
	hwio = "hwio" // (k k c f), as convolutions over channels-last images read them
	hwoi = "hwoi" // (k k f c), turned by half a turn, as their input gradients do
)

// batchShape is the shape of a batch in a layout.
func batchShape(batch int, sample []int, layout string) []int {
	if layout == dag.NHWC {
		return []int{batch, sample[1], sample[2], sample[0]}
	}
	return withBatch(batch, sample)
}

// sameInBothLayouts reports whether C×H×W and H×W×C are the same order of elements.
func sameInBothLayouts(sample []int) bool { return sample[0] == 1 || sample[1]*sample[2] == 1 }

// order is the name of the layout, and of the operation that copies to it.
func (x *tensor) order() string {
	if x.layout == "" {
		return dag.NCHW
	}
	return x.layout
}

// image adds a buffer of a batch in its layout.
func (l *lowerer) image(name string, role dag.Role, x *tensor) dag.BufferID {
	return l.b.Buffer(dag.Buffer{Name: name + l.now.suffix, Shape: x.shape, Type: l.opt.Type, Role: role, Layout: x.layout})
}

// convert gives a layer an input in another layout. Tasks of the layer fill this copy in its
// tiles of samples. convertBack copies the gradient back.
func (l *lowerer) convert(n *Node, input int, layout string) {
	from, x := n.ins[input], &n.ins[input]
	n.before[input] = &from
	*x = l.tensor("", from.sample, layout)
	x.name = l.newName(from.name+"."+x.order(), n)
	x.rectified = from.rectified // what is stopped has a gradient of its own in this layout
	x.value = l.image(x.name, dag.Activation, x)
	if from.grad != none && !n.passes(input) {
		x.grad = l.image(l.nameOf(from.grad)+"."+x.order(), dag.Gradient, x)
	}
	l.copies(n, phaseForward, input, x, &from, (*tensor).at)
}

// convertBack fills the gradients before conversions from those after them.
func (l *lowerer) convertBack(n *Node) {
	for i, before := range n.before {
		if before != nil && before.grad != none {
			l.copies(n, phaseBackward, i, before, &n.ins[i], (*tensor).gradAt)
		}
	}
}

// copies adds the tasks that copy an input's values or gradient from the layout of x to that of y.
func (l *lowerer) copies(n *Node, phase string, input int, y, x *tensor, at func(*tensor, tile) (dag.BufferID, dag.Box)) {
	if input > 0 {
		phase += "." + strconv.Itoa(input+1)
	}
	eachRange(y.shape[0], n.tiles.Forward.Samples, func(r dag.Range) {
		l.rangeTask(n, phase, y.order(), l.inBatch(r), writes(at(y, y.samples(r))), reads(at(x, x.samples(r))))
	})
}
