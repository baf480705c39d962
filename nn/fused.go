package nn

import (
	"dahl/dag"
	"dahl/kernels/calls"
)

// This file has the methods of [Node] for layers that are computed together.

// Fused is the layer of a type that the tasks of this layer also compute. Nil means that there is none. See [Fuser].
func (n *Node) Fused(like Layer) *Stage {
	for _, s := range n.stages[1:] {
		if s := &n.l.m.Stages[s]; sameType(s.Layer, like) {
			return s
		}
	}
	return nil
}

// StateOf is the parameters and the running statistics of a fused layer.
func (n *Node) StateOf(fused *Stage) (params, running []Operand) {
	operands := func(ids []dag.BufferID) (all []Operand) {
		for _, id := range ids {
			all = append(all, whole(id))
		}
		return all
	}
	weights, statistics := n.l.carried(fused)
	return operands(weights), operands(statistics)
}

// GradBefore adds the gradient of the layer's own output, before a fused layer, by an operation that reads the operands. The step has a name that begins with a point, as
// ".pool".
func (n *Node) GradBefore(step, op string, params dag.Params, reads ...Operand) Operand {
	l := n.l
	dy := l.tensor(n.Name+".out", n.Out)
	dy.grad = l.image("grad."+n.Name+".out", dag.Gradient, &dy)
	cut := func(tiles dag.LayerLowering) dag.Cut {
		cut := mirrored(tiles.Forward, n.last().Out, n.Out)
		cut.Outputs = tiles.Forward.Outputs
		return cut
	}
	written := dy.gradient(dag.AlongOutputs)
	l.tiles(n, phaseBackward+step, op, params, cut, append([]Operand{written}, reads...)...)
	return written
}

// RestGrad is a part of the gradient of the output that OutputGrad lacks. The backward pass of a sum that is fused adds it.
func (n *Node) RestGrad() (rest Operand, lacks bool) {
	if n.part == nil {
		return Operand{}, false
	}
	return n.part.gradient(dag.AlongOutputs), true
}

// Moments are the buffers of sums and of sums of squares over each channel of the samples that a normalisation reads. If the layer
// before it takes them, they are there.
func (n *Node) Moments() (sums, squares Operand, taken bool) {
	bySample := func(name string) Operand {
		return n.Buffer(dag.Buffer{Name: n.Name + name, Shape: []int{n.Samples(), n.Out[0]}, Type: n.Type()}, dag.AlongSamples, dag.AlongOutputs)
	}
	return bySample(".sum"), bySample(".squares"), n.taken
}

// TakeMoments are [Node.Moments] of the normalisation that alone reads the output. The layer's tasks then have to write
// them. There are none where
// another layer reads it, or tasks have some rows or columns, or some of a sum.
func (n *Node) TakeMoments() (sums, squares Operand, wanted bool) {
	l := n.l
	if !l.opt.Train || l.opt.Unfused || n.relu != nil || len(n.readers) != 1 {
		return sums, squares, false
	}
	of := extents(n.Out)
	if f := n.tiles.Forward; f.Inputs < Channels(n.In[0]) && !n.Traits.Grouped || clip(f.Rows, of[1]) < of[1] || clip(f.Columns, of[2]) < of[2] {
		return sums, squares, false
	}
	norm := l.nodeOf[n.readers[0].stage]
	if !norm.Traits.Normalises {
		return sums, squares, false
	}
	sums, squares, _ = norm.Moments()
	norm.taken = true
	return sums, squares, true
}

// Leave leaves a normalisation and its ReLU to the layer behind it, if the trait Takes of that layer allows it. Scale says
// how to normalise.
func (n *Node) Leave(scale Operand) (left bool) {
	if !n.l.normalisesLater(n) {
		return false
	}
	n.out.value, n.out.valueIn, n.out.normal = n.in.value, n.in.valueIn, &scale
	return true
}

// normalisesLater reports whether a batch normalisation with its ReLU is left to the convolution that reads it, so that no task
// writes the normalised map.
func (l *lowerer) normalisesLater(n *Node) bool {
	if !n.Traits.Normalises || !l.opt.Train || n.relu == nil || n.add != nil || len(n.last().readers) != 1 {
		return false
	}
	to := l.nodeOf[n.last().readers[0].stage]
	return to.Traits.Takes.Has(calls.Norm) && to.pool == nil
}

// MeetsAll reports whether each task of the input gradient has all positions of its samples, as queries and as keys. One operation may
// then compute what else is one of queries and one of keys.
func (n *Node) MeetsAll() bool {
	if n.l.opt.Unfused || n.l.opt.apart || n.l.sharing(n.Name) != nil && n.l.sharedAlong(n.Name) == dag.AlongRows {
		return false
	}
	return n.meetsAll(n.tiles)
}

func (n *Node) meetsAll(tiles dag.LayerLowering) bool {
	g, positions := tiles.InputGradient, n.Out[0]
	return clip(g.Rows, positions) == positions && clip(g.Columns, positions) == positions
}
