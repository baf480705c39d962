package layers

import (
	"fmt"
	"slices"

	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
)

// Dense is a fully connected layer: y = x·wᵀ + b, with w of shape (outputs, inputs). Of a sequence T×C, x is the features of each position.
type Dense struct {
	Outputs int
	NoBias  bool
	// The weight begins with a normal distribution of this deviation, and the bias with 0. Zero means that both begin as in PyTorch.
	Deviation float64
}

// Kind implements [nn.Layer].
func (Dense) Kind() string { return "dense" }

// Traits implements the interface of layers with a weight.
func (d Dense) Traits() nn.Traits {
	return nn.Traits{Weight: true, Takes: calls.Mapped, Stops: true, Slopes: true, JoinsLoss: d.NoBias}
}

// Prefix is how automatic names begin.
func (Dense) Prefix() string { return "fc" }

// Patterns implements [nn.Fuser].
func (Dense) Patterns() []nn.Pattern {
	return []nn.Pattern{{Behind: []nn.Layer{ReLU{}}, Stops: true}, {Behind: []nn.Layer{Activation{}}, Epilogue: true}}
}

// WithOutputs is the layer with another number of outputs.
func (d Dense) WithOutputs(n int) nn.Layer {
	d.Outputs = n
	return d
}

// Share implements [nn.Sharer].
func (d Dense) Share(n int) (nn.Layer, error) {
	outputs, err := share("outputs", d.Outputs, n)
	d.Outputs = outputs
	return d, err
}

// Output implements [nn.Layer].
func (d Dense) Output(inputs [][]int) ([]int, error) {
	in, err := one(inputs)
	if err != nil {
		return nil, err
	}
	if len(in) > 2 {
		return nil, fmt.Errorf("a dense layer needs a vector; put a flatten before it")
	}
	if d.Outputs < 1 {
		return nil, fmt.Errorf("%d outputs; want at least 1", d.Outputs)
	}
	out := slices.Clone(in)
	out[len(out)-1] = d.Outputs
	return out, nil
}

// Params implements [nn.Learner].
func (d Dense) Params(in [][]int) []nn.Parameter {
	inputs := nn.Channels(in[0])
	p := []nn.Parameter{{Name: "weight", Shape: []int{d.Outputs, inputs}, FanIn: inputs, Deviation: d.Deviation}}
	if !d.NoBias {
		p = append(p, nn.Parameter{Name: "bias", Shape: []int{d.Outputs}})
		if d.Deviation == 0 {
			p[1].FanIn = inputs
		}
	}
	return p
}

// Flops implements [nn.Layer].
func (d Dense) Flops(in [][]int, out []int) float64 {
	return 2 * float64(nn.Channels(in[0])) * float64(nn.Elems(out))
}

// Forward implements [nn.Layer].
func (d Dense) Forward(n *nn.Node) {
	if n.JoinsLoss() {
		n.SumLogits()
		return
	}
	if m := n.Map(); m != nil {
		c, h, w := m[0], m[1], m[2]
		n.Pack(nn.Packing{Form: nn.Form{Layout: "nhwc", Shape: []int{d.Outputs, h, w, c}, Outputs: 0}, Back: "nchw", From: []int{d.Outputs, c, h, w}})
	}
	switch function := n.Fused(Activation{}); {
	case n.Fused(ReLU{}) != nil:
		n.Multiply("dense", calls.ReLU, nil, n.Output())
	case function == nil:
		n.Multiply("dense", 0, nil, n.Output())
	default:
		a, with, written := function.Layer.(Activation), calls.Function, []nn.Operand{n.Output()}
		if n.Trains() && !a.function().OfOutput {
			with, written = with|calls.Kept, append(written, n.BeforeFunction())
		}
		n.Multiply("dense", with, a.followed(), written...)
	}
}

// Backward implements [nn.Layer].
func (Dense) Backward(n *nn.Node) {
	if n.JoinsLoss() {
		n.SumLogitsBack()
		return
	}
	dy := n.OutputGrad()
	if function := n.Fused(Activation{}); function != nil && !n.SlopesLater() {
		a, at := function.Layer.(Activation), n.Output()
		if !a.function().OfOutput {
			at = n.BeforeFunction()
		}
		dy = n.GradBefore(".function", a.Function+".dx", a.params(), dy, at)
	}
	n.MultiplyBack("dense.dw", 0, nil, func() {
		if function, at, multiplies := n.Slope(); multiplies {
			n.Step(".input", kernels.Written("dense.dx", calls.Function), function.Layer.(Activation).followed(), n.InputGrad(0), dy, n.Weight(), at)
		} else if n.Stops() {
			n.Step(".input", kernels.Written("dense.dx", calls.ReLU), nil, n.InputGrad(0), dy, n.Weight(), n.Input(0))
		} else {
			n.Step(".input", "dense.dx", nil, n.InputGrad(0), dy, n.Weight())
		}
	}, dy)
}
