package layers

import (
	"fmt"
	"slices"

	"dahl/nn"
)

// Multiply is the product of two inputs of one shape, element by element. Behind a SiLU of one of two dense layers it
// makes a SwiGLU (Shazeer, "GLU variants improve transformer", 2020, arXiv:2002.05202).
type Multiply struct{}

// Kind implements [nn.Layer].
func (Multiply) Kind() string { return "multiply" }

// Output implements [nn.Layer].
func (Multiply) Output(in [][]int) ([]int, error) {
	if len(in) != 2 {
		return nil, fmt.Errorf("%d inputs; want two, as in input = [\"silu1\", \"fc2\"]", len(in))
	}
	if !slices.Equal(in[0], in[1]) {
		return nil, fmt.Errorf("the inputs of a product have one shape")
	}
	return in[0], nil
}

// Flops implements [nn.Layer].
func (Multiply) Flops(_ [][]int, out []int) float64 { return float64(nn.Elems(out)) }

// Forward implements [nn.Layer].
func (Multiply) Forward(n *nn.Node) { n.Tiles("multiply", nil, n.Output(), n.Input(0), n.Input(1)) }

// Backward implements [nn.Layer].
func (Multiply) Backward(n *nn.Node) {
	for i := range 2 {
		if n.Needs(i) {
			n.Tiles("multiply", nil, n.InputGrad(i), n.OutputGrad(), n.Input(1-i))
		}
	}
}
