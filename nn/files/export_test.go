package files

import (
	"dahl/nn"
	"dahl/nn/onnx"
)

var ModelOfONNX = modelOfONNX

// ComputeONNX computes the operators of a graph on constants, after others that made some numbers.
func ComputeONNX(g *onnx.Graph, before int) error {
	r := newONNXReader(g)
	r.computed = before
	for i := range g.Nodes {
		if _, err := r.withoutLayer(&g.Nodes[i]); err != nil {
			return atOperator(&g.Nodes[i], err)
		}
	}
	return nil
}

// RefusesONNX is the error of a layer that no ONNX operator is written for.
func RefusesONNX(l nn.Layer) error {
	w := &onnxWriter{}
	w.operator(&nn.Stage{Layer: l}, &onnx.Node{})
	return w.err
}
