package nn

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/kernels"
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

// normal is what a batch normalisation keeps of the forward pass.
type normal struct {
	scale         dag.BufferID // how it is normalised
	sums, squares *Operand     // the moments of its input, once there are tasks that write them
}

// momentsFor is the batch normalisation whose input a fused convolution writes, and whose moments it takes, too: nil
// where another layer reads the input, or tasks have some rows or columns, or some of a sum.
func (l *lowerer) momentsFor(n *Node) *Node {
	if !l.opt.Train || l.opt.alone || n.relu != nil || len(n.readers) != 1 {
		return nil
	}
	of := extents(n.Out)
	if f := n.tiles.Forward; f.Inputs < n.In[0][0] && !n.inGroups() || clip(f.Rows, of[1]) < of[1] || clip(f.Columns, of[2]) < of[2] {
		return nil
	}
	norm := l.of[n.readers[0].stage]
	if _, ok := norm.Layer.(BatchNorm); !ok {
		return nil
	}
	return norm
}

// moments are the buffers of the moments of the layer's input, which somebody writes.
func (n *Node) moments() (sums, squares Operand) {
	sums, squares = n.bySample(n.Name+".sum", dag.AlongOutputs), n.bySample(n.Name+".squares", dag.AlongOutputs)
	n.normal.sums, n.normal.squares = &sums, &squares
	return sums, squares
}

// normalisesLater reports whether a batch normalisation with its ReLU is left to the convolution that reads it, so that no task
// writes the normalised map.
func (l *lowerer) normalisesLater(n *Node) bool {
	if _, ok := n.Layer.(BatchNorm); !ok || !l.opt.Train || n.relu == nil || n.add != nil || len(n.last().readers) != 1 {
		return false
	}
	to := l.of[n.last().readers[0].stage]
	_, convolves := to.Layer.(Conv2D)
	return convolves && !to.with.Has(kernels.Pool)
}

// foldNorm gives a convolution of an evaluation filters and biases that also normalise.
func (l *lowerer) foldNorm(n *Node) {
	from, name := n.Params[0].Shape, n.Params[0].Name
	to := []int{from[2], from[3], from[1], from[0]}
	weights, running := l.carried(n.norm)
	n.weight = weight{shape: to, outputs: 3, inputs: 2}
	n.weight.id = l.b.Buffer(dag.Buffer{Name: name + "." + hwio, Shape: to, Type: l.opt.Type, Layout: hwio})
	bias := l.buffer(n.norm.Name+".folded", l.opt.Type, dag.Activation, from[:1])
	operands := []Operand{{writes(n.weight.id, nil), n.weight.axes()}, {Access: writes(bias, nil)}}
	for _, id := range slices.Concat(n.weights[:1], running[:2], weights, n.weights[1:]) {
		operands = append(operands, Operand{Access: reads(id, nil)})
	}
	l.tiles(n, phaseForward+".fold", "batchnorm.fold", dag.Params{{Name: "eps", Value: n.norm.Layer.(BatchNorm).eps()}}, n.tiles.Forward, operands...)
	n.weights = []dag.BufferID{n.weights[0], bias}
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
	if l.normalisesLater(n) {
		n.out.value, n.out.valueIn, n.out.normal = n.in.value, n.in.valueIn, &n.normal
		return
	}
	operands := []Operand{n.Output(), n.Input(0), {Access: reads(n.normal.scale, nil)}}
	if n.add != nil {
		operands = append(operands, n.Input(1))
	}
	l.tiles(n, phaseForward, "batchnorm.nhwc", n.rectifies(), n.tiles.Forward, operands...)
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
	if n.normal.sums == nil {
		sums, squares := n.moments()
		l.tiles(n, phaseForward+".moments", "moments.nhwc", nil, n.tiles.Forward, sums, squares, n.Input(0))
	}
	params := dag.Params{{Name: "pixels", Value: float64(pixels)}, {Name: "eps", Value: b.eps()}, {Name: "momentum", Value: cmp.Or(b.Momentum, defaultMomentum)}}
	operands := []Operand{scale}
	for _, running := range n.running {
		operands = append(operands, Operand{Access: updates(running, nil)})
	}
	l.tiles(n, phaseForward+".scale", "batchnorm.stats", params, n.tiles.Forward, append(operands, n.normal.sums.read(), n.normal.squares.read(), weight, bias)...)
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
	rectified := n.rectifies()
	if n.add != nil {
		rectified = dag.Params{{Name: "relu", Value: 0}} // the gradient stops where the sums are taken
		operands := []Operand{sums, products, {Access: updates(n.out.gradAt(n.out.all()))}, n.Output(), n.Input(0), scale}
		if n.part != nil {
			operands = append(operands, n.part.gradient())
		}
		l.tiles(n, phaseBackward+".sums", "batchnorm.gate.nhwc", nil, n.tiles.InputGradient, operands...)
	} else {
		l.tiles(n, phaseBackward+".sums", "batchnorm.sums.nhwc", rectified, n.tiles.InputGradient,
			sums, products, n.OutputGrad(), n.Input(0), scale)
	}
	back := l.buffer("grad."+n.Name+".scale", l.opt.Type, dag.Gradient, []int{3, n.Out[0]})
	l.tiles(n, phaseBackward+".weight", "batchnorm.dw", dag.Params{{Name: "pixels", Value: float64(pixels)}}, n.tiles.WeightGradient,
		Operand{reduces(n.grads[0], nil), []dag.Dimension{dag.AlongOutputs}}, Operand{Access: reduces(n.grads[1], nil)}, Operand{Access: writes(back, nil)},
		sums.read(), products.read(), scale)
	if n.in.grad != none {
		l.tiles(n, phaseBackward+".input", "batchnorm.dx.nhwc", rectified, n.tiles.InputGradient,
			n.InputGrad(0), n.OutputGrad(), n.Input(0), scale, Operand{Access: reads(back, nil)})
	}
}
