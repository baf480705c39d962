package layers

import (
	"dahl/dag"
	"dahl/nn"
)

// GlobalAvgPool is the average of all pixels of each channel, C×H×W to C×1×1.
type GlobalAvgPool struct{}

// Kind implements [nn.Layer].
func (GlobalAvgPool) Kind() string { return "globalavgpool" }

// Prefix is how automatic names begin.
func (GlobalAvgPool) Prefix() string { return "pool" }

// Output implements [nn.Layer].
func (GlobalAvgPool) Output(in [][]int) ([]int, error) {
	shape, err := oneImage(in, "pooling")
	if err != nil {
		return nil, err
	}
	return []int{shape[0], 1, 1}, nil
}

// Flops implements [nn.Layer].
func (GlobalAvgPool) Flops(in [][]int, _ []int) float64 { return float64(nn.Elems(in[0])) }

// Forward implements [nn.Layer].
func (GlobalAvgPool) Forward(n *nn.Node) { n.Tiles("globalavgpool.nhwc", nil, n.Output(), n.Input(0)) }

// Backward implements [nn.Layer].
func (GlobalAvgPool) Backward(n *nn.Node) {
	pixels := n.In[0][1] * n.In[0][2]
	n.Tiles("globalavgpool.nhwc.dx", dag.Params{{Name: "pixels", Value: float64(pixels)}}, n.InputGrad(0), n.OutputGrad())
}
