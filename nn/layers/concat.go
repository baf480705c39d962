package layers

import (
	"fmt"
	"slices"

	"dahl/nn"
)

// Concat puts the channels, or the features, of its inputs behind each other. It is no task where
// the layers before it write into the concatenation: see doc.go.
type Concat struct{}

// Kind implements [nn.Layer].
func (Concat) Kind() string { return "concat" }

// Traits says where values and gradients are.
func (Concat) Traits() nn.Traits { return nn.Traits{Passes: true, Joins: true} }

// Output implements [nn.Layer].
func (Concat) Output(in [][]int) ([]int, error) {
	if len(in) < 2 {
		return nil, fmt.Errorf("%d inputs; want two or more, as in input = [\"conv1\", \"conv2\"]", len(in))
	}
	out, channels := slices.Clone(in[0]), 0
	if len(out) == 2 { // a sequence
		channels = 1
	}
	for _, other := range in[1:] {
		if len(other) != len(out) || !slices.Equal(slices.Delete(slices.Clone(other), channels, channels+1), slices.Delete(slices.Clone(in[0]), channels, channels+1)) {
			return nil, fmt.Errorf("inputs differ in more than their number of channels")
		}
		out[channels] += other[channels]
	}
	return out, nil
}

// Flops implements [nn.Layer].
func (Concat) Flops([][]int, []int) float64 { return 0 }

// Forward implements [nn.Layer].
func (Concat) Forward(n *nn.Node) { n.Join() }

// Backward implements [nn.Layer].
func (Concat) Backward(*nn.Node) {}
