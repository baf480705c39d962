package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
)

// Operations is a training step whose layers are whole, and its operations with the ways to cut them. [Model.Operations] makes
// them once for all lowerings.
//
// [Operation.Tiles] lists exactly the tasks that [Model.Lower] makes, but for the following. A lowering may undo or
// prevent a fusion of layers: a cut along inputs parts a layer from the ReLU or the pooling behind it, a cut of an
// input gradient along outputs parts the layer before it from its ReLU, and cuts along inputs, rows or columns part a convolution from the
// moments of its output. The operations remain operations of whole layers then, and a
// convolution may have more work than they say: behind a fused pooling its gradients have one term for each window. The task that clips gradients reads a number for each
// update of whole layers. Operations have no micro-batches, and none is computed twice.
type Operations struct {
	// Graph has a task for each operation, where gradients and updates are apart, and so are two copies of one weight.
	Graph *dag.Graph
	All   []Operation // by task of Graph
	Fused []Fused

	l *lowerer // of Graph
}

// Operation is an operation of a layer, or of none, as the feed.
type Operation struct {
	Task  dag.Task // the whole operation
	Sides []Side   // along which it is or may be cut

	noted
}

// Side is a dimension of an operation.
type Side struct {
	Along  dag.Dimension
	Pass   dag.Pass // whose cut of the layer says how it is cut
	Extent int
	// Block says that a tile has some of one block of this extent, or whole ones.
	Block    int
	Summed   bool // the result does not have it
	Cuttable bool
}

// Fused is an operation that does the work of several: a gradient with its update, or two copies of a weight.
type Fused struct {
	Operation
	Graph *dag.Graph   // of the task: the step with all fused operations
	Of    []dag.TaskID // the operations, of the graph of all
}

// Tile is a task of an operation, and how many tasks are like it. Their regions differ.
type Tile struct {
	Task  dag.Task
	Count int
}

// noted is an operation as the lowerer has met it.
type noted struct {
	l     *lowerer
	n     *Node // nil means that no layer has it
	sides []side
	cuts  cutOf
	part  func(sides []side, ranges []dag.Range) dag.Task
}

// note takes an operation down that was lowered.
func (l *lowerer) note(n *Node, sides []side, cuts cutOf, part func([]side, []dag.Range) dag.Task) {
	if l.opt.noted != nil {
		*l.opt.noted = append(*l.opt.noted, noted{l, n, sides, cuts, part})
	}
}

// Operations returns the operations of a training step. The options' lowering has no meaning.
func (m *Model) Operations(opt LowerOptions) (*Operations, error) {
	opt.Train, opt.Lowering = true, dag.Lowering{}
	together, err := m.operations(opt)
	if err != nil {
		return nil, err
	}
	opt.apart = true
	o, err := m.operations(opt)
	if err != nil {
		return nil, err
	}
	return o, o.fuse(together)
}

// operations returns the operations of a step, without fused ones.
func (m *Model) operations(opt LowerOptions) (*Operations, error) {
	var all []noted
	opt.noted = &all
	if err := opt.complete(m); err != nil {
		return nil, fmt.Errorf("operations of model %q: %w", m.Name, err)
	}
	l := &lowerer{m: m, opt: opt, hyper: none}
	for _, p := range passes {
		if err := p.run(l); err != nil {
			return nil, fmt.Errorf("operations of model %q: %w", m.Name, err)
		}
	}
	o := &Operations{Graph: l.graph, All: make([]Operation, len(l.graph.Tasks)), l: l}
	for t := range o.All {
		o.All[t].Task = l.graph.Tasks[t]
	}
	for _, of := range all {
		whole := of.part(of.sides, wholeOf(of.sides))
		t, ok := l.graph.TaskByName(whole.Name)
		if !ok {
			panic("nn: the operation " + whole.Name + " is no task of the step")
		}
		o.All[t].noted = of
		o.All[t].Sides = of.describe()
	}
	return o, nil
}

func wholeOf(sides []side) (ranges []dag.Range) {
	for i := range sides {
		ranges = append(ranges, dag.Range{Hi: sides[i].extent})
	}
	return ranges
}

