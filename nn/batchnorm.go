package nn

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
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

// Traits says that tasks wait for all of their input, which no cache has kept, and read whole pixels fastest.
func (BatchNorm) Traits() Traits { return Traits{WholeSample: true, Normalises: true} }

func (b BatchNorm) eps() float64 { return cmp.Or(b.Eps, defaultEps) }

// Output implements [Layer].
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

// Params implements [Learner].
func (BatchNorm) Params(in [][]int) []Parameter {
	channels := in[0][:1]
	return []Parameter{{Name: "weight", Shape: channels, First: 1}, {Name: "bias", Shape: channels}}
}

// Running implements [Tracker].
func (BatchNorm) Running(in [][]int) []Parameter {
	channels := in[0][:1]
	return []Parameter{
		{Name: "running_mean", Shape: channels}, {Name: "running_var", Shape: channels, First: 1},
		{Name: "num_batches_tracked", Shape: []int{}, Counts: true},
	}
}

// Flops implements [Layer].
func (BatchNorm) Flops(_ [][]int, out []int) float64 { return 8 * float64(elems(out)) }

// normal is what a batch normalisation keeps of the forward pass.
type normal struct {
	scale Operand // how it is normalised
	taken bool    // the layer before takes the moments of its input
}

// momentsFor is the batch normalisation whose input a fused convolution writes, and whose moments it takes, too: nil
// where another layer reads the input, or tasks have some rows or columns, or some of a sum.
func (l *lowerer) momentsFor(n *Node) *Node {
	if !l.opt.Train || l.opt.alone || n.relu != nil || len(n.readers) != 1 {
		return nil
	}
	of := extents(n.Out)
	if f := n.tiles.Forward; f.Inputs < n.In[0][0] && !n.Traits.Grouped || clip(f.Rows, of[1]) < of[1] || clip(f.Columns, of[2]) < of[2] {
		return nil
	}
	if norm := l.of[n.readers[0].stage]; norm.Traits.Normalises {
		return norm
	}
	return nil
}

// moments are the buffers of the moments of the layer's input.
func (n *Node) moments() (sums, squares Operand) {
	return n.bySample(n.Name+".sum", dag.AlongOutputs), n.bySample(n.Name+".squares", dag.AlongOutputs)
}

// normalisesLater reports whether a batch normalisation with its ReLU is left to the convolution that reads it, so that no task
// writes the normalised map.
func (l *lowerer) normalisesLater(n *Node) bool {
	if !n.Traits.Normalises || !l.opt.Train || n.relu == nil || n.add != nil || len(n.last().readers) != 1 {
		return false
	}
	to := l.of[n.last().readers[0].stage]
	return to.Traits.Takes.Has(calls.Norm) && !to.with.Has(calls.Pool)
}

// foldNorm gives a convolution of an evaluation filters and biases that also normalise.
func (l *lowerer) foldNorm(n *Node) {
	from, name := n.Params[0].Shape, n.Params[0].Name
	to := []int{from[2], from[3], from[1], from[0]}
	weights, running := l.carried(n.norm)
	n.weight = weight{shape: to, outputs: 3, inputs: 2}
	n.weight.id = l.b.Buffer(dag.Buffer{Name: name + "." + hwio, Shape: to, Type: l.opt.Type, Layout: hwio})
	bias := l.buffer(n.norm.Name+".folded", l.opt.Type, dag.Activation, from[:1])
	operands := []Operand{whole(n.weight.id, n.weight.axes()...), whole(bias)}
	for _, id := range slices.Concat(n.weights[:1], running[:2], weights, n.weights[1:]) {
		operands = append(operands, whole(id))
	}
	n.Step(".fold", "batchnorm.fold", dag.Params{{Name: "eps", Value: n.norm.Layer.(BatchNorm).eps()}}, operands...)
	n.weights = []dag.BufferID{n.weights[0], bias}
}

