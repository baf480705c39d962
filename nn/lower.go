package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"dahl/dag"
	"dahl/naming"
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

// Types are the element types of networks, the default first. In a network of bfloat16 that is the type of activations, of their gradients and of copies
// of weights in other layouts. Parameters, their gradients, what an optimiser keeps, statistics and losses are float32 there, and so is all arithmetic.
func Types() []dag.DType { return []dag.DType{dag.Float32, dag.Float64, dag.BFloat16} }

// LowerOptions say how a step of a model becomes a graph.
type LowerOptions struct {
	Name     string // of the graph
	Batch    int
	Type     dag.DType // one of Types
	Lowering dag.Lowering

	// FullBatch is the batch of the other steps, if this one has fewer samples. Zero means Batch. Micro-batches are parts of that.
	FullBatch int

	// Train selects a training step. False lowers an evaluation, which has no backward pass and
	// changes no parameter.
	Train     bool
	Optimizer Optimizer // Nil means the model's default.

	// Samples is the size of the data set from which a step draws its batch: the training set, or in an evaluation
	// the test set. Samples are pixels (Uint8), which are divided by Divisor, tokens (Int32), or
	// numbers of the network's type. A divisor of zero means 255. Samples of a network with a vocabulary are tokens.
	// With Stream the step does not know the set: its samples and labels are handed over with it.
	Samples    int
	SampleType dag.DType
	Divisor    float64
	Stream     bool

	// HostOf names a processor on the node of a device of a stage, which hands over samples of a stream. Empty, or nil, means that
	// any processor of the caller will do.
	HostOf func(device string) string

	// Outputs hands over the outputs of the last layer with the loss of an evaluation.
	Outputs bool

	// Prepared leaves out of an evaluation what parameters alone decide, such as weights in another layout. Another graph
	// has it, which runs once before all steps: see [NewProgram].
	Prepared bool

	// Unfused lowers each layer by itself, as a pattern with a cut along what it sums over leaves it.
	Unfused bool

	// After is called after each pass, with what the passes have made. Nil means that nobody asks.
	After func(pass string, l *Lowered)

	extents map[string]dag.LayerLowering // where [Model.Extents] takes them down; else nil
	noted   *[]noted                     // where [Model.Operations] does; else nil
	dry     bool                         // tasks are noted, and none is added
	totals  bool                         // sums over samples are taken as where devices share these
	apart   bool                         // gradients and updates are operations of their own, and so are copies of weights
}

// lowerer is the state of one Lower.
type lowerer struct {
	m      *Model
	opt    LowerOptions
	groups []group
	graph  *dag.Graph // that the passes so far have made
	once   *dag.Graph // what is left out of a prepared step; nil means nothing

	stageOfLayer map[string]int                  // by name, as far as it has been asked for
	ofDevices    map[dag.BufferID][]dag.BufferID // of a buffer that each device has for itself: the buffers of all devices
	filled       map[dag.BufferID]bool           // those that some task writes
	latest       map[int]dag.TaskID              // by device that shares rows: its latest task
	varies       map[dag.BufferID]bool           // storages of a prepared step whose contents samples decide

	b      *dag.Builder
	before dag.Task     // that was completed last
	index  dag.BufferID // step.index
	hyper  dag.BufferID // step.hyper, none in an evaluation

	fed     [2]dag.BufferID    // samples and labels among which step.index chooses
	learned []*learned         // by group
	buckets map[string]*bucket // of gradients, by parameter
	alone   bool               // the micro-batch is a mini-batch by itself
	results lossBuffers

	// of the micro-batch
	now     microBatch
	samples tensor // the model's input
	nodes   []*Node
	nodeOf  []*Node // by stage
}

// Lower turns one step of the model into a graph. It fails on senseless options and on lowerings
// that name a layer the model does not have.
func (m *Model) Lower(opt LowerOptions) (*dag.Graph, error) {
	step, _, err := m.lower(opt)
	return step, err
}

// lower returns also what a prepared step leaves out.
func (m *Model) lower(opt LowerOptions) (step, once *dag.Graph, err error) {
	if err := opt.complete(m); err != nil {
		return nil, nil, fmt.Errorf("lower model %q: %w", m.Name, err)
	}
	if m, err = m.folded(&opt); err != nil {
		return nil, nil, fmt.Errorf("lower model %q: %w", m.Name, err)
	}
	l := &lowerer{m: m, opt: opt, hyper: none, stageOfLayer: map[string]int{}, latest: map[int]dag.TaskID{},
		ofDevices: map[dag.BufferID][]dag.BufferID{}, filled: map[dag.BufferID]bool{}, varies: map[dag.BufferID]bool{}}
	for _, p := range passes {
		if err := p.run(l); err != nil {
			return nil, nil, fmt.Errorf("lower model %q: %w", m.Name, err)
		}
		if opt.After != nil {
			opt.After(p.name, l.state())
		}
	}
	return l.graph, l.once, nil
}

