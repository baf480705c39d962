package layers

import (
	"dahl/dag"
	"dahl/nn"
)

// ClassToken puts a learned vector before the first position of a sequence: T×C becomes (T+1)×C. A [Select] behind the blocks of a transformer takes
// this position for a class (Dosovitskiy et al., "An image is worth 16×16 words", 2020, arXiv:2010.11929).
type ClassToken struct {
	// The vector begins with a normal distribution of this deviation. Zero means 0, as PyTorch's vision transformers have it.
	Deviation float64
}

// Kind implements [nn.Layer].
func (ClassToken) Kind() string { return "class_token" }

// Output implements [nn.Layer].
func (ClassToken) Output(in [][]int) ([]int, error) {
	shape, err := oneSequence(in, "class tokens")
	if err != nil {
		return nil, err
	}
	return []int{shape[0] + 1, shape[1]}, nil
}

// Params implements [nn.Learner].
func (c ClassToken) Params(in [][]int) []nn.Parameter {
	return []nn.Parameter{{Name: "weight", Shape: []int{1, in[0][1]}, Deviation: c.Deviation, Axes: []dag.Dimension{nn.NoAxis, dag.AlongOutputs}}}
}

// Flops implements [nn.Layer].
func (ClassToken) Flops([][]int, []int) float64 { return 0 }

// Forward implements [nn.Layer].
func (ClassToken) Forward(n *nn.Node) {
	n.Tiles("shift", dag.Params{{Name: "before", Value: 1}}, n.Output(), n.Input(0), n.Param(0))
}

// Backward implements [nn.Layer].
func (ClassToken) Backward(n *nn.Node) {
	dy := n.OutputGrad()
	n.Tiles("positions.dw", nil, n.ParamGrad(0), n.Positions(dy, dag.Range{Hi: 1}))
	if n.Needs(0) {
		n.Tiles("copy", nil, n.InputGrad(0), n.Positions(dy, dag.Range{Lo: 1, Hi: n.Out[0]}))
	}
}
