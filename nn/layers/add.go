package layers

import (
	"fmt"
	"slices"

	"dahl/nn"
)

// Add is the sum of two or more inputs of one shape, in their order. The gradient of the sum is the gradient of each
// input, without a task.
type Add struct{}

// Kind implements [nn.Layer].
func (Add) Kind() string { return "add" }

// Traits says where gradients are.
func (Add) Traits() nn.Traits { return nn.Traits{Passes: true} }

// Output implements [nn.Layer].
func (Add) Output(in [][]int) ([]int, error) {
	if len(in) < 2 {
		return nil, fmt.Errorf("%d inputs; want two or more, as in input = [\"conv1\", \"conv2\"]", len(in))
	}
	for _, other := range in[1:] {
		if !slices.Equal(other, in[0]) {
			return nil, fmt.Errorf("the inputs of a sum have one shape")
		}
	}
	return in[0], nil
}

// Flops implements [nn.Layer].
func (Add) Flops(in [][]int, out []int) float64 { return float64((len(in) - 1) * nn.Elems(out)) }

// Forward implements [nn.Layer].
func (Add) Forward(n *nn.Node) {
	if n.LeavesSum() {
		return
	}
	n.Tiles("sum", nil, n.Output(), n.Input(0), n.Input(1))
	for i := range n.Inputs[2:] {
		n.Tiles("add", nil, n.Output(), n.Input(i+2))
	}
}

// Backward implements [nn.Layer].
func (Add) Backward(*nn.Node) {}
