package layers

import (
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// Select takes one position of a sequence: T×C becomes 1×C, which a [Flatten] makes a vector.
type Select struct {
	Position int // from 0 on
}

// Kind implements [nn.Layer].
func (Select) Kind() string { return "select" }

// Output implements [nn.Layer].
func (s Select) Output(in [][]int) ([]int, error) {
	shape, err := oneSequence(in, "selections of a position")
	switch {
	case err != nil:
		return nil, err
	case s.Position < 0 || s.Position >= shape[0]:
		return nil, fmt.Errorf("position %d of a sequence of %d; want 0 to %d", s.Position, shape[0], shape[0]-1)
	}
	return []int{1, shape[1]}, nil
}

// Flops implements [nn.Layer].
func (Select) Flops([][]int, []int) float64 { return 0 }

// Forward implements [nn.Layer].
func (s Select) Forward(n *nn.Node) {
	n.Tiles("copy", nil, n.Output(), n.Positions(n.Input(0), dag.Range{Lo: s.Position, Hi: s.Position + 1}))
}

// Backward implements [nn.Layer].
func (s Select) Backward(n *nn.Node) {
	n.Tiles("shift", dag.Params{{Name: "before", Value: float64(s.Position)}}, n.InputGrad(0), n.OutputGrad())
}
