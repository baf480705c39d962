package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
)

// Conv2D is a convolution (cross-correlation, as PyTorch's), with w of shape (filters, channels/groups,
// kernel, kernel). Kernel, Pad and Stride are of rows and of columns, unless Columns and Pads say
// otherwise. Taps of the kernel are Dilation pixels apart. The filters of each of so many Groups see
// the channels of that group alone. A Stride, a Dilation and Groups of 0 mean 1.
type Conv2D struct {
	Filters, Kernel, Pad, Stride int
	Dilation, Groups             int
	Columns                      Columns
	Pads                         Pads
	NoBias                       bool
}

// Kind implements [Layer].
func (Conv2D) Kind() string { return "conv2d" }

// conv2dOf is the layer that a model file describes.
func conv2dOf(s Settings) Layer {
	c := Conv2D{Filters: s.count("filters"), Groups: s.count("groups"), NoBias: s["bias"] == 0}
	c.Kernel, c.Columns.Size = s.pair("kernel")
	c.Stride, c.Columns.Stride = s.pair("stride")
	c.Dilation, c.Columns.Dilation = s.pair("dilation")
	c.Pad, c.Pads = s.pads("pad")
	return c
}

func (c Conv2D) windows() [2]window {
	return windowsOf(Columns{c.Kernel, c.Stride, c.Dilation}, c.Pad, c.Columns, c.Pads)
}

// Traits are those of a layer with weights.
func (c Conv2D) Traits() Traits {
	return Traits{Weight: true, Grouped: c.groups() > 1, Takes: calls.Norm}
}

func (c Conv2D) groups() int { return max(c.Groups, 1) }

// Output implements [Layer].
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
	return slid(in, c.Filters, c.windows())
}

// Params implements [Learner].
func (c Conv2D) Params(in [][]int) []Parameter {
	channels, w := in[0][0]/c.groups(), c.windows()
	fanIn := channels * w[0].size * w[1].size
	p := []Parameter{{Name: "weight", Shape: []int{c.Filters, channels, w[0].size, w[1].size}, FanIn: fanIn}}
	if !c.NoBias {
		p = append(p, Parameter{Name: "bias", Shape: []int{c.Filters}, FanIn: fanIn})
	}
	return p
}

// Flops implements [Layer].
func (c Conv2D) Flops(in [][]int, out []int) float64 {
	return 2 * float64(elems(out)) * float64(c.Params(in)[0].FanIn)
}

// Forward implements [Layer].
func (c Conv2D) Forward(n *Node) {
	l := n.l
	n.params = windowParams(c.windows())
	if c.groups() > 1 {
		n.params = append(n.params, dag.Param{Name: "groups", Value: float64(c.Groups)})
	}
	rectify := dag.Param{Name: "relu", Value: flag(n.relu != nil)}
	if n.norm != nil {
		l.foldNorm(n)
		n.weightedForward("conv2d.nhwc", n.paramsAnd(rectify), n.Output())
		return
	}
	from := n.Params[0].Shape
	to := []int{from[2], from[3], from[1], from[0]}
	p := packing{layout: hwio, op: hwio, back: "oihw", from: from, to: to, outputs: 3, seen: weight{shape: to, outputs: 3, inputs: 2}}
	if l.turnsAtOnce(n) {
		n.turned = l.turned(n)
		p.beside = []dag.Access{writes(n.turned.id, nil)}
	}
	l.pack(n, p)
	params, written := n.paramsAnd(rectify), []Operand{n.Output()}
	if n.with.Has(calls.Pool) {
		params, written = n.withPool(), append(written, n.poolIndex())
	} else if norm := l.momentsFor(n); norm != nil {
		sums, squares := norm.moments()
		norm.normal.taken = true
		n.with |= calls.Moments
		written = []Operand{sums, squares, n.Output()}
	}
	n.weightedForward("conv2d.nhwc", params, written...)
}

// paramsAnd are the parameters that the layer's tasks share, and more.
func (n *Node) paramsAnd(more ...dag.Param) dag.Params { return slices.Concat(n.params, more) }

// withPool is the parameters of operations that also pool the convolution's output.
func (n *Node) withPool() dag.Params {
	p := n.pool.Layer.(MaxPool)
	return n.paramsAnd(dag.Param{Name: "size", Value: float64(p.Size)}, dag.Param{Name: "step", Value: float64(p.windows()[0].stride)})
}

// poolIndex is where the maxima of a fused pooling are.
func (n *Node) poolIndex() Operand {
	return n.Buffer(dag.Buffer{Name: n.pool.Name + ".index", Shape: n.out.shape, Type: dag.Uint8})
}

// Backward implements [Layer].
func (c Conv2D) Backward(n *Node) {
	l := n.l
	with, params, gradient := n.with&calls.Norm, n.params, []Operand{n.OutputGrad()}
	if n.with.Has(calls.Pool) && n.Needs(0) {
		gradient[0] = l.unpool(n)
	} else if n.with.Has(calls.Pool) { // the gradient before pooling is never needed as a whole
		with, params = with|calls.Pool, n.withPool()
		gradient = append(gradient, n.poolIndex())
	}
	n.weightedBackward("conv2d.nhwc.dw", with, params, func() {
		if n.turned == nil {
			n.turned = l.turn(n)
		}
		n.inputGradient("conv2d.nhwc.dx", gradient[0], n.turned)
	}, gradient...)
}

// unpool adds the gradient of the input of a fused max-pooling.
func (l *lowerer) unpool(n *Node) Operand {
	dy := l.tensor(n.Name+".out", n.Out)
	dy.grad = l.image("grad."+n.Name+".out", dag.Gradient, &dy)
	p := n.pool.Layer.(MaxPool)
	cut := mirrored(n.tiles.Forward, n.last().Out, n.Out)
	cut.Outputs = n.tiles.Forward.Outputs
	written := dy.gradient(dag.AlongOutputs)
	l.tiles(n, phaseBackward+".pool", "maxpool.nhwc.dx", p.params(), cut, written, n.OutputGrad(), n.poolIndex())
	return written
}

// turnsAtOnce reports whether the task that packs the weight also turns it. It does in a
// training step of layers that are not split, where fewer tasks are better.
func (l *lowerer) turnsAtOnce(n *Node) bool {
	whole := n.tiles.Forward.Samples >= l.size() && n.tiles.Forward.Outputs >= n.out.channels()
	return n.packing == nil && l.opt.Train && whole && n.in.grad != none
}

// turned is the weight for input gradients over channels-last images.
func (l *lowerer) turned(n *Node) *weight {
	from := n.Params[0].Shape
	w := &weight{shape: []int{from[2], from[3], from[0], from[1]}, outputs: 2, inputs: 3}
	w.id = l.b.Buffer(dag.Buffer{Name: n.Params[0].Name + "." + hwoi, Shape: w.shape, Type: l.opt.Type, Layout: hwoi})
	return w
}

// turn fills it, in parts of as many input channels as a task of the gradient writes.
func (l *lowerer) turn(n *Node) *weight {
	w, from := l.turned(n), n.Params[0].Shape
	l.ofBatch(func() {
		eachRange(from[1], n.tiles.InputGradient.Inputs, func(r dag.Range) {
			l.rangeTask(n, phaseBackward, hwoi, r, writes(w.id, w.inputsBox(r)), reads(n.weights[0], boxAt(from, 1, r)))
		})
	})
	return w
}
