package nn

import "dahl/dag"

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
	return l.b.Buffer(dag.Buffer{Name: name, Shape: x.shape, Type: l.opt.Type, Role: role, Layout: x.layout})
}

// convert gives a layer its input in another layout. Tasks of the layer fill this copy in its
// tiles of samples. convertBack copies the gradient back.
func (l *lowerer) convert(n *node, layout string) {
	from := n.in
	n.before = &from
	n.in = l.tensor(from.sample, layout)
	n.in.rectified = from.rectified
	suffix := "." + n.in.order()
	n.in.value = l.image(l.b.BufferAt(from.value).Name+suffix, dag.Activation, &n.in)
	if from.grad != none {
		n.in.grad = l.image(l.b.BufferAt(from.grad).Name+suffix, dag.Gradient, &n.in)
	}
	l.copies(n, phaseForward, n.in.value, from.value, &n.in, &from)
}

// convertBack fills the gradient before a conversion from the gradient after it.
func (l *lowerer) convertBack(n *node) {
	if n.before != nil && n.before.grad != none {
		l.copies(n, phaseBackward, n.before.grad, n.in.grad, n.before, &n.in)
	}
}

// copies adds the tasks that copy a batch from the layout of x to that of y.
func (l *lowerer) copies(n *node, phase string, to, from dag.BufferID, y, x *tensor) {
	eachRange(y.shape[0], n.tiles.SampleTile, func(r dag.Range) {
		l.rangeTask(n, phase, y.order(), r, writes(to, y.samples(r)), reads(from, x.samples(r)))
	})
}
