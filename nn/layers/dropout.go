package layers

import (
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// Dropout makes each element 0 with probability P in a training step, and multiplies the others by 1/(1-P). An evaluation
// passes all on. kernels/dropout.go says how it is drawn. It draws by [nn.Node.Keys].
type Dropout struct{ P float64 }

// DefaultP is the probability where none is given.
const DefaultP = 0.5

// Kind implements [nn.Layer].
func (Dropout) Kind() string { return "dropout" }

// Prefix is how automatic names begin.
func (Dropout) Prefix() string { return "drop" }

// Traits says that an evaluation has no task.
func (Dropout) Traits() nn.Traits { return nn.Traits{TrainsOnly: true} }

// Output implements [nn.Layer].
func (d Dropout) Output(in [][]int) ([]int, error) {
	if !(d.P >= 0 && d.P <= 1) {
		return nil, fmt.Errorf("p %g; want a probability from 0 to 1", d.P)
	}
	return one(in)
}

// Flops implements [nn.Layer].
func (Dropout) Flops(_ [][]int, out []int) float64 { return 25 * float64(nn.Elems(out)) }

// Forward implements [nn.Layer].
func (d Dropout) Forward(n *nn.Node) {
	if !n.Trains() {
		n.View()
		return
	}
	n.Tiles("dropout", d.params(n), n.Output(), n.Input(0), n.Keys())
}

func (d Dropout) params(n *nn.Node) dag.Params {
	return dag.Params{{Name: "p", Value: d.P}, nn.Flag("channels_last", len(n.Out) > 1)}
}

// Backward implements [nn.Layer]: the gradient is multiplied by what the input was.
func (d Dropout) Backward(n *nn.Node) {
	n.Tiles("dropout", d.params(n), n.InputGrad(0), n.OutputGrad(), n.Keys())
}
