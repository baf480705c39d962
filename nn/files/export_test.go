package files

import (
	"dahl/nn"
	"dahl/nn/onnx"
)

var ModelOfONNX = modelOfONNX

// RefusesONNX is the error of a layer that no ONNX operator is written for.
func RefusesONNX(l nn.Layer) error {
	w := &onnxWriter{}
	w.operator(&nn.Stage{Layer: l}, &onnx.Node{})
	return w.err
}