// addMicroBatch adds the tasks of a micro-batch, and the updates behind the last one.
func (l *lowerer) addMicroBatch() {
	l.nodes, l.nodeOf = nil, make([]*Node, len(l.m.Stages))
	for i := range l.groups {
		n := &Node{group: l.groups[i], l: l, learned: l.learned[i], steps: map[string]int{}, out: tensor{value: none, grad: none}}
		l.nodes = append(l.nodes, n)
		for _, s := range n.stages {
			l.nodeOf[s] = n
		}
	}
	l.load()
	if l.joinsLoss() {
		l.beginLoss()
	}
	for _, n := range l.nodes {
		l.forward(n)
	}
	l.loss(l.nodeOf[len(l.m.Stages)-1].out)
	if l.opt.Train {
		l.backward()
	}
}

func (opt *LowerOptions) complete(m *Model) error {
	if opt.Batch < 1 || opt.Samples < 1 {
		return fmt.Errorf("batch %d of %d samples; want at least 1", opt.Batch, opt.Samples)
	}
	opt.FullBatch = max(opt.FullBatch, opt.Batch)
	if !slices.Contains(Types(), opt.Type) {
		return fmt.Errorf("element type %v; want float32, float64 or bfloat16", opt.Type)
	}
	if opt.Optimizer == nil {
		opt.Optimizer = m.Defaults.Optimizer
	}
	if err := m.Defaults.Loss.Check(); err != nil {
		return err
	}
	if opt.Train {
		if err := cmp.Or(opt.Optimizer.Check(), checkNumbers("clipping", []number{{"norm", m.Defaults.ClipNorm, math.MaxFloat64}})); err != nil {
			return err
		}
	}
	if opt.Divisor == 0 {
		opt.Divisor = 255
	}
	if m.Vocabulary() > 0 && opt.SampleType == dag.Uint8 {
		opt.SampleType = dag.Int32 // where nobody says another type
	}
	switch t := opt.SampleType; {
	case t != dag.Uint8 && t != dag.Int32 && t != opt.Type.Arithmetic():
		return fmt.Errorf("samples of type %v for a network of %v", t, opt.Type)
	case t != dag.Int32 && m.Vocabulary() > 0:
		return fmt.Errorf("samples of type %v for a network that takes tokens", t)
	case t == dag.Int32 && len(m.Input) == 3:
		return fmt.Errorf("tokens of shape %s; those of an image are numbers", naming.ShapeText(m.Input))
	}
	if !(opt.Divisor > 0) {
		return fmt.Errorf("pixel divisor %g; want a positive number", opt.Divisor)
	}
	if opt.Name == "" {
		opt.Name = m.Name
	}
	if !opt.Train { // nothing is kept for a backward pass
		opt.Lowering.MicroBatches, opt.Lowering.Stash = 0, false
	}
	if opt.Lowering.Stash {
		if err := m.checkStash(opt); err != nil {
			return err
		}
	}
	return m.checkLowering(&opt.Lowering, opt.FullBatch)
}

// load feeds the step and builds the batch. Samples that are flattened at once stay in the order of features.
func (l *lowerer) load() {
	l.feed()
	l.samples = l.tensor(InputName, l.m.Input)
	if l.m.flattensInput() {
		l.samples = l.features(InputName, l.m.Input)
	}
	x := &l.samples
	op, params := "load", dag.Params{{Name: "divisor", Value: l.opt.Divisor}}
	to := x // what the rows of the data set are loaded into
	switch {
	case l.opt.SampleType == dag.Int32:
		x.kind, op, params = dag.Int32, "load.labels", nil
	case l.opt.SampleType != dag.Uint8:
		op, params = "load.rows", nil
		if x.channelsLast() {
			rows := l.features(InputName+"."+nchw, l.m.Input)
			to = &rows
			to.value = l.image(to.name, dag.Activation, to)
		}
	case x.channelsLast():
		op = "load.nhwc"
	}
	x.value = l.image(x.name, dag.Activation, x)
	l.loadSamples(x, to, op, params)
	if l.isFirst() && !l.opt.Stream {
		l.ofBatch(l.loadLabels)
	}
}

