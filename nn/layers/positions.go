package layers

import (
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// Positions adds a learned vector to each position of a sequence. The gradient of its input is the gradient of its output, without a task.
type Positions struct {
	// The vectors begin with a normal distribution of this deviation. Zero means 1.
	Deviation float64
}

// Kind implements [nn.Layer].
func (Positions) Kind() string { return "positions" }

// Traits says where the gradient is.
func (Positions) Traits() nn.Traits { return nn.Traits{Passes: true} }

// Output implements [nn.Layer].
func (Positions) Output(in [][]int) ([]int, error) { return oneSequence(in, "learned positions") }

// oneSequence is the shape of the only input of a layer that needs a sequence.
func oneSequence(in [][]int, layer string) ([]int, error) {
	shape, err := one(in)
	if err == nil && len(shape) != 2 {
		err = fmt.Errorf("%s need a sequence, T×C", layer)
	}
	return shape, err
}

// Params implements [nn.Learner].
func (p Positions) Params(in [][]int) []nn.Parameter {
	deviation := p.Deviation
	if deviation == 0 {
		deviation = 1
	}
	return []nn.Parameter{{Name: "weight", Shape: in[0], Deviation: deviation, Axes: []dag.Dimension{dag.AlongRows, dag.AlongOutputs}}}
}

// Flops implements [nn.Layer].
func (Positions) Flops(_ [][]int, out []int) float64 { return float64(nn.Elems(out)) }

// Forward implements [nn.Layer].
func (Positions) Forward(n *nn.Node) { n.Tiles("positions", nil, n.Output(), n.Input(0), n.Param(0)) }

// Backward implements [nn.Layer].
func (Positions) Backward(n *nn.Node) { n.Tiles("positions.dw", nil, n.ParamGrad(0), n.OutputGrad()) }
