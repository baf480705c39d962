package nn

import "dahl/kernels"

// Activation applies one of [kernels.Functions] to every element, such as "tanh" or "gelu".
type Activation struct {
	Elementwise
	Function string
}

// Kind implements [Layer].
func (a Activation) Kind() string { return a.Function }

// Output implements [Layer].
func (a Activation) Output(in [][]int) ([]int, error) {
	if _, err := kernels.FunctionByName(a.Function); err != nil {
		return nil, err
	}
	return a.Elementwise.Output(in)
}

// Forward implements [Layer].
func (a Activation) Forward(n *Node) { n.Tiles(a.Function, nil, n.Output(), n.Input(0)) }

// Backward implements [Layer].
func (a Activation) Backward(n *Node) {
	at := n.Input(0)
	if f, err := kernels.FunctionByName(a.Function); err == nil && f.OfOutput {
		at = n.Output()
	}
	n.Tiles(a.Function+".dx", nil, n.InputGrad(0), n.OutputGrad(), at)
}

// activations are the lines of the table of layers for all functions.
func activations() (all []LayerKind) {
	for _, f := range kernels.Functions() {
		all = append(all, LayerKind{
			Kind: f.Name, Prefix: f.Name, Doc: f.Doc,
			New:   func(Settings) Layer { return Activation{Function: f.Name} },
			Curve: Curve{Slope: f.Steepest, Bend: f.Bend, AtZero: f.AtZero},
		})
	}
	return all
}