// loadSamples adds the tasks that load rows of the data set, and turn them where they are loaded in another layout.
func (l *lowerer) loadSamples(x, to *tensor, op string, params dag.Params) {
	load := func(_ []side, r []dag.Range) dag.Task {
		return dag.Task{
			Name: "input.load[" + rangeText(l.inBatch(r[0])) + "]", Op: op, Params: params, Labels: labelsOf("input", phaseLoad),
			Accesses: []dag.Access{writes(to.at(r[0])), reads(l.fed[0], l.fedWith(r[0])), reads(l.index, boxOf([]int{l.opt.Batch}, l.inBatch(r[0])))},
		}
	}
	turn := func(_ []side, r []dag.Range) dag.Task {
		return dag.Task{
			Name: "input.nhwc[" + rangeText(l.inBatch(r[0])) + "]", Op: nhwc, Labels: labelsOf("input", phaseLoad),
			Accesses: []dag.Access{writes(x.at(r[0])), reads(to.at(r[0]))},
		}
	}
	sides := l.bySamples("input")
	eachPart(sides, func(r []dag.Range) {
		l.addPart(load(sides, r), sides, r)
		if to != x {
			l.addPart(turn(sides, r), sides, r)
		}
	})
	l.note(nil, sides, forwardCut, load)
	if to != x {
		l.note(nil, sides, forwardCut, turn)
	}
}

// bySamples are the sides of an operation outside the layers, which is cut along samples as the lowering says for a name.
func (l *lowerer) bySamples(name string) []side {
	ll := l.opt.Lowering.Of(name)
	sides := []side{{along: dag.AlongSamples, extent: l.size(), size: l.size(), block: l.size(), cuttable: true}}
	l.shareSides(name, sides)
	sides[0].resize(&ll.Forward)
	return sides
}

func forwardCut(tiles dag.LayerLowering) dag.Cut { return tiles.Forward }

// forward adds the tasks of a group, after the groups that it reads. Its output has a
// gradient if it depends on parameters. Otherwise nothing would use the gradient.
func (l *lowerer) forward(n *Node) {
	n.tiles = granularity(l.opt.Lowering.Of(n.Name), l.size(), n.In[0], n.last().Out)
	n.ins = make([]tensor, len(n.Inputs))
	n.in = &n.ins[0]
	for i := range n.ins {
		n.ins[i] = l.read(n, i)
	}
	if l.isFirst() {
		n.weights, n.running = l.carried(n.Stage)
	}
	l.place(n)
	n.phase = phaseForward
	n.Layer.Forward(n)
	l.giveGradient(n)
}

// carried adds the buffers of a layer's parameters and running statistics.
func (l *lowerer) carried(s *Stage) (weights, running []dag.BufferID) {
	add := func(list []Parameter, role dag.Role) (ids []dag.BufferID) {
		for _, p := range list {
			name := cmp.Or(p.Of, p.Name)
			id, there := l.b.BufferNamed(name) // by another layer that has it
			if !there {
				kind := p.Type(l.opt.Type)
				if l.folds() && !p.Counts {
					kind = l.opt.Type // the float32 form of a weight is among what the optimiser keeps
				}
				id = l.b.Buffer(dag.Buffer{Name: name, Shape: p.bufferShape(), Type: kind, Role: role, Home: hostMemory})
			}
			ids = append(ids, id)
		}
		return ids
	}
	return add(s.Params, dag.Parameter), add(s.Running, dag.State)
}

// backward adds gradients and updates, from the last layer to the first.
func (l *lowerer) backward() {
	var clipped []*Node
	for _, n := range slices.Backward(l.nodes) {
		if !n.last().learns {
			continue
		}
		if !n.JoinsLoss() {
			l.sumGradients(n)
		}
		n.passGradient()
		needed := len(n.Params) > 0
		for i := range n.ins {
			needed = needed || n.Needs(i)
		}
		if n.phase = phaseBackward; needed {
			n.Layer.Backward(n)
			if n.before != nil {
				l.fromFeatures(n)
			}
		}
		if l.isLast() {
			l.ofBatch(func() { l.sumShared(n) })
		}
		switch {
		case !l.isLast(), l.folds():
		case l.m.Defaults.ClipNorm > 0:
			clipped = append(clipped, n)
		default:
			l.ofBatch(func() { l.updates(n) })
		}
	}
	if len(clipped) > 0 {
		l.ofBatch(func() { l.clippedUpdates(clipped) })
	}
	if l.isLast() && l.folds() {
		l.ofBatch(l.splitUpdates)
	}
}

// rangeTask is a task that changes a layout. It is split in one dimension.
func rangeTask(n *Node, phase, op string, r dag.Range, accesses ...dag.Access) dag.Task {
	return dag.Task{
		Name: n.Name + "." + phase + "." + op + "[" + rangeText(r) + "]", Op: op,
		Labels: labelsOf(n.Name, phase), Accesses: accesses,
	}
}

