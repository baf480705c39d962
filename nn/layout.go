package nn

import "dahl/dag"

// Layouts inside a step. The operations that copy to them have the same names.
const (
	nhwc = "nhwc" // of images: channels last
	nchw = "nchw" // of what a flatten makes of them: as data sets and parameters have it
)

// batchShape is the shape of a batch of samples: images have their channels last.
func batchShape(batch int, sample []int) []int {
	if len(sample) == 3 {
		return []int{batch, sample[1], sample[2], sample[0]}
	}
	return withBatch(batch, sample)
}

// sameInBothLayouts reports whether C×H×W and H×W×C are the same order of elements.
func sameInBothLayouts(sample []int) bool { return sample[0] == 1 || sample[1]*sample[2] == 1 }

// image adds a buffer of a batch.
func (l *lowerer) image(name string, role dag.Role, x *tensor) dag.BufferID {
	layout := ""
	if x.channelsLast() {
		layout = nhwc
	}
	return l.b.Buffer(dag.Buffer{Name: name + l.now.suffix, Shape: x.shape, Type: x.kind, Role: role, Layout: layout})
}

// toFeatures gives a flatten its input in the order of features. Tasks of the layer fill this copy in its tiles of samples.
// fromFeatures copies the gradient back.
func (l *lowerer) toFeatures(n *Node) {
	from := *n.in
	n.before = &from
	*n.in = l.features("", from.sample)
	n.in.name = l.newName(from.name+"."+nchw, n)
	n.in.rectified = from.rectified // what is stopped has a gradient of its own in this layout
	n.in.value = l.image(n.in.name, dag.Activation, n.in)
	if from.grad != none {
		n.in.grad = l.image(l.nameOf(from.grad)+"."+nchw, dag.Gradient, n.in)
	}
	l.copies(n, phaseForward, nchw, n.in, &from, (*tensor).at)
}

// fromFeatures fills the gradient of a flatten's input from the gradient of the copy.
func (l *lowerer) fromFeatures(n *Node) {
	l.copies(n, phaseBackward, nhwc, n.before, n.in, (*tensor).gradAt)
}

// copies adds the tasks that copy values or gradients of x to the layout of y.
func (l *lowerer) copies(n *Node, phase, op string, y, x *tensor, at func(*tensor, dag.Range) (dag.BufferID, dag.Box)) {
	l.ranges(n, dag.AlongSamples, y.shape[0], dag.ForwardPass, func(r dag.Range) dag.Task {
		return rangeTask(n, phase, op, l.inBatch(r), writes(at(y, r)), reads(at(x, r)))
	})
}
