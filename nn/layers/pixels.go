package layers

import (
	"fmt"

	"dahl/nn"
)

// Pixels makes the pixels of an image the positions of a sequence, row by row: C×H×W becomes (H·W)×C. Positions of a sequence become an image of
// one column: T×C becomes C×T×1. Both are a view of what lies in memory, channels last: no task, no copy.
type Pixels struct{}

// Kind implements [nn.Layer].
func (Pixels) Kind() string { return "pixels" }

// Traits says that the layer has no task.
func (Pixels) Traits() nn.Traits { return nn.Traits{View: true} }

// Output implements [nn.Layer].
func (Pixels) Output(in [][]int) ([]int, error) {
	shape, err := one(in)
	switch {
	case err != nil:
		return nil, err
	case len(shape) == 3:
		return []int{shape[1] * shape[2], shape[0]}, nil
	case len(shape) == 2:
		return []int{shape[1], shape[0], 1}, nil
	}
	return nil, fmt.Errorf("pixels need an image, C×H×W, or a sequence, T×C")
}

// Flops implements [nn.Layer].
func (Pixels) Flops([][]int, []int) float64 { return 0 }

// Forward implements [nn.Layer].
func (Pixels) Forward(n *nn.Node) { n.ViewPixels() }

// Backward implements [nn.Layer]: the gradients are views of each other.
func (Pixels) Backward(*nn.Node) {}
