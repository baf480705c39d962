package nn

import (
	"cmp"
	"fmt"

	"dahl/dag"
)

// BatchNorm normalises each channel by the mean and the variance of a batch, as PyTorch's BatchNorm2d:
// y = γ·(x - μ)/√(σ² + Eps) + β. It keeps running ones, of which Momentum is the part of the last batch, for
// evaluations. Of several micro-batches each is a batch. kernels/batchnorm.go has the equations.
type BatchNorm struct {
	Eps      float64 // 0: 1e-5
	Momentum float64 // 0: 0.1
}

// The defaults are PyTorch's.
const (
	defaultEps      = 1e-5
	defaultMomentum = 0.1
)

// Kind implements [Layer].
func (BatchNorm) Kind() string { return "batchnorm" }

func (b BatchNorm) eps() float64 { return cmp.Or(b.Eps, defaultEps) }

// Output implements [Layer].
func (b BatchNorm) Output(in [][]int) ([]int, error) {
	shape, err := one(in)
	if err != nil {
		return nil, err
	}
	if len(shape) != 3 {
		return nil, fmt.Errorf("a batch normalisation needs C×H×W")
	}
	if !(b.Eps >= 0 && b.Eps <= 1) || !(b.Momentum >= 0 && b.Momentum <= 1) {
		return nil, fmt.Errorf("eps %g and momentum %g; want numbers from 0 to 1", b.Eps, b.Momentum)
	}
	return shape, nil
}

// Params implements [Layer].
func (BatchNorm) Params(in [][]int) []Parameter {
	channels := in[0][:1]
	return []Parameter{{Name: "weight", Shape: channels, First: 1}, {Name: "bias", Shape: channels}}
}

// Running implements tracker.
func (BatchNorm) Running(in [][]int) []Parameter {
	channels := in[0][:1]
	return []Parameter{
		{Name: "running_mean", Shape: channels}, {Name: "running_var", Shape: channels, First: 1},
		{Name: "num_batches_tracked", Shape: []int{}, Counts: true},
	}
}

// Flops implements [Layer].
func (BatchNorm) Flops(_ [][]int, out []int) float64 { return 8 * float64(elems(out)) }

// Layout implements [Layer].
func (BatchNorm) Layout(_, in string) string { return in }

// normal is what a batch normalisation keeps of the forward pass.
type normal struct{ scale dag.BufferID }

// op is an operation on images in a layout.
func (*normal) op(name string, n *Node) string {
	if n.layout == dag.NHWC {
		return name + ".nhwc"
	}
	return name
}

// Forward implements [Layer].
func (b BatchNorm) Forward(n *Node) {
	l, channels := n.l, n.Out[0]
	n.normal.scale = l.buffer(n.Name+".scale", l.opt.Type, dag.Activation, []int{4, channels})
	scale := Operand{writes(n.normal.scale, nil), []dag.Dimension{noAxis, dag.AlongOutputs}}
	weight, bias := Operand{Access: reads(n.weights[0], nil)}, Operand{Access: reads(n.weights[1], nil)}
	if l.opt.Train {
		b.statistics(n, scale, weight, bias)
	} else {
		l.tiles(n, phaseForward+".scale", "batchnorm.running", dag.Params{{Name: "eps", Value: b.eps()}}, n.tiles.Forward,
			scale, Operand{Access: reads(n.running[0], nil)}, Operand{Access: reads(n.running[1], nil)}, weight, bias)
	}
	l.tiles(n, phaseForward, n.normal.op("batchnorm", n), n.rectifies(), n.tiles.Forward, n.Output(), n.Input(0), Operand{Access: reads(n.normal.scale, nil)})
}

// rectifies says whether a ReLU is fused with the layer.
func (n *Node) rectifies() dag.Params { return dag.Params{{Name: "relu", Value: flag(n.relu != nil)}} }

// statistics adds the tasks of mean and variance, of each sample and of the batch.
func (b BatchNorm) statistics(n *Node, scale, weight, bias Operand) {
	l, pixels := n.l, n.Out[1]*n.Out[2]
	if l.size()*pixels < 2 {
		l.b.Fail(fmt.Errorf("layer %q: a channel has one value, whose variance is not defined; train with more samples at a time", n.Name))
		return
	}
	sums, squares := n.bySample(n.Name+".sum", dag.AlongOutputs), n.bySample(n.Name+".squares", dag.AlongOutputs)
	l.tiles(n, phaseForward+".moments", n.normal.op("moments", n), nil, n.tiles.Forward, sums, squares, n.Input(0))
	params := dag.Params{{Name: "pixels", Value: float64(pixels)}, {Name: "eps", Value: b.eps()}, {Name: "momentum", Value: cmp.Or(b.Momentum, defaultMomentum)}}
	operands := []Operand{scale}
	for _, running := range n.running {
		operands = append(operands, Operand{Access: updates(running, nil)})
	}
	l.tiles(n, phaseForward+".scale", "batchnorm.stats", params, n.tiles.Forward, append(operands, sums.read(), squares.read(), weight, bias)...)
}

// bySample is a buffer of a number per sample and channel.
func (n *Node) bySample(name string, channels dag.Dimension) Operand {
	id := n.l.buffer(name, n.l.opt.Type, dag.Activation, []int{n.l.size(), n.Out[0]})
	return Operand{writes(id, nil), []dag.Dimension{dag.AlongSamples, channels}}
}

// read is the operand for those that read what it writes.
func (o Operand) read() Operand { return Operand{Access: reads(o.Buffer, o.Box)} }

// Backward implements [Layer].
func (b BatchNorm) Backward(n *Node) {
	l, pixels := n.l, n.Out[1]*n.Out[2]
	if n.grads == nil {
		l.gradients(n)
	}
	scale := Operand{Access: reads(n.normal.scale, nil)}
	sums, products := n.bySample("grad."+n.Name+".sum", dag.AlongInputs), n.bySample("grad."+n.Name+".products", dag.AlongInputs)
	l.tiles(n, phaseBackward+".sums", n.normal.op("batchnorm.sums", n), n.rectifies(), n.tiles.InputGradient,
		sums, products, n.OutputGrad(), n.Input(0), scale)
	back := l.buffer("grad."+n.Name+".scale", l.opt.Type, dag.Gradient, []int{3, n.Out[0]})
	l.tiles(n, phaseBackward+".weight", "batchnorm.dw", dag.Params{{Name: "pixels", Value: float64(pixels)}}, n.tiles.WeightGradient,
		Operand{reduces(n.grads[0], nil), []dag.Dimension{dag.AlongOutputs}}, Operand{Access: reduces(n.grads[1], nil)}, Operand{Access: writes(back, nil)},
		sums.read(), products.read(), scale)
	if n.in.grad != none {
		l.tiles(n, phaseBackward+".input", n.normal.op("batchnorm.dx", n), n.rectifies(), n.tiles.InputGradient,
			n.InputGrad(0), n.OutputGrad(), n.Input(0), scale, Operand{Access: reads(back, nil)})
	}
}
