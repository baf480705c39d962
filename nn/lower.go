package nn

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels"
)

// hostMemory is the home of data and parameters; platforms resolve it.
const hostMemory = "host"

// The phases that task labels name.
const (
	phaseLoad     = "load"
	phaseForward  = "forward"
	phaseLoss     = "loss"
	phaseBackward = "backward"
	phaseReduce   = "reduce"
	phaseUpdate   = "update"
	phaseMetrics  = "metrics"
)

// LowerOptions say which step of a model becomes a graph.
type LowerOptions struct {
	Name     string // of the graph
	Batch    int
	Type     dag.DType // Float32 or Float64
	Lowering dag.Lowering

	// Train selects a training step; false lowers an evaluation, which has no
	// backward pass and changes no parameter.
	Train     bool
	Optimizer Optimizer // nil: the model's default

	// Samples is the size of the data set that a step draws its batch from, named
	// "train" or "test" by Split ("" is by Train). Pixels are divided by Divisor; 0 is 255.
	Samples int
	Split   string
	Divisor float64
}

// lowerer is the state of one Lower.
type lowerer struct {
	b     *dag.Builder
	m     *Model
	opt   LowerOptions
	index dag.BufferID // step.index
	hyper dag.BufferID // step.hyper, none in an evaluation
	nodes []*node
}

// Lower turns one step of the model into a graph. It fails on options that make no
// sense and on lowerings that name a layer the model does not have.
func (m *Model) Lower(opt LowerOptions) (*dag.Graph, error) {
	if err := opt.complete(m); err != nil {
		return nil, fmt.Errorf("lower model %q: %w", m.Name, err)
	}
	l := &lowerer{b: dag.NewBuilder(opt.Name), m: m, opt: opt, hyper: none}
	input := l.load()
	l.forward(input)
	l.loss(l.nodes[len(l.nodes)-1].out)
	if opt.Train {
		l.backward()
	}
	g, err := l.b.Build()
	if err == nil {
		g, err = dag.Expand(g)
	}
	if err != nil {
		return nil, fmt.Errorf("lower model %q: %w", m.Name, err)
	}
	describe(g)
	return g, nil
}

func (opt *LowerOptions) complete(m *Model) error {
	if opt.Batch < 1 || opt.Samples < 1 {
		return fmt.Errorf("batch %d of %d samples; want at least 1", opt.Batch, opt.Samples)
	}
	if opt.Type != dag.Float32 && opt.Type != dag.Float64 {
		return fmt.Errorf("element type %v; want float32 or float64", opt.Type)
	}
	if opt.Optimizer == nil {
		opt.Optimizer = m.Defaults.Optimizer
	}
	if opt.Train {
		if err := opt.Optimizer.Check(); err != nil {
			return err
		}
	}
	if opt.Divisor == 0 {
		opt.Divisor = 255
	}
	if !(opt.Divisor > 0) {
		return fmt.Errorf("pixel divisor %g; want a positive number", opt.Divisor)
	}
	if opt.Split == "" {
		opt.Split = "test"
		if opt.Train {
			opt.Split = "train"
		}
	}
	if opt.Name == "" {
		opt.Name = m.Name
	}
	return m.checkLowering(&opt.Lowering)
}

