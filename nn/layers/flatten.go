package layers

import (
	"dahl/nn"
)

// Flatten turns C×H×W into a vector. It is a view of its input, and the gradient of its output is
// a view of the gradient of its input: no task, no copy. Channels that come last are brought into
// PyTorch's order of features. The cheaper copy does that: of the activations and their
// gradients, or, if a dense layer follows that has fewer outputs than the batch has samples, of
// its weights and theirs.
type Flatten struct{}

// Kind implements [nn.Layer].
func (Flatten) Kind() string { return "flatten" }

// Traits says that the layer has no task.
func (Flatten) Traits() nn.Traits { return nn.Traits{View: true} }

// Output implements [nn.Layer].
func (Flatten) Output(in [][]int) ([]int, error) {
	shape, err := one(in)
	return []int{nn.Elems(shape)}, err
}

// Flops implements [nn.Layer].
func (Flatten) Flops([][]int, []int) float64 { return 0 }

// Forward implements [nn.Layer].
func (Flatten) Forward(n *nn.Node) { n.View() }

// Backward implements [nn.Layer]: the gradients are views of each other.
func (Flatten) Backward(*nn.Node) {}
