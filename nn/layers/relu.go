package layers

import (
	"dahl/dag"
	"dahl/nn"
)

// ReLU is max(x, 0). A byte per element remembers where x > 0; the gradient at
// exactly 0 is 0.
type ReLU struct{ Elementwise }

// Kind implements [nn.Layer].
func (ReLU) Kind() string { return "relu" }

// Traits says that its output says where no gradient passes.
func (ReLU) Traits() nn.Traits { return nn.Traits{Rectifies: true} }

// Forward implements [nn.Layer].
func (ReLU) Forward(n *nn.Node) {
	n.Tiles("relu", nil, n.Output(), n.Saved("mask", dag.Uint8), n.Input(0))
}

// Backward implements [nn.Layer].
func (ReLU) Backward(n *nn.Node) {
	n.Tiles("relu.dx", nil, n.InputGrad(0), n.OutputGrad(), n.Saved("mask", dag.Uint8))
}