// load feeds the step and builds the batch from the data set.
func (l *lowerer) load() tensor {
	batch, real := l.opt.Batch, l.opt.Type
	images := l.input("data."+l.opt.Split+".images", dag.Uint8, withBatch(l.opt.Samples, l.m.Input), hostMemory)
	labels := l.input("data."+l.opt.Split+".labels", dag.Int32, []int{l.opt.Samples}, hostMemory)
	l.index = l.input("step.index", dag.Int32, []int{batch}, "")
	feed := []dag.Access{writes(l.index, nil)}
	if l.opt.Train {
		l.hyper = l.input("step.hyper", dag.Float64, []int{2}, "")
		feed = append(feed, writes(l.hyper, nil))
	}
	l.add(dag.Task{Name: "feed", Op: "feed", Labels: labelsOf("input", phaseLoad), Accesses: feed, Placement: onHost()})

	x := tensor{shape: withBatch(batch, l.m.Input), grad: none}
	x.value = l.buffer("input", real, dag.Activation, x.shape)
	params := dag.Params{{Name: "divisor", Value: l.opt.Divisor}}
	size := clip(l.opt.Lowering.Of("input").SampleTile, batch)
	eachRange(batch, size, func(r dag.Range) {
		l.add(dag.Task{
			Name: "input.load[" + rangeText(r) + "]", Op: "load", Params: params, Labels: labelsOf("input", phaseLoad),
			Accesses: []dag.Access{writes(x.value, boxOf(x.shape, r)), reads(images, nil), reads(l.index, boxOf([]int{batch}, r))},
		})
	})
	y := l.buffer("labels", dag.Int32, dag.Activation, []int{batch})
	l.add(dag.Task{
		Name: "labels.load", Op: "load.labels", Labels: labelsOf("input", phaseLoad),
		Accesses: []dag.Access{writes(y, nil), reads(labels, nil), reads(l.index, nil)},
	})
	return x
}

// forward adds the layers in order. A tensor has a gradient if a layer at or
// before its producer has parameters: nothing else would use it.
func (l *lowerer) forward(x tensor) {
	learns := false
	for i := range l.m.Stages {
		s := &l.m.Stages[i]
		n := &node{Stage: s, in: x, out: tensor{shape: withBatch(l.opt.Batch, s.Out), value: none, grad: none}, saved: none}
		n.tiles = granularity(l.opt.Lowering.Of(s.Name), l.opt.Batch, s.Out[0])
		learns = learns || len(s.Params) > 0
		for _, p := range s.Params {
			n.weights = append(n.weights, l.b.Buffer(dag.Buffer{
				Name: p.Name, Shape: p.Shape, Type: l.opt.Type, Role: dag.Parameter, Home: hostMemory,
			}))
		}
		s.Layer.forward(l, n)
		if l.opt.Train && learns && n.out.grad == none {
			n.out.grad = l.buffer("grad."+n.Name+".out", l.opt.Type, dag.Gradient, n.out.shape)
		}
		l.nodes = append(l.nodes, n)
		x = n.out
	}
}

// granularity replaces the zeros of a lowering by full extents.
func granularity(ll dag.LayerLowering, batch, outputs int) dag.LayerLowering {
	return dag.LayerLowering{
		SampleTile:     clip(ll.SampleTile, batch),
		OutputTile:     clip(ll.OutputTile, outputs),
		GradTile:       clip(ll.GradTile, outputs),
		GradSampleTile: clip(ll.GradSampleTile, batch),
		Accumulators:   max(ll.Accumulators, 1),
	}
}

// backward adds gradients and updates, from the last layer to the first.
func (l *lowerer) backward() {
	for i := len(l.nodes) - 1; i >= 0; i-- {
		n := l.nodes[i]
		if n.out.grad == none {
			break
		}
		n.Layer.backward(l, n)
		l.updates(n)
	}
}

// output adds the buffer of a layer's output.
func (l *lowerer) output(n *node) {
	n.out.value = l.buffer(n.Name+".out", l.opt.Type, dag.Activation, n.out.shape)
}

// weightedForward adds one tile of a layer with weights: all input channels of the
// tile's samples, and the weights of its output channels.
func (l *lowerer) weightedForward(n *node, op string, t tile) {
	accesses := []dag.Access{writes(n.out.value, t.box(n.out.shape)), reads(n.in.value, t.rows(n.in.shape))}
	for i, w := range n.weights {
		accesses = append(accesses, reads(w, boxOf(n.Params[i].Shape, t.channels)))
	}
	l.task(n, "forward", op, t, accesses...)
}

