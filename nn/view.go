package nn

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/naming"
)

// View makes the output a view of the input, and the gradient of the output a view of the gradient of the input. Elements are in
// PyTorch's order.
func (n *Node) View() {
	l := n.l
	switch {
	case n.out.channelsLast() && !sameInBothLayouts(n.out.sample) && !slices.Equal(n.in.shape, n.out.shape):
		n.Fail(fmt.Errorf("a view of %s as %s, whose channels come last", naming.ShapeText(n.in.sample), naming.ShapeText(n.out.sample)))
	case slices.Equal(n.in.shape, n.out.shape):
		n.out.turned = n.in.turned
	case n.in.channelsLast() && !sameInBothLayouts(n.in.sample):
		if l.onlyDenseBelow(n.readers, l.opt.Batch) {
			n.out.turned = n.in.sample
		} else {
			l.toFeatures(n)
		}
	}
	n.viewOfInput()
}

// ViewPixels is [Node.View] of an image as a sequence of its pixels, or of a sequence as an image, whose channels come last in memory.
func (n *Node) ViewPixels() {
	if n.in.features {
		n.Fail(errors.New("the pixels of the model's input as a sequence; put a convolution between"))
	}
	n.viewOfInput()
}

func (n *Node) viewOfInput() {
	l := n.l
	n.out.rectified = n.in.rectified
	n.out.value = l.view(n.out.name, n.in.value, n.out.shape)
	if n.Needs(0) {
		name := "grad." + n.out.name
		if n.in.rectified || n.in.stopped { // the gradient before the ReLU
			name = l.nameOf(n.in.grad) + ".flat"
		}
		n.out.grad = l.view(name, n.in.grad, n.out.shape)
	}
}

// onlyDenseBelow reports whether the readers are layers with fewer outputs whose operations take a map for features.
func (l *lowerer) onlyDenseBelow(readers []reader, outputs int) bool {
	return len(readers) > 0 && !slices.ContainsFunc(readers, func(r reader) bool {
		s := &l.m.Stages[r.stage]
		return !s.Traits.Takes.Has(calls.Mapped) || Channels(s.Out) >= outputs
	})
}

// Join copies the inputs of a layer with the trait Joins behind each other, those that are not in their place.
func (n *Node) Join() {
	for i := range n.ins {
		x, place := &n.ins[i], n.ins[i]
		place.value, place.valueIn = n.out.value, n.out.valueIn.from(&n.out, n.offset(i))
		if x.value == place.value && x.valueIn.first == place.valueIn.first {
			continue
		}
		n.l.tiles(n, phaseForward+"."+strconv.Itoa(i+1), "copy", nil, passing, place.values(dag.AlongOutputs), x.values(dag.AlongInputs))
	}
}