// describe lists the sides. Of a pass that cuts an operation the numbers are told apart by trying.
func (o *noted) describe() (all []Side) {
	for i := range o.sides {
		s := &o.sides[i]
		all = append(all, Side{Along: s.along, Pass: o.passOf(s.along), Extent: s.extent, Block: s.block, Summed: s.dim < 0, Cuttable: s.cuttable})
	}
	return all
}

// passOf is the pass of the layer whose cut along a dimension is the cut of the operation: where that pass has another number, the operation has.
func (o *noted) passOf(along dag.Dimension) dag.Pass {
	for pass := range dag.NumPasses {
		ll := dag.LayerLowering{InputGradient: dag.Cut{Accumulators: 1}}
		*ll.Cut(pass).Of(along) = 7919
		cut := o.cuts(ll)
		if *cut.Of(along) == 7919 {
			return pass
		}
	}
	return dag.ForwardPass
}

// fuse adds the operations that only the step with fused operations has.
func (o *Operations) fuse(together *Operations) error {
	type kind struct {
		layer   string
		updates bool
	}
	kindOf := func(g *dag.Graph, t *dag.Task) kind {
		role := g.Buffers[t.Accesses[0].Buffer].Role
		return kind{t.Labels.Layer, role == dag.Gradient || role == dag.Parameter || role == dag.State}
	}
	lacks := func(g *dag.Graph, t *dag.Task) bool {
		id, ok := g.TaskByName(t.Name)
		return !ok || g.Tasks[id].Op != t.Op || len(g.Tasks[id].Accesses) != len(t.Accesses)
	}
	apart := map[kind][]dag.TaskID{}
	for t := range o.All {
		if task := &o.All[t].Task; lacks(together.Graph, task) {
			k := kindOf(o.Graph, task)
			apart[k] = append(apart[k], dag.TaskID(t))
		}
	}
	for t := range together.All {
		if of := &together.All[t]; lacks(o.Graph, &of.Task) {
			k := kindOf(together.Graph, &of.Task)
			o.Fused = append(o.Fused, Fused{Operation: *of, Graph: together.Graph, Of: apart[k]})
			delete(apart, k)
		}
	}
	if len(apart) > 0 {
		return fmt.Errorf("operations of model %q: some are in no fused one: %v", o.Graph.Name, apart)
	}
	return nil
}

// Applies reports whether the operation takes the place of others where its layer is lowered so.
func (f *Fused) Applies(of dag.LayerLowering) bool {
	if of = f.tiles(of); f.Task.Labels.Phase == phaseForward {
		return f.n.forwardWhole(of)
	}
	return f.n.gradientWhole(of)
}

// tiles states all numbers of the operation's layer.
func (o *noted) tiles(of dag.LayerLowering) dag.LayerLowering {
	if o.n == nil {
		return of
	}
	return granularity(of, o.l.size(), o.n.In[0], o.n.last().Out)
}

// Cut is how the operation is cut where its layer is lowered so.
func (o *Operation) Cut(of dag.LayerLowering) dag.Cut {
	if o.part == nil {
		return dag.Cut{}
	}
	return o.cuts(o.tiles(of))
}

// Part is a task of the operation with ranges of all sides. It has no work yet.
func (o *Operation) Part(ranges []dag.Range) dag.Task {
	sides := slices.Clone(o.sides)
	for i := range sides {
		sides[i].size = ranges[i].Len()
	}
	return o.part(sides, ranges)
}

// Tiles lists the tasks of the operation under a cut, and behind them the sums of accumulators. Tasks of one shape are counted.
func (o *Operation) Tiles(cut dag.Cut) ([]Tile, error) {
	if o.part == nil {
		return []Tile{{o.Task, 1}}, nil
	}
	t := tiler{noted: &o.noted, sides: slices.Clone(o.sides), accumulators: cut.Accumulators}
	for i := range t.sides {
		t.sides[i].resize(&cut)
		t.parts = append(t.parts, t.partsOf(i))
	}
	return t.tiles()
}
