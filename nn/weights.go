package nn

import (
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// Form is a layout of a weight, named like the operation that fills it.
type Form struct {
	Layout          string
	Shape           []int
	Outputs, Inputs int // indices of these dimensions
}

// Packing is a copy of the first parameter in another layout, made once per step. The gradient is summed in
// that layout and copied back once. Parameters and their gradients stay as PyTorch has them.
type Packing struct {
	Form
	Back   string // the operation that fills the gradient from its copy
	From   []int  // the parameter as both operations see it; if it has another shape, the layer's operations see the copy in that shape
	Turned *Form  // a second copy, which gradients of the input read. Nil means they read the first.
}

// weight is the form in which the tasks of a step see a weight.
type weight struct {
	Form
	id dag.BufferID
}

// packing is a Packing with its buffers.
type packing struct {
	Packing
	seen      weight       // the copy as the kernels see it
	parameter dag.BufferID // the weight in the shape From
}

// parameter is a layer's weight without packing.
func (n *Node) parameter() weight {
	return weight{Form{Shape: n.Params[0].Shape, Outputs: 0, Inputs: 1}, n.weights[0]}
}

// seen is a layer's weight as its operations read it.
func (n *Node) seen() weight {
	if n.packing != nil {
		return n.packing.seen
	}
	return n.parameter()
}

// Weight is the first parameter as the layer's operations read it: the copy of [Node.Pack], if there is one.
func (n *Node) Weight() Operand { return whole(n.seen().id) }

// Pack copies the first parameter, in parts of as many outputs as a forward task reads. All micro-batches
// read the copy of the first.
func (n *Node) Pack(p Packing) {
	if n.packing != nil {
		return
	}
	l := n.l
	turns := p.Turned != nil && l.turnsAtOnce(n)
	l.ofBatch(func() {
		var also []dag.Access
		if turns {
			n.turned = l.form(n, p.Turned)
			also = []dag.Access{writes(n.turned.id, nil)}
		}
		n.packing = &packing{Packing: p}
		l.copyWeight(n, n.packing, also)
	})
}

// copyWeight adds the tasks that fill a copy of the weight. These tasks also write further regions.
func (l *lowerer) copyWeight(n *Node, p *packing, also []dag.Access) {
	shape, name := n.Params[0].Shape, n.Params[0].Name
	copied := l.form(n, &p.Form)
	p.parameter = l.viewed(n.weights[0], name+"."+nchw, shape, p.From)
	along, of, to := l.sharedWeight(n, p.Form)
	l.ranges(n, along, p.From[of], dag.ForwardPass, func(r dag.Range) dag.Task {
		accesses := []dag.Access{writes(copied.id, boxAt(p.Shape, to, r)), reads(p.parameter, boxAt(p.From, of, r))}
		return rangeTask(n, phaseForward, p.Layout, r, append(accesses, also...)...)
	})
	if p.seen = *copied; !slices.Equal(shape, p.From) {
		p.seen = n.parameter()
		p.seen.id = l.viewed(copied.id, name+"."+p.Layout+".flat", p.Shape, shape)
	}
}

// form adds a buffer of the weight in a layout.
func (l *lowerer) form(n *Node, f *Form) *weight {
	return &weight{*f, l.onEach(n, l.b.Buffer(dag.Buffer{Name: n.Params[0].Name + "." + f.Layout, Shape: f.Shape, Type: l.opt.Type, Layout: f.Layout}))}
}

// turnsAtOnce reports whether the task that packs the weight also turns it. It does in a
// training step of layers that are not split, where fewer tasks are better.
func (l *lowerer) turnsAtOnce(n *Node) bool {
	return l.opt.Train && !l.opt.apart && n.in.grad != none && l.sharing(n.Name) == nil && n.forwardWhole(n.tiles)
}

// forwardWhole reports whether a forward task has all samples and outputs.
func (n *Node) forwardWhole(tiles dag.LayerLowering) bool {
	return tiles.Forward.Samples >= n.l.size() && tiles.Forward.Outputs >= n.out.channels()
}

// Turned is the second copy of the weight. If no task has filled it, tasks do so in parts of as many inputs as one
// of the gradient writes.
func (n *Node) Turned() Operand {
	l := n.l
	if n.turned == nil {
		w, from := l.form(n, n.packing.Turned), n.Params[0].Shape
		n.turned = w
		along, dim, at := dag.AlongInputs, 1, w.Inputs
		if s := l.sharing(n.Name); s != nil && l.sharedAlong(n.Name) == dag.AlongOutputs {
			along, dim, at = dag.AlongOutputs, 0, w.Outputs // whose gradients each device has
		}
		l.ofBatch(func() {
			l.ranges(n, along, from[dim], dag.InputGradientPass, func(r dag.Range) dag.Task {
				return rangeTask(n, phaseBackward, w.Layout, r, writes(w.id, boxAt(w.Shape, at, r)), reads(n.weights[0], boxAt(from, dim, r)))
			})
		})
	}
	return whole(n.turned.id)
}

// viewed is a buffer in the wanted shape: itself, or a view of it.
func (l *lowerer) viewed(id dag.BufferID, name string, shape, want []int) dag.BufferID {
	if slices.Equal(shape, want) {
		return id
	}
	view := l.b.View(name, id, want...)
	own, views := l.ofDevices[id], l.ofDevices[view]
	for k := range own {
		of := view
		switch {
		case k > 0 && own[k] == own[k-1]:
			of = views[k-1]
		case k > 0:
			of = l.b.View(deviceName(name, k), own[k], want...)
		}
		views = append(views, of)
	}
	if views != nil {
		l.ofDevices[view] = views
	}
	return view
}

// axes maps each dimension of the weight to a dimension of its layer.
func (w *weight) axes() []dag.Dimension {
	axes := slices.Repeat([]dag.Dimension{NoAxis}, len(w.Shape))
	axes[w.Outputs], axes[w.Inputs] = dag.AlongOutputs, dag.AlongInputs
	return axes
}

// data is the input that the layer multiplies by its weights, and how it is normalised before.
func (n *Node) data() []Operand {
	if n.in.normal == nil {
		return []Operand{n.Input(0)}
	}
	return []Operand{n.Input(0), *n.in.normal}
}

// weighted is the name of an operation over data.
func (n *Node) weighted(op string, with calls.Attributes) string {
	if n.in.normal != nil {
		with |= calls.Norm
	}
	return kernels.Written(op, with)
}

// Multiply adds the forward tasks of a layer with a weight, by an operation with some attributes. It also normalises
// its input where that is left to it.
func (n *Node) Multiply(op string, with calls.Attributes, params dag.Params, written ...Operand) {
	operands := append(append(written, n.data()...), n.Weight())
	if len(n.weights) > 1 {
		operands = append(operands, n.Param(1))
	}
	n.Tiles(n.weighted(op, with), params, operands...)
}

// MultiplyBack adds the gradients of a layer with a weight, by an operation with some attributes. dy is the operands that say the
// gradient of the output, and ofInput adds the tasks of the gradient of the input. Tasks that also update the weight come
// last, since the gradient of the input reads the old weight.
func (n *Node) MultiplyBack(op string, with calls.Attributes, params dag.Params, ofInput func(), dy ...Operand) {
	atOnce := n.l.updatesAtOnce(n)
	if !atOnce {
		n.weightGradients(n.weighted(op, with), params, dy...)
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
	to := l.viewed(n.grads[0], name+"."+nchw, n.Params[0].Shape, p.From)
	copied, _ := l.b.BufferNamed(name + "." + p.Layout)
	along, of, at := l.sharedWeight(n, p.Form)
	l.ranges(n, along, p.From[of], dag.WeightGradientPass, func(r dag.Range) dag.Task {
		return rangeTask(n, phaseBackward, p.Back, r, writes(to, boxAt(p.From, of, r)), reads(copied, boxAt(p.Shape, at, r)))
	})
}

// gradients adds the buffers of the gradients. It returns the buffer in which weight gradients
// are summed: the gradient itself, or its packed copy.
func (l *lowerer) gradients(n *Node) dag.BufferID {
	for i, p := range n.Params {
		buf := dag.Buffer{Name: "grad." + p.Name, Shape: p.Shape, Type: l.opt.Type.Arithmetic(), Role: dag.Gradient, Accumulators: n.tiles.WeightGradient.Accumulators}
		if i == 0 && n.packing != nil {
			buf.Accumulators = 0
		}
		n.grads = append(n.grads, l.b.Buffer(buf))
	}
	p := n.packing
	if p == nil {
		return n.grads[0]
	}
	name := "grad." + n.Params[0].Name + "." + p.Layout
	sums := l.onEach(n, l.b.Buffer(dag.Buffer{
		Name: name, Shape: p.Shape, Type: l.opt.Type.Arithmetic(), Role: dag.Gradient, Layout: p.Layout, Accumulators: n.tiles.WeightGradient.Accumulators,
	}))
	return l.viewed(sums, name+".flat", p.Shape, p.seen.Shape)
}

// states adds the buffers of the optimiser's state of a parameter.
func (l *lowerer) states(p *Parameter) []dag.BufferID {
	var states []dag.BufferID
	for _, s := range l.opt.Optimizer.states() {
		states = append(states, l.b.Buffer(dag.Buffer{
			Name: statePrefix + p.Name + "." + s, Shape: p.Shape, Type: l.opt.Type.Arithmetic(), Role: dag.State, Home: hostMemory,
		}))
	}
	return states
}

// updates adds the optimiser's tasks for a layer's parameters whose gradient is in memory. A
// weight is split like its gradient. A bias is small and updated at once.
func (l *lowerer) updates(n *Node) {
	o := l.opt.Optimizer
	for i, grad := range n.grads {
		p := &n.Params[i]
		if p.Of != "" {
			continue // the layer that has it first updates it
		}
		states, params := l.states(p), o.params(len(p.Shape))
		_, of := l.updated(n, i)
		l.updateTasks(n, i, func(r dag.Range) dag.Task {
			box := boxAt(p.Shape, of, r)
			accesses := []dag.Access{updates(n.weights[i], box), reads(grad, box), reads(l.hyper, nil)}
			for _, s := range states {
				accesses = append(accesses, updates(s, box))
			}
			return dag.Task{
				Name: n.Name + ".update." + n.shortName(p) + "[" + rangeText(r) + "]", Op: o.operation(), Params: params,
				Labels: labelsOf(n.Name, phaseUpdate), Accesses: accesses,
			}
		})
	}
}

// updateTasks adds tasks for a parameter, one for the rows of each task that updates it.
func (l *lowerer) updateTasks(n *Node, param int, part func(dag.Range) dag.Task) {
	if sides := l.updateSides(n, param); sides != nil {
		l.rangesOf(n, sides, dag.WeightGradientPass, part)
	} else {
		l.add(part(dag.Range{Hi: n.Params[param].Shape[0]}))
	}
}

// updateSides is the side along which the updates of a parameter are cut: each device that has a slice of the gradient updates it. Nil means that one task
// updates the parameter.
func (l *lowerer) updateSides(n *Node, param int) []side {
	shape, s := n.Params[param].Shape, l.summing(n.Name)
	along, of := l.updated(n, param)
	if along == NoAxis {
		return nil
	}
	sides := l.rangeSides(n, along, shape[of], dag.WeightGradientPass)
	if s != nil {
		grad := l.b.BufferAt(n.grads[param])
		if _, slices := s.Slices(&grad, -1); slices != nil {
			sides[0].shares = slices
			sides[0].resize(n.tiles.Cut(dag.WeightGradientPass))
		}
	}
	if len(shape) == 1 && sides[0].shares == nil {
		return nil
	}
	return sides
}

// updated is the dimension along which updates of a parameter are cut, and its index. NoAxis means that they are not cut.
func (l *lowerer) updated(n *Node, param int) (along dag.Dimension, of int) {
	p := &n.Params[param]
	if of = slices.Index(n.axesOf(p), dag.AlongOutputs); of < 0 {
		return NoAxis, 0
	}
	if s := l.summing(n.Name); s != nil && p.Axes != nil {
		grad := l.b.BufferAt(n.grads[param])
		if dimension, slices := s.Slices(&grad, -1); slices != nil {
			return dag.AlongOutputs, dimension
		}
	}
	if p.Axes == nil && param == 0 && len(p.Shape) > 1 {
		along, of, _ = l.sharedWeight(n, n.parameter().Form)
		return along, of
	}
	return dag.AlongOutputs, of
}

// updatesOf is the number of tasks that update a parameter.
func (n *Node) updatesOf(param int) (number int) {
	sides := n.l.updateSides(n, param)
	if sides == nil {
		return 1
	}
	eachPart(sides, func([]dag.Range) { number++ })
	return number
}

// shortName is the name of a parameter within its layer.
func (s *Stage) shortName(p *Parameter) string { return p.Name[len(s.StateName)+1:] }

// updatesAtOnce reports whether the tasks that compute the gradients of a layer's parameters
// also update them. The layer has an operation for that under stochastic gradient descent, if no
// gradient is summed over several tasks or layers, and none has to wait for the norm of all.
func (l *lowerer) updatesAtOnce(n *Node) bool {
	_, isSGD := l.opt.Optimizer.(SGD)
	return isSGD && l.m.Defaults.ClipNorm == 0 && !n.shared && !l.opt.apart && n.gradientWhole(n.tiles)
}

// gradientWhole reports whether each part of the weight gradient has all samples, rows and columns, and all inputs.
func (n *Node) gradientWhole(tiles dag.LayerLowering) bool {
	g, of := tiles.WeightGradient, extents(n.last().Out)
	if n.pool != nil && n.in.grad != none { // the gradient before the pooling is in memory
		of = extents(n.Out)
	}
	return g.Samples >= n.l.opt.Batch && g.Inputs >= Channels(n.In[0]) && clip(g.Rows, of[1]) == of[1] && clip(g.Columns, of[2]) == of[2]
}

// gradientUpdates adds these tasks, in parts of outputs. op, with, params and dy describe the gradient by itself. The
// tasks see packed weights in the packed dimensions, and flattened features with channels last as a map.
func (l *lowerer) gradientUpdates(n *Node, op string, with calls.Attributes, params dag.Params, dy ...Operand) {
	with |= calls.SGD
	params = slices.Concat(params, l.opt.Optimizer.params(len(n.Params[0].Shape)))
	w, x, states := n.parameter(), n.data(), l.states(&n.Params[0])
	if p := n.packing; p != nil {
		for j, s := range states {
			states[j] = l.viewed(s, l.b.BufferAt(s).Name+"."+nchw, w.Shape, p.From)
		}
		w.id, w.Shape = p.parameter, p.From
	}
	if n.in.turned != nil {
		with |= calls.Mapped
		x[0] = whole(l.b.View(l.newName(n.in.name+"."+nhwc, n), n.in.value, batchShape(l.size(), n.in.turned)...))
	}
	operands := append([]Operand{{Region: whole(w.id).Region, axes: w.axes(), parameter: true}}, dy...)
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
	n.Tiles(n.weighted(op, with), params, operands...)
}
