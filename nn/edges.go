package nn

import (
	"slices"
	"strconv"

	"dahl/dag"
)

// This file says where the values between layers are, and how the gradient of a value that several
// layers read comes about; see doc.go.

// place gives a group's output its buffer: channels of the output of a concatenation that reads
// it, or one of its own. A view gets its storage from the layer, and so does what its reader normalises.
func (l *lowerer) place(n *Node) {
	if n.out.value != none {
		return // a concatenation, placed with the first of its inputs
	}
	n.out = l.tensor(n.last().Name+".out", n.last().Out)
	if n.last().Traits.Integers {
		n.out.kind = dag.Int32
	}
	n.out.rectified = n.relu != nil && n.pool == nil && n.Traits.Weight
	n.out.stopped = n.add != nil
	if l.slopesLater(n) {
		n.out.function = n.function
	}
	if n.isView() || l.normalisesLater(n) || n.JoinsLoss() {
		return
	}
	if to, input := l.concatenation(n); to != nil {
		l.place(to)
		n.out.value, n.out.valueIn = to.out.value, to.out.valueIn.from(&to.out, to.offset(input))
		return
	}
	n.out.value = l.image(n.out.name, dag.Activation, &n.out)
}

func (n *Node) isView() bool {
	return n.Traits.View || n.Traits.TrainsOnly && !n.l.opt.Train
}

// concatenation is the first reader of a group's output in whose output it can lie: a
// concatenation. A view needs a buffer without gaps.
func (l *lowerer) concatenation(n *Node) (to *Node, input int) {
	for _, r := range n.last().readers {
		reader := l.nodeOf[r.stage]
		if reader.Traits.Joins && to == nil {
			to, input = reader, r.input
		}
		if reader.isView() {
			return nil, 0
		}
	}
	return to, input
}

// read is an input of a group, with its part of the gradient of what it reads.
func (l *lowerer) read(n *Node, input int) tensor {
	from := n.Inputs[input]
	if from == ModelInput {
		return l.samples
	}
	p := l.nodeOf[from]
	x := p.out
	if as := n.readerOf(input); x.grad == none || l.passes(p, as) {
		x.grad = none // of a layer that passes it on, known in the backward pass
	} else if p.writer(l) != as {
		name := l.nameOf(x.grad) + "." + n.Name
		if input > 0 {
			name += "." + strconv.Itoa(input+1)
		}
		x.grad = l.image(name, dag.Gradient, &x)
	}
	return x
}

// passes reports whether the gradient of an input is the gradient of the output, or channels of it. The second input of a
// fused sum has the gradient of the sum.
func (n *Node) passes(input int) bool {
	if n.add != nil {
		return input == 1
	}
	return n.Traits.Passes
}

// passes reports whether a reader of a group's output hands on the gradient of its own output
// without a task.
func (l *lowerer) passes(p *Node, r reader) bool {
	n := l.nodeOf[r.stage]
	return n.passes(n.inputOf(r))
}

// offset is the first channel of an input in the output of a layer with the trait Passes.
func (n *Node) offset(input int) (channel int) {
	if n.Traits.Joins {
		for _, in := range n.In[:input] {
			channel += Channels(in)
		}
	}
	return channel
}

// writer is the reader of a group's output that writes the gradient: the last one with tasks for it. The parts of the
// other readers are added.
func (n *Node) writer(l *lowerer) reader {
	for _, r := range slices.Backward(n.last().readers) {
		if !l.passes(n, r) {
			return r
		}
	}
	return reader{stage: -1}
}

// giveGradient gives a group's output the buffer of its gradient, except where that is the
// gradient of its only reader.
func (l *lowerer) giveGradient(n *Node) {
	readers := n.last().readers
	if !l.opt.Train || !n.last().learns || n.out.grad != none || n.JoinsLoss() || len(readers) == 1 && l.passes(n, readers[0]) {
		return
	}
	name := n.out.name
	switch { // the gradient before the ReLU or the function
	case n.out.rectified, n.out.function != nil:
		name = n.Name + ".out"
	case n.add != nil:
		name = n.add.Name + ".out"
	}
	n.out.grad = l.image("grad."+name, dag.Gradient, &n.out)
}

// passGradient gives the inputs of a layer that passes its gradient their parts of it.
func (n *Node) passGradient() {
	for i, from := range n.Inputs {
		if n.passes(i) && from != ModelInput && n.l.m.Stages[from].learns {
			n.ins[i].grad, n.ins[i].gradIn = n.out.grad, n.out.gradIn.from(&n.out, n.offset(i))
		}
	}
}

// sumGradients completes the gradient of a group's output, after the tasks of all readers. One of
// them has written it; the parts of the others are added from the last to the first.
func (l *lowerer) sumGradients(n *Node) {
	writer := n.writer(l)
	var parts []*tensor
	var names []string
	for _, r := range slices.Backward(n.last().readers) {
		if r == writer || n.restTaken {
			continue
		}
		to := l.nodeOf[r.stage]
		input := to.inputOf(r)
		x, name := &to.ins[input], to.Name
		if to.before != nil {
			x = to.before
		}
		if r.input > 0 {
			name += "." + strconv.Itoa(r.input+1)
		}
		parts, names = append(parts, x), append(names, name)
	}
	if n.out.grad == none {
		n.out.grad, n.out.gradIn = parts[0].grad, parts[0].gradIn
		return
	}
	if written := min(len(parts), 2); writer.stage < 0 && written > 0 {
		l.sum(n, "sum", []string{"copy", "sum"}[written-1], parts[:written])
		parts, names = parts[written:], names[written:]
	}
	if last := len(parts) - 1; n.add != nil && last >= 0 {
		n.part, parts = parts[last], parts[:last] // added where the ReLU stops the gradient
	}
	for i := range parts {
		l.sum(n, "add."+names[i], "add", parts[i:i+1])
	}
}

// sum adds tasks that combine parts of the gradient of a group's output, in the group's tiles.
func (l *lowerer) sum(n *Node, step, op string, parts []*tensor) {
	operands := []Operand{n.OutputGrad()}
	for _, x := range parts {
		operands = append(operands, x.gradient(dag.AlongOutputs))
	}
	l.tiles(n, phaseBackward+"."+step, op, nil, passing, operands...)
}

// passing is the cut of tasks that only pass on or add values of the layer's output.
func passing(tiles dag.LayerLowering) dag.Cut {
	return dag.Cut{Samples: tiles.Forward.Samples, Outputs: tiles.Forward.Outputs}
}
