package nn

import (
	"strconv"

	"dahl/dag"
)

// Node is a group of layers while it is lowered. Its methods are what layers of other modules need
// to add their tasks.
type Node struct {
	group
	l      *lowerer
	ins    []tensor // the inputs
	before *tensor  // the input of a flatten that reads a copy in the order of features; nil: none
	in     *tensor  // the first input
	out    tensor
	tiles  dag.LayerLowering // no tile is 0 or larger than its extent

	*learned
	weight weight       // form in which forward reads the weight and the gradient is summed
	saved  dag.BufferID // data that backward needs beside in: a mask or an index
	params dag.Params   // shared by the layer's tasks
	normal normal       // of a batch normalisation
	part   *tensor      // of the gradient of the output, which the layer adds; nil: the gradient is complete

	phase string // phaseForward or phaseBackward
	steps int    // of the phase so far, as Tiles counts them
}

// Input is the values of an input, which tasks read.
func (n *Node) Input(input int) Operand {
	x := &n.ins[input]
	return Operand{reads(x.at(x.all())), x.axes(dag.AlongInputs)}
}

// Output is the values of the output. The forward pass writes them, the backward pass reads them.
func (n *Node) Output() Operand {
	id, box := n.out.at(n.out.all())
	return Operand{access(id, box, n.mode()), n.out.axes(dag.AlongOutputs)}
}

// Saved is a buffer of the output's shape beside it, such as a mask, which the forward pass writes
// and the backward pass reads. A layer has at most one.
func (n *Node) Saved(name string, kind dag.DType) Operand {
	if n.saved == none {
		n.saved = n.l.buffer(n.Name+"."+name, kind, dag.Activation, n.out.shape)
	}
	return Operand{access(n.saved, nil, n.mode()), n.out.axes(dag.AlongOutputs)}
}

// OutputGrad is the gradient of the output, which the backward pass reads.
func (n *Node) OutputGrad() Operand {
	return Operand{reads(n.out.gradAt(n.out.all())), n.out.axes(dag.AlongOutputs)}
}

// InputGrad is the gradient of an input, which the backward pass writes if the input Needs it.
func (n *Node) InputGrad(input int) Operand {
	x := &n.ins[input]
	return Operand{writes(x.gradAt(x.all())), x.axes(dag.AlongInputs)}
}

// Needs reports whether an input has a gradient.
func (n *Node) Needs(input int) bool { return n.ins[input].grad != none }

func (n *Node) mode() dag.Mode {
	if n.phase == phaseForward {
		return dag.Write
	}
	return dag.Read
}

// Tiles adds the tasks of an operation, which writes the first operand. The operands are in the order of
// the operation's. The cut is that of the layer's forward pass or of its input gradient.
func (n *Node) Tiles(op string, params dag.Params, operands ...Operand) {
	step, cut := n.phase, n.tiles.Forward
	if n.phase == phaseBackward {
		cut = n.tiles.InputGradient
	}
	if n.steps++; n.steps > 1 {
		step += "." + strconv.Itoa(n.steps)
	}
	n.l.tiles(n, step, op, params, cut, operands...)
}
