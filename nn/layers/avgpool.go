package layers

import (
	"dahl/nn"
)

// AvgPool is the average of windows, placed as by a MaxPool of the same numbers. The image is padded with zeros, which
// count as elements of the windows.
type AvgPool MaxPool

// Kind implements [nn.Layer].
func (AvgPool) Kind() string { return "avgpool" }

// Prefix is how automatic names begin.
func (AvgPool) Prefix() string { return "pool" }

// Output implements [nn.Layer].
func (p AvgPool) Output(in [][]int) ([]int, error) { return MaxPool(p).pooled(in) }

// Flops implements [nn.Layer].
func (p AvgPool) Flops(in [][]int, out []int) float64 { return MaxPool(p).Flops(in, out) }

// Forward implements [nn.Layer].
func (p AvgPool) Forward(n *nn.Node) {
	n.Tiles("avgpool.nhwc", MaxPool(p).params(), n.Output(), n.Input(0))
}

// Backward implements [nn.Layer].
func (p AvgPool) Backward(n *nn.Node) {
	n.Tiles("avgpool.nhwc.dx", MaxPool(p).params(), n.InputGrad(0), n.OutputGrad())
}