// ranges adds the tasks of an operation that is split in one dimension, as a pass of its layer is.
func (l *lowerer) ranges(n *Node, along dag.Dimension, extent int, pass dag.Pass, part func(dag.Range) dag.Task) {
	l.rangesOf(n, l.rangeSides(n, along, extent, pass), pass, part)
}

// rangeSides is the one side of such an operation.
func (l *lowerer) rangeSides(n *Node, along dag.Dimension, extent int, pass dag.Pass) []side {
	sides := []side{{along: along, extent: extent, size: extent, block: extent, cuttable: true}}
	l.shareSides(n.Name, sides)
	sides[0].resize(n.tiles.Cut(pass))
	return sides
}

func (l *lowerer) rangesOf(n *Node, sides []side, pass dag.Pass, part func(dag.Range) dag.Task) {
	eachPart(sides, func(r []dag.Range) { l.addPart(part(r[0]), sides, r) })
	l.note(n, sides, func(tiles dag.LayerLowering) dag.Cut { return *tiles.Cut(pass) }, func(_ []side, ranges []dag.Range) dag.Task { return part(ranges[0]) })
}

// add adds a task, and returns it with its shape and its work.
func (l *lowerer) add(t dag.Task) dag.Task {
	l.vary(&t)
	if t = l.completed(t); !l.opt.dry && l.b.Err() == nil {
		l.b.Task(t)
	}
	return t
}

// completed gives a task its shape and its work. It takes both from the task before where that is a call of the same shape, as of equal devices.
func (l *lowerer) completed(t dag.Task) dag.Task {
	t.Type, t.Labels.MicroBatch = l.arithmetic(t.Accesses), l.now.label
	if l.opt.dry || l.b.Err() != nil {
		return t
	}
	if before := &l.before; l.alike(&t, before) {
		t.Shape, t.Flops, t.MovedBytes = before.Shape, before.Flops, before.MovedBytes
		return t
	}
	l.b.Fail(l.m.kernels.Complete(&t, l.b.BufferAt))
	l.before = t
	l.before.Accesses = slices.Clone(t.Accesses)
	return t
}

// alike reports whether two tasks are calls of the same shape.
func (l *lowerer) alike(a, b *dag.Task) bool {
	return a.Op == b.Op && a.Type == b.Type && slices.Equal(a.Params, b.Params) && slices.EqualFunc(a.Accesses, b.Accesses, func(x, y dag.Access) bool {
		if x.Mode != y.Mode || (x.Box == nil) != (y.Box == nil) || !slices.EqualFunc(x.Box, y.Box, func(r, s dag.Range) bool { return r.Len() == s.Len() }) {
			return false
		}
		if x.Buffer == y.Buffer {
			return true
		}
		of, before := l.b.BufferAt(x.Buffer), l.b.BufferAt(y.Buffer)
		return of.Type == before.Type && (x.Box != nil || slices.Equal(of.Shape, before.Shape))
	})
}

// arithmetic is the type of a task. A task of a network of bfloat16 is float32 where it touches no activation.
func (l *lowerer) arithmetic(accesses []dag.Access) dag.DType {
	touches := func(a dag.Access) bool { return l.b.BufferAt(a.Buffer).Type == l.opt.Type }
	if l.opt.Type != dag.BFloat16 || slices.ContainsFunc(accesses, touches) {
		return l.opt.Type
	}
	return l.opt.Type.Arithmetic()
}

// newName is a name for a buffer of a layer. If another layer has that buffer of the same value, the name ends with the
// layer.
func (l *lowerer) newName(name string, n *Node) string {
	if _, taken := l.b.BufferNamed(name + l.now.suffix); taken {
		name += "." + n.Name
	}
	return name
}

func (l *lowerer) buffer(name string, t dag.DType, role dag.Role, shape []int) dag.BufferID {
	return l.b.Buffer(dag.Buffer{Name: name + l.now.suffix, Shape: shape, Type: t, Role: role})
}

func (l *lowerer) input(name string, t dag.DType, shape []int, home string) dag.BufferID {
	return l.b.Buffer(dag.Buffer{Name: name, Shape: shape, Type: t, Role: dag.Input, Home: home})
}

func labelsOf(layer, phase string) dag.Labels { return dag.Labels{Layer: layer, Phase: phase} }

func withBatch(batch int, sample []int) []int { return append([]int{batch}, sample...) }

func rangeText(r dag.Range) string { return strconv.Itoa(r.Lo) + ":" + strconv.Itoa(r.Hi) }
