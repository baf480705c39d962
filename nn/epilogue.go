package nn

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
)

// This file has what operations of a transformer compute with each other where a lowering says [dag.Lowering.Epilogues]: the function behind a dense layer, the slope of that function
// where the gradient of the next dense layer's input is written, and around a layer normalisation the sum before it and the sum of gradients behind it. All have the bits of the
// operations by themselves.

// epilogues reports whether a lowering asks for these operations. Devices that share a stage have none of them, since they may share the two layers in different ways.
func epilogues(l *dag.Lowering) bool {
	return l.Epilogues && l.Fold.Tensor == 0 && !slices.ContainsFunc(l.Stages, func(s dag.Stage) bool { return s.Shared() })
}

// Epilogues reports whether a lowering may say so to some effect.
func (m *Model) Epilogues() bool {
	with, without := dag.Lowering{Epilogues: true}, dag.Lowering{}
	return len(m.groups(&with)) < len(m.groups(&without)) ||
		slices.ContainsFunc(m.Stages, func(s Stage) bool { return s.Traits.Takes.Has(calls.Sum) })
}

// computesFunction reports whether the tasks of a layer compute the function behind it: the two are computed again together, or not at all.
func (m *Model) computesFunction(stages []int, l *dag.Lowering) bool {
	first, function := m.Stages[stages[0]].Name, m.Stages[stages[1]].Name
	return epilogues(l) && l.Recomputes(first) == l.Recomputes(function)
}

// BeforeFunction is the values before a fused function, which the forward pass of a training keeps.
func (n *Node) BeforeFunction() Operand {
	if n.out.before == nil {
		z := n.l.tensor(n.Name+".out", n.Out)
		z.value = n.l.image(z.name, dag.Activation, &z)
		n.out.before = &z
	}
	return n.out.before.values(dag.AlongOutputs)
}

// slopesLater reports whether the only reader of a fused function is a layer that multiplies the gradient by the slope.
func (l *lowerer) slopesLater(n *Node) bool {
	if n.function == nil || !l.opt.Train || len(n.last().readers) != 1 {
		return false
	}
	to := l.nodeOf[n.last().readers[0].stage]
	return to.Traits.Slopes && !to.sumsOutputs(&l.opt.Lowering) && !to.JoinsLoss()
}

// SlopesLater reports whether the layer behind a fused function multiplies the gradient by its slope.
func (n *Node) SlopesLater() bool { return n.out.function != nil }

// Slope is the function out of which the first input comes, if the layer multiplies the gradient of this input by its slope, and the values before the
// function, or the input itself where these are not kept.
func (n *Node) Slope() (function *Stage, at Operand, multiplies bool) {
	if n.in.function == nil {
		return nil, Operand{}, false
	}
	x := n.in
	if x.before != nil {
		x = x.before
	}
	return n.in.function, x.values(dag.AlongInputs), true
}

// LeavesSum reports whether a sum of two is left to the normalisation that reads it first.
func (n *Node) LeavesSum() bool { return n.l.addsLater(n) != nil }

// addsLater is the normalisation whose tasks compute a sum, or nil.
func (l *lowerer) addsLater(n *Node) *Node {
	if !epilogues(&l.opt.Lowering) || !n.Traits.Passes || n.Traits.Joins || len(n.stages) > 1 || len(n.Inputs) != 2 || len(n.readers) == 0 {
		return nil
	}
	to := l.nodeOf[n.readers[0].stage]
	if !to.Traits.Takes.Has(calls.Sum) || !l.together(n.Name, to.Name) {
		return nil
	}
	return to
}

// together reports whether two layers are in one stage, and computed again together or not at all.
func (l *lowerer) together(a, b string) bool {
	of := &l.opt.Lowering
	return (of.Stages == nil || l.stageOf(a) == l.stageOf(b)) && of.Recomputes(a) == of.Recomputes(b)
}

// Summands are the two values of which the first input is the sum, if the layer computes this sum, too.
func (n *Node) Summands() (x, rest Operand, adds bool) {
	if n.Inputs[0] == ModelInput {
		return x, rest, false
	}
	sum := n.l.nodeOf[n.Inputs[0]]
	if n.l.addsLater(sum) != n {
		return x, rest, false
	}
	return sum.ins[0].values(dag.AlongInputs), sum.ins[1].values(dag.AlongInputs), true
}

// TakeRest is the part of another reader of the first input in the gradient of this input, which the layer's own tasks have to add. Only a reader behind the
// layer that passes its gradient on has one by then.
func (n *Node) TakeRest() (rest Operand, takes bool) {
	l := n.l
	if !epilogues(&l.opt.Lowering) || n.Inputs[0] == ModelInput {
		return rest, false
	}
	from, own := l.nodeOf[n.Inputs[0]], reader{n.stages[0], 0}
	readers := from.last().readers
	if len(readers) != 2 || from.add != nil || readers[0] != own || !l.passes(from, readers[1]) || !l.together(n.Name, from.Name) {
		return rest, false
	}
	to := l.nodeOf[readers[1].stage]
	x := &to.ins[to.inputOf(readers[1])]
	if x.grad == none || to.before != nil || !l.together(n.Name, to.Name) {
		return rest, false
	}
	from.restTaken = true
	return x.gradient(dag.AlongInputs), true
}
