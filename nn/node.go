package nn

import (
	"fmt"
	"slices"
	"strconv"

	"dahl/dag"
)

// Node is a group of layers while it is lowered. By its methods layers of this and of other modules add their tasks.
type Node struct {
	group
	l      *lowerer
	ins    []tensor // the inputs
	before *tensor  // the input of a flatten that reads a copy in the order of features. Nil means none.
	in     *tensor  // the first input
	out    tensor
	tiles  dag.LayerLowering // no tile is 0 or larger than its extent

	*learned
	part  *tensor // of the gradient of the output, which the layer adds. Nil means the gradient is complete.
	taken bool    // the layer before writes the moments of the input

	restTaken bool // a normalisation behind it adds the part of the other reader to the gradient of the output

	phase string         // phaseForward or phaseBackward
	steps map[string]int // so far, as Tiles counts them
}

// Samples is the number of samples that pass the layer together, the first extent of its values.
func (n *Node) Samples() int { return n.l.size() }

// Type is the type in which the layer computes and keeps sums: the network's, or float32 where activations are bfloat16.
func (n *Node) Type() dag.DType { return n.l.opt.Type.Arithmetic() }

// Trains reports whether the step is one of a training. An evaluation has no backward pass and changes nothing.
func (n *Node) Trains() bool { return n.l.opt.Train }

// Fail records why the layer cannot be lowered, which [Model.Lower] returns.
func (n *Node) Fail(err error) { n.l.b.Fail(fmt.Errorf("layer %q: %w", n.Name, err)) }

// Input is the values of an input.
func (n *Node) Input(input int) Operand { return n.ins[input].values(dag.AlongInputs) }

// Output is the values of the output, which the forward pass writes.
func (n *Node) Output() Operand { return n.out.values(dag.AlongOutputs) }

// OutputGrad is the gradient of the output, which the backward pass reads.
func (n *Node) OutputGrad() Operand { return n.out.gradient(dag.AlongOutputs) }

// InputGrad is the gradient of an input, which the backward pass writes if the input Needs it.
func (n *Node) InputGrad(input int) Operand { return n.ins[input].gradient(dag.AlongInputs) }

// Stops reports whether the gradient of the first input is to be 0 where the input is: it comes out of a ReLU that is fused.
func (n *Node) Stops() bool { return n.in.rectified }

// Map is the C×H×W of a map whose H×W×C are the features of the first input. Nil means that they lie in order. See
// [calls.Mapped].
func (n *Node) Map() []int { return n.in.turned }

// Needs reports whether an input has a gradient.
func (n *Node) Needs(input int) bool { return n.ins[input].grad != none }

// Param is a parameter, as [Stage.Params] counts them.
func (n *Node) Param(param int) Operand {
	return Operand{Region: whole(n.weights[param]).Region, axes: n.paramAxes(param), parameter: true}
}

// ParamGrad is the gradient of a parameter. An operation with both modes, write and change, adds to the sum of other
// tasks.
// Where the layer asks for no gradient, its own tasks have updated all parameters.
func (n *Node) ParamGrad(param int) Operand {
	if n.grads == nil {
		n.sums = n.l.gradients(n)
	}
	of := n.grads[param]
	if param == 0 && of.Box == nil {
		of = whole(n.sums).Region
	}
	return Operand{Region: of, axes: n.paramAxes(param), parameter: true}
}

// paramAxes maps each dimension of a parameter to a dimension of the layer.
func (n *Node) paramAxes(param int) []dag.Dimension {
	if param == 0 && n.packing != nil {
		return n.packing.seen.axes()
	}
	return n.axesOf(&n.Params[param])
}

// axesOf is the axes of a parameter: its own, or outputs behind rows and inputs behind columns where there are as many.
func (s *Stage) axesOf(p *Parameter) []dag.Dimension {
	if p.Axes != nil {
		return p.Axes
	}
	axes := slices.Repeat([]dag.Dimension{NoAxis}, len(p.Shape))
	for d, extent := range []int{Channels(s.Out), Channels(s.In[0])} {
		if d < len(axes) && p.Shape[d] == extent {
			axes[d] = []dag.Dimension{dag.AlongOutputs, dag.AlongInputs}[d]
		}
	}
	return axes
}

