package layers

import (
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// Mask has a number for each token: 0 where it is Token, which fills short samples up, else 1. It is the second input of an [Attention], in which
// no position then sees what is 0.
type Mask struct{ Token int }

// Segments tells the two parts of a sample: 1 behind the first Token and up to the second one, else 0. Padding behind both parts is 0, as in
// Hugging Face's token_type_ids.
type Segments struct{ Token int }

// Kind implements [nn.Layer].
func (Mask) Kind() string { return "mask" }

// Kind implements [nn.Layer].
func (Segments) Kind() string { return "segments" }

// Traits says that the output is whole numbers, and that tasks have all positions of a sample.
func (Mask) Traits() nn.Traits { return nn.Traits{Integers: true, WholeSample: true} }

// Traits says the same.
func (Segments) Traits() nn.Traits { return nn.Traits{Integers: true, WholeSample: true} }

// Output implements [nn.Layer].
func (m Mask) Output(in [][]int) ([]int, error) { return marked(in, m.Token) }

// Output implements [nn.Layer].
func (s Segments) Output(in [][]int) ([]int, error) { return marked(in, s.Token) }

func marked(in [][]int, token int) ([]int, error) {
	shape, err := one(in)
	switch {
	case err != nil:
		return nil, err
	case len(shape) != 1:
		return nil, fmt.Errorf("tokens are a vector; read the model's input")
	case token < 0:
		return nil, fmt.Errorf("token %d; want one from 0 on", token)
	}
	return shape, nil
}

// Flops implements [nn.Layer].
func (Mask) Flops([][]int, []int) float64 { return 0 }

// Flops implements [nn.Layer].
func (Segments) Flops([][]int, []int) float64 { return 0 }

// Forward implements [nn.Layer].
func (m Mask) Forward(n *nn.Node) { mark(n, m.Token, false) }

// Forward implements [nn.Layer].
func (s Segments) Forward(n *nn.Node) { mark(n, s.Token, true) }

func mark(n *nn.Node, token int, behind bool) {
	n.Tiles("marks", dag.Params{{Name: "token", Value: float64(token)}, nn.Flag("behind", behind)}, n.Output(), n.Input(0))
}

// Backward implements [nn.Layer]: tokens have no gradient.
func (Mask) Backward(*nn.Node) {}

// Backward implements [nn.Layer].
func (Segments) Backward(*nn.Node) {}
