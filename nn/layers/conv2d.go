package layers

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/nn"
)

// Conv2D is a convolution (cross-correlation, as PyTorch's), with w of shape (filters, channels/groups,
// kernel, kernel). Kernel, Pad and Stride hold for rows and columns, unless Columns and Pads say otherwise.
// Taps of the kernel are Dilation pixels apart. Groups is the number of groups into which filters and channels are
// divided: a filter sees the channels of its own group alone. A Stride, a Dilation and Groups of 0 mean 1.
type Conv2D struct {
	Filters, Kernel, Pad, Stride int
	Dilation, Groups             int
	Columns                      Columns
	Pads                         Pads
	NoBias                       bool
}

// Kind implements [nn.Layer].
func (Conv2D) Kind() string { return "conv2d" }

// conv2dOf is the layer that a model file describes.
func conv2dOf(s Settings) nn.Layer {
	c := Conv2D{Filters: s.count("filters"), Groups: s.count("groups"), NoBias: s["bias"] == 0}
	c.Kernel, c.Columns.Size = s.pair("kernel")
	c.Stride, c.Columns.Stride = s.pair("stride")
	c.Dilation, c.Columns.Dilation = s.pair("dilation")
	c.Pad, c.Pads = s.pads("pad")
	return c
}

// Windows are those along rows and along columns.
func (c Conv2D) Windows() [2]Window {
	return windowsOf(Columns{c.Kernel, c.Stride, c.Dilation}, c.Pad, c.Columns, c.Pads)
}

// Traits implements the interface of layers with a weight.
func (c Conv2D) Traits() nn.Traits {
	return nn.Traits{Weight: true, Grouped: c.groups() > 1, Takes: calls.Norm, Stops: true}
}

// Prefix is how automatic names begin.
func (Conv2D) Prefix() string { return "conv" }

// Patterns implements [nn.Fuser]. A pooling knows from its own output where no gradient passes.
func (c Conv2D) Patterns() []nn.Pattern {
	return []nn.Pattern{
		{Behind: []nn.Layer{BatchNorm{}, ReLU{}}, Evaluation: true},
		{Behind: []nn.Layer{BatchNorm{}}, Evaluation: true},
		{Behind: []nn.Layer{ReLU{}, MaxPool{}}, Fits: func(behind []nn.Layer) bool { return c.groups() == 1 && behind[1].(MaxPool).plain() }},
		{Behind: []nn.Layer{ReLU{}}, Stops: true},
	}
}

func (c Conv2D) groups() int { return max(c.Groups, 1) }

// Output implements [nn.Layer].
func (c Conv2D) Output(inputs [][]int) ([]int, error) {
	in, err := oneImage(inputs, "a convolution")
	if err != nil {
		return nil, err
	}
	if c.Filters < 1 {
		return nil, fmt.Errorf("%d filters; want at least 1", c.Filters)
	}
	if g := c.groups(); in[0]%g != 0 || c.Filters%g != 0 {
		return nil, fmt.Errorf("%d groups; want a divisor of the %d channels and the %d filters", g, in[0], c.Filters)
	}
	return slid(in, c.Filters, c.Windows())
}

// Params implements [nn.Learner].
func (c Conv2D) Params(in [][]int) []nn.Parameter {
	channels, w := in[0][0]/c.groups(), c.Windows()
	fanIn := channels * w[0].Size * w[1].Size
	p := []nn.Parameter{{Name: "weight", Shape: []int{c.Filters, channels, w[0].Size, w[1].Size}, FanIn: fanIn}}
	if !c.NoBias {
		p = append(p, nn.Parameter{Name: "bias", Shape: []int{c.Filters}, FanIn: fanIn})
	}
	return p
}

// Flops implements [nn.Layer].
func (c Conv2D) Flops(in [][]int, out []int) float64 {
	return 2 * float64(nn.Elems(out)) * float64(c.Params(in)[0].FanIn)
}

// params are the parameters of all operations of the layer.
func (c Conv2D) params() dag.Params {
	p := windowParams(c.Windows())
	if c.groups() > 1 {
		p = append(p, dag.Param{Name: "groups", Value: float64(c.Groups)})
	}
	return p
}