// Running is a statistic that the forward pass of a training carries on, as [Stage.Running] counts them.
func (n *Node) Running(statistic int) Operand { return whole(n.running[statistic]) }

// Saved is a buffer of the output's shape, such as a mask, which the forward pass writes and the backward pass
// reads. There is one for each name.
func (n *Node) Saved(name string, kind dag.DType) Operand {
	return n.Buffer(dag.Buffer{Name: n.last().Name + "." + name, Shape: n.out.shape, Type: kind}, n.out.axes(dag.AlongOutputs)...)
}

// Buffer is any other buffer of the layer's own, such as the moments of samples. The first call with a name adds it, and
// later ones find it, also in the backward pass. The axes map its dimensions to dimensions of the layer, along which its
// writer is cut.
func (n *Node) Buffer(b dag.Buffer, axes ...dag.Dimension) Operand {
	b.Name += n.l.now.suffix
	id, there := n.l.b.BufferNamed(b.Name)
	if !there {
		id = n.l.b.Buffer(b)
	}
	return whole(id, axes...)
}

// Keys are numbers by which the layer draws at random, one for each sample and step. The backward pass has the same keys
// as the forward pass.
func (n *Node) Keys() Operand {
	l, batch := n.l, []int{n.l.opt.Batch}
	keys, drawn := l.b.BufferNamed(n.Name + ".keys")
	if !drawn {
		l.ofBatch(func() { keys = l.drawKeys(n) })
	}
	return Operand{Region: regionOf(keys, boxOf(batch, l.now.samples))}
}

// DropoutSeed is the buffer of the seed of a training with [Node.Keys], a whole number of 64 bits.
const DropoutSeed = "dropout.seed"

// drawKeys adds the keys by which all micro-batches draw.
func (l *lowerer) drawKeys(n *Node) dag.BufferID {
	seed, known := l.b.BufferNamed(DropoutSeed)
	if !known {
		seed = l.b.Buffer(dag.Buffer{Name: DropoutSeed, Shape: []int{1}, Type: dag.Int64, Role: dag.State, Home: hostMemory})
	}
	keys := l.buffer(n.Name+".keys", dag.Int64, dag.Activation, []int{l.opt.Batch})
	l.add(dag.Task{
		Name: n.Name + ".forward.keys", Op: "dropout.keys", Params: dag.Params{{Name: "layer", Value: float64(n.stages[0])}},
		Labels: labelsOf(n.Name, phaseForward), Accesses: []dag.Access{writes(keys, nil), reads(seed, nil), reads(l.hyper, nil)},
	})
	return keys
}

// Tiles adds the tasks of an operation, which writes the first operand. The operands are in the order of the operation's.
// They are cut as the lowering cuts the layer's forward pass, its input gradient, or its weight gradient where
// they write the gradient of a parameter.
func (n *Node) Tiles(op string, params dag.Params, operands ...Operand) {
	name := ""
	if operands[0].parameter {
		name = stepWeight
	}
	step := n.phase + name
	if n.steps[step]++; n.steps[step] > 1 {
		name += "." + strconv.Itoa(n.steps[step])
	}
	n.Step(name, op, params, operands...)
}

const stepWeight = ".weight"

// Step is [Node.Tiles] with a name of its own for the step, which begins with a point, as ".moments". It is part of the names of tasks.
func (n *Node) Step(name, op string, params dag.Params, operands ...Operand) {
	pass := dag.ForwardPass
	switch {
	case n.phase == phaseForward:
	case operands[0].parameter:
		pass = dag.WeightGradientPass
	default:
		pass = dag.InputGradientPass
	}
	cut := func(tiles dag.LayerLowering) dag.Cut { return *tiles.Cut(pass) }
	n.l.noteExtents(n, pass, n.l.tiles(n, n.phase+name, op, params, cut, operands...))
}
