package layers

import (
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// Embedding gives each token its row of a table: a sample of T tokens becomes T×Width.
type Embedding struct {
	Tokens int // from 0 on
	Width  int
	// The table begins with a normal distribution of this deviation. Zero means 1, as PyTorch has it.
	Deviation float64
}

// Kind implements [nn.Layer].
func (Embedding) Kind() string { return "embedding" }

// Prefix is how automatic names begin.
func (Embedding) Prefix() string { return "embed" }

// Vocabulary is the number of tokens that the layer takes.
func (e Embedding) Vocabulary() int { return e.Tokens }

// Share implements [nn.Sharer]. A device has some tokens.
func (e Embedding) Share(n int) (nn.Layer, error) {
	tokens, err := share("tokens", e.Tokens, n)
	e.Tokens = tokens
	return e, err
}

// Output implements [nn.Layer].
func (e Embedding) Output(in [][]int) ([]int, error) {
	shape, err := one(in)
	switch {
	case err != nil:
		return nil, err
	case len(shape) != 1:
		return nil, fmt.Errorf("an embedding needs a vector of tokens")
	case e.Tokens < 1 || e.Width < 1:
		return nil, fmt.Errorf("%d tokens of width %d; want at least 1", e.Tokens, e.Width)
	}
	return []int{shape[0], e.Width}, nil
}

// Params implements [nn.Learner].
func (e Embedding) Params([][]int) []nn.Parameter {
	deviation := e.Deviation
	if deviation == 0 {
		deviation = 1
	}
	return []nn.Parameter{{Name: "weight", Shape: []int{e.Tokens, e.Width}, Deviation: deviation, Axes: []dag.Dimension{nn.NoAxis, dag.AlongOutputs}}}
}

// Flops implements [nn.Layer].
func (Embedding) Flops([][]int, []int) float64 { return 0 }

// Forward implements [nn.Layer].
func (Embedding) Forward(n *nn.Node) { n.Tiles("embedding", nil, n.Output(), n.Param(0), n.Input(0)) }

// Backward implements [nn.Layer].
func (Embedding) Backward(n *nn.Node) {
	n.Tiles("embedding.dw", nil, n.ParamGrad(0), n.OutputGrad(), n.Input(0))
}
