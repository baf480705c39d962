package nn

import (
	"slices"

	"dahl/dag"
)

// weight is the form in which the tasks of a step see a weight.
type weight struct {
	id              dag.BufferID
	shape           []int
	outputs, inputs int // indices of these dimensions
}

// outputsBox is the part of the weight that some outputs need; nil for the whole.
func (w *weight) outputsBox(r dag.Range) dag.Box { return boxAt(w.shape, w.outputs, r) }

// inputsBox is the part of the weight that some inputs need; nil for the whole.
func (w *weight) inputsBox(r dag.Range) dag.Box { return boxAt(w.shape, w.inputs, r) }

// packing is a copy of a weight in another layout, made once per step. The gradient is summed in
// that layout and copied back once. Parameters and their gradients stay as PyTorch has them.
type packing struct {
	layout   string // of the copy
	op, back string // op fills the copy; back fills the gradient from its copy
	from, to []int  // shapes of weight and copy, both of four dimensions
	outputs  int    // the dimension of to that is dimension 0 of from
	seen     weight // the copy as the kernels see it, without its id

	parameter dag.BufferID // the weight in the shape from, once pack has it

	// beside lists what op also writes, if one task fills the copy.
	beside []dag.Access
}

// parameter is a layer's weight without packing.
func (n *Node) parameter() weight {
	return weight{id: n.weights[0], shape: n.Params[0].Shape, outputs: 0, inputs: 1}
}

// pack makes the packed copy of the weight, in parts of as many outputs as a forward task reads.
func (l *lowerer) pack(n *Node, p packing) {
	name := n.Params[0].Name
	copied := l.b.Buffer(dag.Buffer{Name: name + "." + p.layout, Shape: p.to, Type: l.opt.Type, Layout: p.layout})
	from := l.viewed(n.weights[0], name+"."+dag.NCHW, n.Params[0].Shape, p.from)
	eachRange(p.from[0], n.tiles.Forward.Outputs, func(r dag.Range) {
		accesses := []dag.Access{writes(copied, boxAt(p.to, p.outputs, r)), reads(from, boxOf(p.from, r))}
		l.rangeTask(n, phaseForward, p.op, r, append(accesses, p.beside...)...)
	})
	p.parameter = from
	n.packing = &p
	n.weight = p.seen
	n.weight.id = l.viewed(copied, name+"."+p.layout+".flat", p.to, p.seen.shape)
}

// viewed is a buffer in the wanted shape: itself, or a view of it.
func (l *lowerer) viewed(id dag.BufferID, name string, shape, want []int) dag.BufferID {
	if slices.Equal(shape, want) {
		return id
	}
	return l.b.View(name, id, want...)
}

// weightedForward adds the tasks of a layer with weights: each reads all input
// channels of its samples, and the weights of its output channels.
func (l *lowerer) weightedForward(n *Node, op string, params dag.Params) {
	n.eachTile(&n.out, func(t tile) {
		accesses := []dag.Access{writes(n.out.at(t))}
		if n.pool != nil {
			accesses = append(accesses, writes(n.saved, n.out.box(t)))
		}
		accesses = append(accesses, reads(n.in.at(n.in.samples(t.samples))), reads(n.weight.id, n.weight.outputsBox(t.channels)))
		if len(n.weights) > 1 {
			accesses = append(accesses, reads(n.weights[1], boxOf(n.Params[1].Shape, t.channels)))
		}
		l.task(n, phaseForward, op, params, t, accesses...)
	})
}

// weightGradients adds the gradients of weight and bias, in parts of outputs, each
// summed over tiles of samples. dy returns a task's accesses to the gradient of the layer's
// output.
func (l *lowerer) weightGradients(n *Node, op string, params dag.Params, dy func(tile) []dag.Access) {
	sums := l.gradients(n)
	n.out.eachTile(n.tiles.WeightGradient.Samples, n.tiles.WeightGradient.Outputs, func(t tile) {
		accesses := append([]dag.Access{reduces(sums, n.weight.outputsBox(t.channels))}, dy(t)...)
		accesses = append(accesses, reads(n.in.at(n.in.samples(t.samples))))
		if len(n.grads) > 1 {
			accesses = append(accesses, reduces(n.grads[1], boxOf(n.Params[1].Shape, t.channels)))
		}
		l.task(n, phaseBackward+".weight", op, params, t, accesses...)
	})
	if p := n.packing; p != nil {
		name := "grad." + n.Params[0].Name
		to := l.viewed(n.grads[0], name+"."+dag.NCHW, n.Params[0].Shape, p.from)
		copied, _ := l.b.BufferNamed(name + "." + p.layout)
		eachRange(p.from[0], n.tiles.WeightGradient.Outputs, func(r dag.Range) {
			l.rangeTask(n, phaseBackward, p.back, r, writes(to, boxOf(p.from, r)), reads(copied, boxAt(p.to, p.outputs, r)))
		})
	}
}

// gradients adds the buffers of the gradients. It returns the buffer in which weight gradients
// are summed: the gradient itself, or its packed copy.
func (l *lowerer) gradients(n *Node) dag.BufferID {
	for i, p := range n.Params {
		buf := dag.Buffer{Name: "grad." + p.Name, Shape: p.Shape, Type: l.opt.Type, Role: dag.Gradient, Accumulators: n.tiles.WeightGradient.Accumulators}
		if i == 0 && n.packing != nil {
			buf.Accumulators = 0
		}
		n.grads = append(n.grads, l.b.Buffer(buf))
	}
	p := n.packing
	if p == nil {
		return n.grads[0]
	}
	name := "grad." + n.Params[0].Name + "." + p.layout
	sums := l.b.Buffer(dag.Buffer{
		Name: name, Shape: p.to, Type: l.opt.Type, Role: dag.Gradient, Layout: p.layout, Accumulators: n.tiles.WeightGradient.Accumulators,
	})
	return l.viewed(sums, name+".flat", p.to, n.weight.shape)
}

