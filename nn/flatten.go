package nn

import (
	"fmt"
	"slices"

	"dahl/kernels/calls"
	"dahl/naming"
)

// Flatten turns C×H×W into a vector. It is a view of its input, and the gradient of its output is
// a view of the gradient of its input: no task, no copy. Channels that come last are brought into
// PyTorch's order of features. The cheaper copy does that: of the activations and their
// gradients, or, if a dense layer follows that has fewer outputs than the batch has samples, of
// its weights and theirs.
type Flatten struct{}

// Kind implements [Layer].
func (Flatten) Kind() string { return "flatten" }

// Traits says that the layer has no task.
func (Flatten) Traits() Traits { return Traits{View: true} }

// Output implements [Layer].
func (Flatten) Output(in [][]int) ([]int, error) {
	shape, err := one(in)
	return []int{elems(shape)}, err
}

// Flops implements [Layer].
func (Flatten) Flops([][]int, []int) float64 { return 0 }

// Forward implements [Layer].
func (Flatten) Forward(n *Node) { n.View() }

// Backward implements [Layer]: the gradients are views of each other.
func (Flatten) Backward(*Node) {}

// View makes the output a view of the input, and the gradient of the output one of that of the input. Elements are in
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
		return !s.Traits.Takes.Has(calls.Mapped) || s.Out[0] >= outputs
	})
}
