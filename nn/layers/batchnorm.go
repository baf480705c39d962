package layers

import (
	"cmp"
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// BatchNorm normalises each channel by the mean and the variance of a batch, as PyTorch's BatchNorm2d:
// y = γ·(x - μ)/√(σ² + Eps) + β. It keeps running ones, of which Momentum is the part of the last batch, for
// evaluations. Of several micro-batches each is a batch. kernels/batchnorm.go has the equations.
type BatchNorm struct {
	Eps      float64 // Zero means 1e-5.
	Momentum float64 // Zero means 0.1.
}

// The defaults are PyTorch's.
const (
	defaultEps      = 1e-5
	defaultMomentum = 0.1
)

// Kind implements [nn.Layer].
func (BatchNorm) Kind() string { return "batchnorm" }

// Traits implements the interface of layers. Tasks wait for all of their input, so that no cache has kept it, and read
// whole pixels fastest.
func (BatchNorm) Traits() nn.Traits { return nn.Traits{WholeSample: true, Normalises: true} }

// Prefix is how automatic names begin.
func (BatchNorm) Prefix() string { return "bn" }

// Patterns implements [nn.Fuser]. The layer computes the sign of its output again from its input, or reads its output, so that any layer
// may read what a ReLU behind it gives.
func (BatchNorm) Patterns() []nn.Pattern {
	return []nn.Pattern{{Behind: []nn.Layer{Add{}, ReLU{}}}, {Behind: []nn.Layer{ReLU{}}}}
}

// Numbers are Eps and Momentum, or their defaults.
func (b BatchNorm) Numbers() (eps, momentum float64) {
	return cmp.Or(b.Eps, defaultEps), cmp.Or(b.Momentum, defaultMomentum)
}

// Output implements [nn.Layer].
func (b BatchNorm) Output(in [][]int) ([]int, error) {
	shape, err := oneImage(in, "a batch normalisation")
	if err != nil {
		return nil, err
	}
	if !(b.Eps >= 0 && b.Eps <= 1) || !(b.Momentum >= 0 && b.Momentum <= 1) {
		return nil, fmt.Errorf("eps %g and momentum %g; want numbers from 0 to 1", b.Eps, b.Momentum)
	}
	return shape, nil
}

// Params implements [nn.Learner].
func (BatchNorm) Params(in [][]int) []nn.Parameter {
	channels := in[0][:1]
	return []nn.Parameter{{Name: "weight", Shape: channels, First: 1}, {Name: "bias", Shape: channels}}
}

// Running implements [nn.Tracker].
func (BatchNorm) Running(in [][]int) []nn.Parameter {
	channels := in[0][:1]
	return []nn.Parameter{
		{Name: "running_mean", Shape: channels}, {Name: "running_var", Shape: channels, First: 1},
		{Name: "num_batches_tracked", Shape: []int{}, Counts: true},
	}
}

// Flops implements [nn.Layer].
func (BatchNorm) Flops(_ [][]int, out []int) float64 { return 8 * float64(nn.Elems(out)) }

// scale is how the layer normalises.
func (BatchNorm) scale(n *nn.Node) nn.Operand {
	return n.Buffer(dag.Buffer{Name: n.Name + ".scale", Shape: []int{4, n.Out[0]}, Type: n.Type()}, nn.NoAxis, dag.AlongOutputs)
}

// Forward implements [nn.Layer].
func (b BatchNorm) Forward(n *nn.Node) {
	scale := b.scale(n)
	if n.Trains() {
		b.statistics(n, scale)
	} else {
		eps, _ := b.Numbers()
		n.Step(".scale", "batchnorm.running", dag.Params{{Name: "eps", Value: eps}}, scale, n.Running(0), n.Running(1), n.Param(0), n.Param(1))
	}
	if n.Leave(scale) {
		return
	}
	operands := []nn.Operand{n.Output(), n.Input(0), scale}
	if n.Fused(Add{}) != nil {
		operands = append(operands, n.Input(1))
	}
	n.Tiles("batchnorm.nhwc", dag.Params{nn.Flag("relu", n.Fused(ReLU{}) != nil)}, operands...)
}

// statistics adds the tasks of mean and variance, of each sample and of the batch.
func (b BatchNorm) statistics(n *nn.Node, scale nn.Operand) {
	pixels := n.Out[1] * n.Out[2]
	if n.Samples()*pixels < 2 {
		n.Fail(fmt.Errorf("a channel has one value, whose variance is not defined; train with more samples at a time"))
		return
	}
	sums, squares, taken := n.Moments()
	if !taken {
		n.Step(".moments", "moments.nhwc", nil, sums, squares, n.Input(0))
	}
	sums, squares, pixels = b.total(n, 3, n.Name+".total", "moments.total", dag.Params{{Name: "pixels", Value: float64(pixels)}}, sums, squares)
	eps, momentum := b.Numbers()
	params := dag.Params{{Name: "pixels", Value: float64(pixels)}, {Name: "eps", Value: eps}, {Name: "momentum", Value: momentum}}
	n.Step(".scale", "batchnorm.stats", params, scale, n.Running(0), n.Running(1), n.Running(2), sums, squares, n.Param(0), n.Param(1))
}

// total is the last two rows of the sums of an operation over all samples, where devices share these. They stand for the sums of one sample with all pixels. Else the sums of single
// samples with their pixels stay.
func (BatchNorm) total(n *nn.Node, rows int, name, op string, params dag.Params, s, q nn.Operand) (sums, others nn.Operand, pixels int) {
	pixels = n.Out[1] * n.Out[2]
	if !n.SharesSamples() {
		return s, q, pixels
	}
	total := n.Buffer(dag.Buffer{Name: name, Shape: []int{rows, n.Out[0]}, Type: n.Type()}, nn.NoAxis, dag.AlongOutputs)
	n.Step(".total", op, params, total, s, q)
	return n.Row(total, rows-2), n.Row(total, rows-1), n.Samples() * pixels
}

// gradBySample is a buffer of a number per sample and channel.
func (BatchNorm) gradBySample(n *nn.Node, name string) nn.Operand {
	return n.Buffer(dag.Buffer{Name: "grad." + n.Name + name, Shape: []int{n.Samples(), n.Out[0]}, Type: n.Type()}, dag.AlongSamples, dag.AlongInputs)
}

// Backward implements [nn.Layer].
func (b BatchNorm) Backward(n *nn.Node) {
	dw, db, scale := n.ParamGrad(0), n.ParamGrad(1), b.scale(n)
	sums, products := b.gradBySample(n, ".sum"), b.gradBySample(n, ".products")
	rectified := dag.Params{nn.Flag("relu", n.Fused(ReLU{}) != nil)}
	if n.Fused(Add{}) != nil {
		rectified = dag.Params{nn.Flag("relu", false)} // the gradient stops where the sums are taken
		operands := []nn.Operand{sums, products, n.OutputGrad(), n.Output(), n.Input(0), scale}
		if rest, lacks := n.RestGrad(); lacks {
			operands = append(operands, rest)
		}
		n.Step(".sums", "batchnorm.gate.nhwc", nil, operands...)
	} else {
		n.Step(".sums", "batchnorm.sums.nhwc", rectified, sums, products, n.OutputGrad(), n.Input(0), scale)
	}
	sums, products, pixels := b.total(n, 2, "grad."+n.Name+".total", "batchnorm.total", nil, sums, products)
	back := n.Buffer(dag.Buffer{Name: "grad." + n.Name + ".scale", Shape: []int{3, n.Out[0]}, Type: n.Type(), Role: dag.Gradient})
	n.Tiles("batchnorm.dw", dag.Params{{Name: "pixels", Value: float64(pixels)}}, dw, db, back, sums, products, scale)
	if n.Needs(0) {
		n.Step(".input", "batchnorm.dx.nhwc", rectified, n.InputGrad(0), n.OutputGrad(), n.Input(0), scale, back)
	}
}