// inputGradient adds the gradient of a weighted layer's input, from the gradient of its output
// and a weight. It sums over all outputs, so it is split by samples and inputs. It has as many
// parts of inputs as the forward pass has parts of outputs. If the input comes out of a fused
// ReLU, the task reads it to stop the gradient at zeros.
func (l *lowerer) inputGradient(n *Node, op string, dy *tensor, w *weight) {
	n.in.eachTile(n.tiles.InputGradient.Samples, n.tiles.InputGradient.Inputs, func(t tile) {
		accesses := []dag.Access{writes(n.in.gradAt(t)), reads(dy.gradAt(dy.samples(t.samples))), reads(w.id, w.inputsBox(t.channels))}
		if n.in.rectified {
			accesses = append(accesses, reads(n.in.at(t)))
		}
		l.task(n, phaseBackward+".input", op, n.params, t, accesses...)
	})
}

// states adds the buffers of the optimiser's state of a parameter.
func (l *lowerer) states(p *Parameter) []dag.BufferID {
	var states []dag.BufferID
	for _, s := range l.opt.Optimizer.states() {
		states = append(states, l.b.Buffer(dag.Buffer{
			Name: "state." + p.Name + "." + s, Shape: p.Shape, Type: l.opt.Type, Role: dag.State, Home: hostMemory,
		}))
	}
	return states
}

// updates adds the optimiser's tasks for a layer's parameters whose gradient is in memory. A
// weight is split like its gradient. A bias is small and updated at once.
func (l *lowerer) updates(n *Node) {
	o := l.opt.Optimizer
	params := o.params()
	for i, grad := range n.grads {
		p := &n.Params[i]
		states := l.states(p)
		n.eachUpdate(i, func(r dag.Range) {
			box := boxOf(p.Shape, r)
			accesses := []dag.Access{updates(n.weights[i], box), reads(grad, box), reads(l.hyper, nil)}
			for _, s := range states {
				accesses = append(accesses, updates(s, box))
			}
			l.add(dag.Task{
				Name: n.Name + ".update." + n.short(p) + "[" + rangeText(r) + "]", Op: o.operation(), Params: params,
				Labels: labelsOf(n.Name, phaseUpdate), Accesses: accesses,
			})
		})
	}
}

// eachUpdate visits the rows of a parameter that a task updates.
func (n *Node) eachUpdate(param int, visit func(dag.Range)) {
	shape, size := n.Params[param].Shape, n.tiles.WeightGradient.Outputs
	if len(shape) == 1 {
		size = shape[0]
	}
	eachRange(shape[0], size, visit)
}

// short is the name of a parameter within its layer.
func (n *Node) short(p *Parameter) string { return p.Name[len(n.Name)+1:] }

// updatesAtOnce reports whether the tasks that compute the gradients of a layer's weight and bias
// also update them. The layer has an operation for that under stochastic gradient descent, if no
// gradient is summed over several tasks, and none has to wait for the norm of all.
func (l *lowerer) updatesAtOnce(n *Node) bool {
	_, isSGD := l.opt.Optimizer.(SGD)
	return l.opt.Lowering.Fused && isSGD && l.m.Defaults.ClipNorm == 0 && len(n.weights) == 2 && n.tiles.WeightGradient.Samples >= l.opt.Batch
}

// gradientUpdates adds these tasks, in parts of outputs. params and dy are those of the
// gradient by itself. The tasks see packed weights in the packed dimensions, and features that
// were flattened channels last as the map that they are.
func (l *lowerer) gradientUpdates(n *Node, op string, params dag.Params, dy func(tile) []dag.Access) {
	params = slices.Concat(params, l.opt.Optimizer.params())
	var states [2][]dag.BufferID
	for i := range states {
		states[i] = l.states(&n.Params[i])
	}
	w := n.parameter()
	x := func() (dag.BufferID, dag.Box) { return n.in.at(n.in.samples(dag.Range{Hi: l.opt.Batch})) }
	if p := n.packing; p != nil {
		for j, s := range states[0] {
			states[0][j] = l.viewed(s, l.b.BufferAt(s).Name+"."+dag.NCHW, w.shape, p.from)
		}
		w.id, w.shape = p.parameter, p.from
	}
	if n.in.turned != nil {
		image := l.b.View(l.newName(n.in.name+"."+dag.NHWC, n), n.in.value, batchShape(l.opt.Batch, n.in.turned, dag.NHWC)...)
		x = func() (dag.BufferID, dag.Box) { return image, nil }
	}
	n.out.eachTile(l.opt.Batch, n.tiles.WeightGradient.Outputs, func(t tile) {
		weight, bias := w.outputsBox(t.channels), boxOf(n.Params[1].Shape, t.channels)
		accesses := []dag.Access{updates(w.id, weight), updates(n.weights[1], bias)}
		accesses = append(accesses, dy(t)...)
		accesses = append(accesses, reads(x()), reads(l.hyper, nil))
		for j := range states[0] {
			accesses = append(accesses, updates(states[0][j], weight), updates(states[1][j], bias))
		}
		l.task(n, phaseBackward+".weight", op, params, t, accesses...)
	})
}
