package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
)

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

// Operations returns the operations of a step, made once for all lowerings. The options' lowering has no meaning.
//
// [dag.Operation.Tiles] lists exactly the tasks that [Model.Lower] makes, but for the following. A lowering may undo or
// prevent a fusion of layers: a cut along inputs parts a layer from the ReLU or the pooling behind it, a cut of an
// input gradient along outputs parts the layer before it from its ReLU, and cuts along inputs, rows or columns part a convolution from the
// moments of its output. The operations remain operations of whole layers then, and a
// convolution may have more work than they say: behind a fused pooling its gradients have one term for each window. The task that clips gradients reads a number for each
// update of whole layers. Operations have no micro-batches, and none is computed twice.
func (m *Model) Operations(opt LowerOptions) (*dag.Operations, error) {
	opt.Lowering = dag.Lowering{}
	together, notes, err := m.operations(opt)
	if err != nil {
		return nil, err
	}
	opt.apart = true
	o, _, err := m.operations(opt)
	if err != nil {
		return nil, err
	}
	return o, m.fuse(o, together, notes)
}

// operations returns the operations of a step, without fused ones, and what the lowerer has noted of each task.
func (m *Model) operations(opt LowerOptions) (*dag.Operations, []*noted, error) {
	var all []noted
	prepared := opt.Prepared
	opt.noted, opt.Prepared = &all, false
	if err := opt.complete(m); err != nil {
		return nil, nil, fmt.Errorf("operations of model %q: %w", m.Name, err)
	}
	l := &lowerer{m: m, opt: opt, hyper: none}
	for _, p := range passes {
		if err := p.run(l); err != nil {
			return nil, nil, fmt.Errorf("operations of model %q: %w", m.Name, err)
		}
	}
	o := &dag.Operations{Graph: l.graph, All: make([]dag.Operation, len(l.graph.Tasks))}
	notes := make([]*noted, len(o.All))
	for t := range o.All {
		o.All[t] = dag.Operation{Graph: l.graph, Task: l.graph.Tasks[t], Cut: func(dag.LayerLowering) dag.Cut { return dag.Cut{} }}
		task := &o.All[t].Task
		o.All[t].Tiles = func(dag.Cut) ([]dag.Tile, error) { return []dag.Tile{{Task: *task, Count: 1}}, nil }
	}
	for i := range all {
		of := &all[i]
		whole := of.part(of.sides, wholeOf(of.sides))
		t, ok := l.graph.TaskByName(whole.Name)
		if !ok {
			panic("nn: the operation " + whole.Name + " is no task of the step")
		}
		notes[t] = of
		o.All[t] = dag.Operation{Graph: l.graph, Task: l.graph.Tasks[t], Sides: of.describe(), Cut: of.cut, Tiles: of.tilesOf, Part: of.partOf}
	}
	if prepared {
		o.All, notes = withoutConstant(o, notes)
	}
	return o, notes, nil
}

// withoutConstant is the operations that every prepared step has, with their notes.
func withoutConstant(o *dag.Operations, notes []*noted) (all []dag.Operation, kept []*noted) {
	constant := o.Graph.Constant()
	for t := range o.All {
		if !constant[t] {
			all, kept = append(all, o.All[t]), append(kept, notes[t])
		}
	}
	return all, kept
}

func wholeOf(sides []side) (ranges []dag.Range) {
	for i := range sides {
		ranges = append(ranges, dag.Range{Hi: sides[i].extent})
	}
	return ranges
}

// describe lists the sides. Of a pass that cuts an operation the numbers are told apart by trying.
func (o *noted) describe() (all []dag.Side) {
	for i := range o.sides {
		s := &o.sides[i]
		all = append(all, dag.Side{Along: s.along, Pass: o.passOf(s.along), Extent: s.extent, Block: s.block, Whole: s.whole, Of: s.of, Summed: s.dim < 0, Cuttable: s.cuttable})
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

// fuse adds the operations that only the step with fused operations has, with its notes.
func (m *Model) fuse(o, together *dag.Operations, notes []*noted) error {
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
			o.Fused = append(o.Fused, dag.Fused{Operation: *of, Of: apart[k], Applies: notes[t].applies(of.Task.Labels.Phase)})
			delete(apart, k)
		}
	}
	if len(apart) > 0 {
		return fmt.Errorf("operations of model %q: some are in no fused one: %v", m.Name, apart)
	}
	return nil
}

// applies reports of a fused operation whether it takes the place of others where its layer is lowered so.
func (o *noted) applies(phase string) func(dag.LayerLowering) bool {
	return func(of dag.LayerLowering) bool {
		of = o.tiles(of)
		switch {
		case phase == phaseForward:
			return o.n.forwardWhole(of)
		case o.passOf(dag.AlongSamples) == dag.InputGradientPass:
			return o.n.meetsAll(of)
		}
		return o.n.gradientWhole(of)
	}
}

// tiles states all numbers of the operation's layer.
func (o *noted) tiles(of dag.LayerLowering) dag.LayerLowering {
	if o.n == nil {
		return of
	}
	return granularity(of, o.l.size(), o.n.In[0], o.n.last().Out)
}

func (o *noted) cut(of dag.LayerLowering) dag.Cut { return o.cuts(o.tiles(of)) }

func (o *noted) partOf(ranges []dag.Range) dag.Task {
	sides := slices.Clone(o.sides)
	for i := range sides {
		sides[i].size = ranges[i].Len()
	}
	return o.part(sides, ranges)
}

func (o *noted) tilesOf(cut dag.Cut) ([]dag.Tile, error) {
	t := tiler{noted: o, sides: slices.Clone(o.sides), accumulators: cut.Accumulators}
	for i := range t.sides {
		t.sides[i].resize(&cut)
	}
	for i := range t.sides { // whose parts depend on how other sides are cut
		t.parts = append(t.parts, t.partsOf(i))
	}
	return t.tiles()
}
