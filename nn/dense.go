package nn

import (
	"fmt"

	"dahl/kernels"
	"dahl/kernels/calls"
)

// Dense is a fully connected layer: y = x·wᵀ + b, with w of shape (outputs, inputs).
type Dense struct {
	Outputs int
	NoBias  bool
}

// Kind implements [Layer].
func (Dense) Kind() string { return "dense" }

// Traits are those of a layer with weights.
func (Dense) Traits() Traits { return Traits{Weight: true, Takes: calls.Mapped} }

// WithOutputs is the layer with another number of outputs.
func (d Dense) WithOutputs(n int) Layer {
	d.Outputs = n
	return d
}

// Output implements [Layer].
func (d Dense) Output(inputs [][]int) ([]int, error) {
	in, err := one(inputs)
	if err != nil {
		return nil, err
	}
	if len(in) != 1 {
		return nil, fmt.Errorf("a dense layer needs a vector; put a flatten before it")
	}
	if d.Outputs < 1 {
		return nil, fmt.Errorf("%d outputs; want at least 1", d.Outputs)
	}
	return []int{d.Outputs}, nil
}

// Params implements [Learner].
func (d Dense) Params(in [][]int) []Parameter {
	inputs := in[0][0]
	p := []Parameter{{Name: "weight", Shape: []int{d.Outputs, inputs}, FanIn: inputs}}
	if !d.NoBias {
		p = append(p, Parameter{Name: "bias", Shape: []int{d.Outputs}, FanIn: inputs})
	}
	return p
}

// Flops implements [Layer].
func (d Dense) Flops(in [][]int, out []int) float64 { return 2 * float64(in[0][0]) * float64(out[0]) }

// Forward implements [Layer].
func (d Dense) Forward(n *Node) {
	l := n.l
	n.weight = n.parameter()
	if n.in.turned != nil {
		c, h, w := n.in.turned[0], n.in.turned[1], n.in.turned[2]
		l.pack(n, packing{
			layout: nhwc, op: nhwc, back: nchw, from: []int{d.Outputs, c, h, w}, to: []int{d.Outputs, h, w, c}, seen: n.weight,
		})
	}
	n.weightedForward("dense", nil, n.Output())
}

// Backward implements [Layer].
func (Dense) Backward(n *Node) {
	n.weightedBackward("dense.dw", 0, nil, func() {
		var with calls.Attributes
		if n.in.rectified {
			with = calls.ReLU
		}
		n.inputGradient(kernels.Written("dense.dx", with), n.OutputGrad(), &n.weight)
	}, n.OutputGrad())
}