// Layouts of the weight.
const (
	hwio = "hwio" // (k k c f), as convolutions over channels-last images read it
	hwoi = "hwoi" // (k k f c), turned by half a turn, as their input gradients do
)

// Forward implements [nn.Layer].
func (c Conv2D) Forward(n *nn.Node) {
	params, pool := append(c.params(), nn.Flag("relu", n.Fused(ReLU{}) != nil)), n.Fused(MaxPool{})
	if norm := n.Fused(BatchNorm{}); norm != nil {
		weight, bias := c.foldNorm(n, norm)
		n.Tiles("conv2d.nhwc", params, n.Output(), n.Input(0), weight, bias)
		return
	}
	from := n.Params[0].Shape
	f, channels, kh, kw := from[0], from[1], from[2], from[3]
	n.Pack(nn.Packing{
		Form: nn.Form{Layout: hwio, Shape: []int{kh, kw, channels, f}, Outputs: 3, Inputs: 2}, Back: "oihw", From: from,
		Turned: &nn.Form{Layout: hwoi, Shape: []int{kh, kw, f, channels}, Outputs: 2, Inputs: 3},
	})
	if pool != nil {
		n.Multiply("conv2d.nhwc", calls.Pool, c.withPool(pool), n.Output(), n.Saved("index", dag.Uint8))
	} else if sums, squares, wanted := n.TakeMoments(); wanted {
		n.Multiply("conv2d.nhwc", calls.Moments, params, sums, squares, n.Output())
	} else {
		n.Multiply("conv2d.nhwc", 0, params, n.Output())
	}
}

// withPool is the parameters of operations that also pool the convolution's output.
func (c Conv2D) withPool(pool *nn.Stage) dag.Params {
	p := pool.Layer.(MaxPool)
	return append(c.params(), dag.Param{Name: "size", Value: float64(p.Size)}, dag.Param{Name: "step", Value: float64(p.Windows()[0].Stride)})
}

// foldNorm makes filters and biases that also normalise, for an evaluation.
func (c Conv2D) foldNorm(n *nn.Node, norm *nn.Stage) (weight, bias nn.Operand) {
	from := n.Params[0].Shape
	params, running := n.StateOf(norm)
	weight = n.Buffer(dag.Buffer{Name: n.Params[0].Name + "." + hwio, Shape: []int{from[2], from[3], from[1], from[0]}, Type: n.Type(), Layout: hwio},
		nn.NoAxis, nn.NoAxis, dag.AlongInputs, dag.AlongOutputs)
	bias = n.Buffer(dag.Buffer{Name: norm.Name + ".folded", Shape: from[:1], Type: n.Type(), Role: dag.Activation})
	operands := append([]nn.Operand{weight, bias, n.Param(0), running[0], running[1]}, params...)
	if !c.NoBias {
		operands = append(operands, n.Param(1))
	}
	eps, _ := norm.Layer.(BatchNorm).Numbers()
	n.Step(".fold", "batchnorm.fold", dag.Params{{Name: "eps", Value: eps}}, operands...)
	return weight, bias
}

// Backward implements [nn.Layer].
func (c Conv2D) Backward(n *nn.Node) {
	var with calls.Attributes
	params, gradient := c.params(), []nn.Operand{n.OutputGrad()}
	switch pool := n.Fused(MaxPool{}); {
	case pool != nil && n.Needs(0):
		gradient[0] = n.GradBefore(".pool", "maxpool.nhwc.dx", pool.Layer.(MaxPool).params(), n.OutputGrad(), n.Saved("index", dag.Uint8))
	case pool != nil: // the gradient before pooling is never needed as a whole
		with, params, gradient = calls.Pool, c.withPool(pool), append(gradient, n.Saved("index", dag.Uint8))
	}
	n.MultiplyBack("conv2d.nhwc.dw", with, params, func() {
		operands := []nn.Operand{n.InputGrad(0), gradient[0], n.Turned()}
		if n.Stops() {
			operands = append(operands, n.Input(0))
		}
		n.Step(".input", "conv2d.nhwc.dx", c.params(), operands...)
	}, gradient...)
}