// Forward implements [Layer].
func (b BatchNorm) Forward(n *Node) {
	n.normal.scale = n.Buffer(dag.Buffer{Name: n.Name + ".scale", Shape: []int{4, n.Out[0]}, Type: n.Type()}, NoAxis, dag.AlongOutputs)
	if n.Trains() {
		b.statistics(n)
	} else {
		n.Step(".scale", "batchnorm.running", dag.Params{{Name: "eps", Value: b.eps()}}, n.normal.scale, n.Running(0), n.Running(1), n.Param(0), n.Param(1))
	}
	if n.l.normalisesLater(n) {
		n.out.value, n.out.valueIn, n.out.normal = n.in.value, n.in.valueIn, &n.normal
		return
	}
	operands := []Operand{n.Output(), n.Input(0), n.normal.scale}
	if n.add != nil {
		operands = append(operands, n.Input(1))
	}
	n.Tiles("batchnorm.nhwc", n.rectifies(), operands...)
}

// rectifies says whether a ReLU is fused with the layer.
func (n *Node) rectifies() dag.Params { return dag.Params{{Name: "relu", Value: flag(n.relu != nil)}} }

// statistics adds the tasks of mean and variance, of each sample and of the batch.
func (b BatchNorm) statistics(n *Node) {
	pixels := n.Out[1] * n.Out[2]
	if n.Samples()*pixels < 2 {
		n.Fail(fmt.Errorf("a channel has one value, whose variance is not defined; train with more samples at a time"))
		return
	}
	sums, squares := n.moments()
	if !n.normal.taken {
		n.Step(".moments", "moments.nhwc", nil, sums, squares, n.Input(0))
	}
	params := dag.Params{{Name: "pixels", Value: float64(pixels)}, {Name: "eps", Value: b.eps()}, {Name: "momentum", Value: cmp.Or(b.Momentum, defaultMomentum)}}
	n.Step(".scale", "batchnorm.stats", params, n.normal.scale, n.Running(0), n.Running(1), n.Running(2), sums, squares, n.Param(0), n.Param(1))
}

// bySample is a buffer of a number per sample and channel.
func (n *Node) bySample(name string, channels dag.Dimension) Operand {
	return n.Buffer(dag.Buffer{Name: name, Shape: []int{n.Samples(), n.Out[0]}, Type: n.Type()}, dag.AlongSamples, channels)
}

// Backward implements [Layer].
func (b BatchNorm) Backward(n *Node) {
	dw, db := n.ParamGrad(0), n.ParamGrad(1)
	sums, products := n.bySample("grad."+n.Name+".sum", dag.AlongInputs), n.bySample("grad."+n.Name+".products", dag.AlongInputs)
	rectified := n.rectifies()
	if n.add != nil {
		rectified = dag.Params{{Name: "relu", Value: 0}} // the gradient stops where the sums are taken
		operands := []Operand{sums, products, n.OutputGrad(), n.Output(), n.Input(0), n.normal.scale}
		if n.part != nil {
			operands = append(operands, n.part.gradient(dag.AlongOutputs))
		}
		n.Step(".sums", "batchnorm.gate.nhwc", nil, operands...)
	} else {
		n.Step(".sums", "batchnorm.sums.nhwc", rectified, sums, products, n.OutputGrad(), n.Input(0), n.normal.scale)
	}
	back := n.Buffer(dag.Buffer{Name: "grad." + n.Name + ".scale", Shape: []int{3, n.Out[0]}, Type: n.Type(), Role: dag.Gradient})
	n.Tiles("batchnorm.dw", dag.Params{{Name: "pixels", Value: float64(n.Out[1] * n.Out[2])}}, dw, db, back, sums, products, n.normal.scale)
	if n.Needs(0) {
		n.Step(".input", "batchnorm.dx.nhwc", rectified, n.InputGrad(0), n.OutputGrad(), n.Input(0), n.normal.scale, back)
	}
}
