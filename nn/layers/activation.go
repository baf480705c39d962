package layers

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/nn"
)

// Activation applies one of [kernels.Functions] to every element, such as "tanh" or "gelu".
type Activation struct {
	Elementwise
	Function string
	Setting  float64 // of a function that has one
}

// Kind implements [nn.Layer].
func (a Activation) Kind() string { return a.Function }

// Traits says that a dense layer may compute it.
func (Activation) Traits() nn.Traits { return nn.Traits{Pointwise: true} }

// Output implements [nn.Layer].
func (a Activation) Output(in [][]int) ([]int, error) {
	f, err := kernels.FunctionByName(a.Function)
	if err != nil {
		return nil, err
	}
	if f.Setting != "" && !(a.Setting >= 0 && a.Setting <= f.Most) {
		return nil, fmt.Errorf("%s %g; want a number from 0 to %g", f.Setting, a.Setting, f.Most)
	}
	return a.Elementwise.Output(in)
}

// Forward implements [nn.Layer].
func (a Activation) Forward(n *nn.Node) {
	n.Tiles(a.Function, a.params(), n.Output(), n.Input(0))
}

// Backward implements [nn.Layer].
func (a Activation) Backward(n *nn.Node) {
	at := n.Input(0)
	if a.function().OfOutput {
		at = n.Output()
	}
	n.Tiles(a.Function+".dx", a.params(), n.InputGrad(0), n.OutputGrad(), at)
}

// followed are the parameters of an operation that the function follows.
func (a Activation) followed() dag.Params {
	number := slices.IndexFunc(kernels.Functions(), func(f kernels.Function) bool { return f.Name == a.Function })
	setting := 0.0
	if a.function().Setting != "" {
		setting = a.Setting
	}
	return dag.Params{{Name: "function", Value: float64(number)}, {Name: "setting", Value: setting}}
}

func (a Activation) params() dag.Params {
	if f := a.function(); f.Setting != "" {
		return dag.Params{{Name: f.Setting, Value: a.Setting}}
	}
	return nil
}

// function is the function, which Output has found before.
func (a Activation) function() *kernels.Function {
	f, err := kernels.FunctionByName(a.Function)
	if err != nil {
		panic("layers: " + err.Error())
	}
	return f
}

// activations are the lines of the table of layers for all functions.
func activations() (all []Info) {
	for _, f := range kernels.Functions() {
		kind := Info{
			Kind: f.Name, Doc: f.Doc,
			New: func(s Settings) nn.Layer { return Activation{Function: f.Name, Setting: s[f.Setting]} },
		}
		if f.Setting != "" {
			kind.Keys = []Key{{Name: f.Setting, Max: f.Most, Default: f.Default, Fraction: true, Doc: f.Doc}}
		}
		all = append(all, kind)
	}
	return all
}
