package nn

import (
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// weight is the form in which the tasks of a step see a weight.
type weight struct {
	id              dag.BufferID
	shape           []int
	outputs, inputs int // indices of these dimensions
}

// inputsBox is the part of the weight that some inputs need; nil for the whole.
func (w *weight) inputsBox(r dag.Range) dag.Box { return boxAt(w.shape, w.inputs, r) }

// packing is a copy of a weight in another layout, made once per step. The gradient is summed in
// that layout and copied back once. Parameters and their gradients stay as PyTorch has them.
type packing struct {
	layout   string // of the copy
	op, back string // op fills the copy; back fills the gradient from its copy
	from, to []int  // shapes of weight and copy, both of four dimensions
	outputs  int    // the dimension of to that is dimension 0 of from
	seen     weight // the copy as the kernels see it, with its id once pack has it

	parameter dag.BufferID // the weight in the shape from, once pack has it

	// beside lists what op also writes, if one task fills the copy.
	beside []dag.Access
}

// parameter is a layer's weight without packing.
func (n *Node) parameter() weight {
	return weight{id: n.weights[0], shape: n.Params[0].Shape, outputs: 0, inputs: 1}
}

// pack makes the packed copy of the weight, in parts of as many outputs as a forward task reads. All micro-batches
// read that of the first.
func (l *lowerer) pack(n *Node, p packing) {
	if n.packing == nil {
		l.ofBatch(func() { l.copyWeight(n, &p) })
		n.packing = &p
	}
	n.weight = n.packing.seen
}

func (l *lowerer) copyWeight(n *Node, p *packing) {
	name := n.Params[0].Name
	copied := l.b.Buffer(dag.Buffer{Name: name + "." + p.layout, Shape: p.to, Type: l.opt.Type, Layout: p.layout})
	from := l.viewed(n.weights[0], name+"."+nchw, n.Params[0].Shape, p.from)
	eachRange(p.from[0], n.tiles.Forward.Outputs, func(r dag.Range) {
		accesses := []dag.Access{writes(copied, boxAt(p.to, p.outputs, r)), reads(from, boxOf(p.from, r))}
		l.rangeTask(n, phaseForward, p.op, r, append(accesses, p.beside...)...)
	})
	p.parameter = from
	p.seen.id = l.viewed(copied, name+"."+p.layout+".flat", p.to, p.seen.shape)
}

// viewed is a buffer in the wanted shape: itself, or a view of it.
func (l *lowerer) viewed(id dag.BufferID, name string, shape, want []int) dag.BufferID {
	if slices.Equal(shape, want) {
		return id
	}
	return l.b.View(name, id, want...)
}

// axes are what the dimensions of the weight are of its layer.
func (w *weight) axes() []dag.Dimension {
	axes := slices.Repeat([]dag.Dimension{NoAxis}, len(w.shape))
	axes[w.outputs], axes[w.inputs] = dag.AlongOutputs, dag.AlongInputs
	return axes
}

// data is the input that the layer multiplies by its weights, and how it is normalised before.
func (n *Node) data() []Operand {
	if n.in.normal == nil {
		return []Operand{n.Input(0)}
	}
	return []Operand{n.Input(0), n.in.normal.scale}
}

// weightedForward adds the tasks of a layer with weights, by an operation with the attributes of its group.
func (n *Node) weightedForward(op string, params dag.Params, written ...Operand) {
	operands := append(append(written, n.data()...), whole(n.weight.id))
	if len(n.weights) > 1 {
		operands = append(operands, whole(n.weights[1])) // which may be that of a folded normalisation
	}
	n.Tiles(kernels.Written(op, n.with), params, operands...)
}

// weightedBackward adds the gradients of a layer with weights, by an operation with some attributes. Where its tasks also update
// the weight they come behind those of the input's gradient, which read the old weight.
func (n *Node) weightedBackward(op string, with calls.Attributes, params dag.Params, ofInput func(), dy ...Operand) {
	atOnce := n.l.updatesAtOnce(n)
	if !atOnce {
		n.weightGradients(kernels.Written(op, with), params, dy...)
	}
	if n.Needs(0) {
		ofInput()
	}
	if atOnce {
		n.l.gradientUpdates(n, op, with, params, dy...)
	}
}

// weightGradients adds the gradients of weight and bias, each in parts of outputs and inputs and summed over
// tiles of samples, rows and columns. dy is the operands that say the gradient of the layer's output.
func (n *Node) weightGradients(op string, params dag.Params, dy ...Operand) {
	operands := slices.Concat([]Operand{n.ParamGrad(0)}, dy, n.data())
	if len(n.grads) > 1 {
		operands = append(operands, n.ParamGrad(1))
	}
	n.Tiles(op, params, operands...)
	if l := n.l; n.packing != nil && l.isLast() {
		l.ofBatch(func() { l.unpack(n, n.packing) })
	}
}

// unpack copies the sum of a weight's gradient to its usual layout.
func (l *lowerer) unpack(n *Node, p *packing) {
	name := "grad." + n.Params[0].Name
	to := l.viewed(n.grads[0], name+"."+nchw, n.Params[0].Shape, p.from)
	copied, _ := l.b.BufferNamed(name + "." + p.layout)
	eachRange(p.from[0], n.tiles.WeightGradient.Outputs, func(r dag.Range) {
		l.rangeTask(n, phaseBackward, p.back, r, writes(to, boxOf(p.from, r)), reads(copied, boxAt(p.to, p.outputs, r)))
	})
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
// and a weight. If the input comes out of a fused ReLU, the task reads it to stop the gradient at zeros.
func (n *Node) inputGradient(op string, dy Operand, w *weight) {
	operands := []Operand{n.InputGrad(0), dy, whole(w.id)}
	if n.in.rectified {
		operands = append(operands, n.Input(0))
	}
	n.Step(".input", op, n.params, operands...)
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
		if p.Of != "" {
			continue // the layer that has it first updates it
		}
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
func (s *Stage) short(p *Parameter) string { return p.Name[len(s.StateName)+1:] }

// updatesAtOnce reports whether the tasks that compute the gradients of a layer's parameters
// also update them. The layer has an operation for that under stochastic gradient descent, if no
// gradient is summed over several tasks or layers, and none has to wait for the norm of all.
func (l *lowerer) updatesAtOnce(n *Node) bool {
	_, isSGD := l.opt.Optimizer.(SGD)
	return isSGD && l.m.Defaults.ClipNorm == 0 && !n.shared && n.gradientWhole()
}

// gradientWhole reports whether each part of the weight gradient has all samples, rows and columns, and all inputs.
func (n *Node) gradientWhole() bool {
	g, of := n.tiles.WeightGradient, extents(n.last().Out)
	if n.pool != nil && n.in.grad != none { // the gradient before the pooling is in memory
		of = extents(n.Out)
	}
	return g.Samples >= n.l.opt.Batch && g.Inputs >= n.In[0][0] && clip(g.Rows, of[1]) == of[1] && clip(g.Columns, of[2]) == of[2]
}

// gradientUpdates adds these tasks, in parts of outputs. op, with, params and dy are those of the gradient by itself. The
// tasks see packed weights in the packed dimensions, and features that were flattened channels last as the map that they are.
func (l *lowerer) gradientUpdates(n *Node, op string, with calls.Attributes, params dag.Params, dy ...Operand) {
	with |= calls.SGD
	params = slices.Concat(params, l.opt.Optimizer.params())
	w, x, states := n.parameter(), n.data(), l.states(&n.Params[0])
	if p := n.packing; p != nil {
		for j, s := range states {
			states[j] = l.viewed(s, l.b.BufferAt(s).Name+"."+nchw, w.shape, p.from)
		}
		w.id, w.shape = p.parameter, p.from
	}
	if n.in.turned != nil {
		with |= calls.Mapped
		x[0] = whole(l.b.View(l.newName(n.in.name+"."+nhwc, n), n.in.value, batchShape(l.size(), n.in.turned)...))
	}
	operands := append([]Operand{{whole(w.id).Region, w.axes(), true}}, dy...)
	operands = append(append(operands, x...), whole(l.hyper))
	if len(n.weights) > 1 {
		operands = append(operands, n.Param(1))
		states = append(states, l.states(&n.Params[1])...)
	} else {
		with |= calls.NoBias
	}
	for _, s := range states {
		operands = append(operands, whole(s))
	}
	n.Tiles(kernels.Written(op, with), params, operands...)
}