// weightGradients adds the gradients of weight and bias, in parts of GradTile
// outputs, each summed over tiles of samples.
func (l *lowerer) weightGradients(n *node, op string) {
	for _, p := range n.Params {
		n.grads = append(n.grads, l.b.Buffer(dag.Buffer{
			Name: "grad." + p.Name, Shape: p.Shape, Type: l.opt.Type, Role: dag.Gradient, Accumulators: n.tiles.Accumulators,
		}))
	}
	eachTile(n.out.shape, n.tiles.GradSampleTile, n.tiles.GradTile, func(t tile) {
		rows := func(i int) dag.Box { return boxOf(n.Params[i].Shape, t.channels) }
		accesses := []dag.Access{reduces(n.grads[0], rows(0)), reads(n.out.grad, t.box(n.out.shape)), reads(n.in.value, t.rows(n.in.shape))}
		if len(n.grads) > 1 {
			accesses = append(accesses, reduces(n.grads[1], rows(1)))
		}
		l.task(n, "backward.weight", op, t, accesses...)
	})
}

// inputGradient adds the gradient of a weighted layer's input, if anything needs
// it. It sums over all outputs, so it is split by samples and, into as many parts
// as the forward pass has parts of outputs, by input channels.
func (l *lowerer) inputGradient(n *node, op string) {
	if n.in.grad == none {
		return
	}
	channels := n.in.shape[1]
	size := parts(channels, parts(n.out.shape[1], n.tiles.OutputTile))
	eachTile(n.in.shape, n.tiles.SampleTile, size, func(t tile) {
		weight := boxOf(n.Params[0].Shape, dag.Range{Lo: 0, Hi: n.Params[0].Shape[0]}, t.channels)
		l.task(n, "backward.input", op, t, writes(n.in.grad, t.box(n.in.shape)), reads(n.out.grad, t.rows(n.out.shape)), reads(n.weights[0], weight))
	})
}

// updates adds the optimiser's tasks for a layer's parameters, split as their
// gradients are.
func (l *lowerer) updates(n *node) {
	o := l.opt.Optimizer
	params := o.params()
	for i, p := range n.Params {
		var states []dag.BufferID
		for _, s := range o.states() {
			states = append(states, l.b.Buffer(dag.Buffer{
				Name: "state." + p.Name + "." + s, Shape: p.Shape, Type: l.opt.Type, Role: dag.State, Home: hostMemory,
			}))
		}
		short := p.Name[len(n.Name)+1:]
		eachRange(p.Shape[0], n.tiles.GradTile, func(r dag.Range) {
			box := boxOf(p.Shape, r)
			accesses := []dag.Access{updates(n.weights[i], box), reads(n.grads[i], box), reads(l.hyper, nil)}
			for _, s := range states {
				accesses = append(accesses, updates(s, box))
			}
			l.add(dag.Task{
				Name: n.Name + ".update." + short + "[" + rangeText(r) + "]", Op: o.op(), Params: params,
				Labels: labelsOf(n.Name, phaseUpdate), Accesses: accesses,
			})
		})
	}
}

// task adds a task of a layer; the step ("forward", "backward.weight") begins with its phase.
func (l *lowerer) task(n *node, step, op string, t tile, accesses ...dag.Access) {
	phase := phaseBackward
	if step == phaseForward {
		phase = phaseForward
	}
	l.add(dag.Task{
		Name: n.Name + "." + step + "[" + t.String() + "]", Op: op, Params: n.params,
		Labels: labelsOf(n.Name, phase), Accesses: accesses,
	})
}

func (l *lowerer) add(t dag.Task) {
	t.Type = l.opt.Type
	kernels.Add(l.b, t)
}

func (l *lowerer) buffer(name string, t dag.DType, role dag.Role, shape []int) dag.BufferID {
	return l.b.Buffer(dag.Buffer{Name: name, Shape: shape, Type: t, Role: role})
}

func (l *lowerer) input(name string, t dag.DType, shape []int, home string) dag.BufferID {
	return l.b.Buffer(dag.Buffer{Name: name, Shape: shape, Type: t, Role: dag.Input, Home: home})
}

// onHost keeps a task that the program itself performs on a processor.
func onHost() *dag.Placement { return &dag.Placement{Device: "cpu"} }

func labelsOf(layer, phase string) dag.Labels { return dag.Labels{Layer: layer, Phase: phase} }

func withBatch(batch int, sample []int) []int { return append([]int{batch}, sample...) }

func rangeText(r dag.Range) string { return fmt.Sprintf("%d:%d", r.Lo, r.Hi) }
