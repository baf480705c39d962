package nn

import (
	"cmp"
	"slices"

	"dahl/dag"
)

// Extents says how far the tasks of each layer can be cut, in a training step or in an evaluation. By layer and operation
// these are the extents of the dimensions along which it can be, 0 for the others, and as accumulators how many terms its sums can
// have. Fused layers have the extents of their group, and along other dimensions the extents of a layer by itself: a
// convolution before a pooling has the rows that are pooled, and its inputs.
func (m *Model) Extents(batch int, train bool) (map[string]dag.LayerLowering, error) {
	all := map[string]dag.LayerLowering{}
	for _, alone := range []bool{false, true} {
		of := map[string]dag.LayerLowering{}
		// Under Adam no task updates a weight as it computes the gradient. Such a task can have no part of the samples.
		g, err := m.Lower(LowerOptions{Batch: batch, Samples: batch, Type: dag.Float32, Train: train, Optimizer: DefaultAdam(),
			Unfused: alone, extents: of})
		if err != nil {
			return nil, err
		}
		for i := range g.Tasks {
			layer := g.Tasks[i].Labels.Layer
			if _, known := of[layer]; !known && slices.Contains(m.lowered(), layer) {
				of[layer] = dag.LayerLowering{Forward: dag.Cut{Samples: batch}} // it loads, copies or compares with labels
			}
		}
		for name, ll := range of {
			known := all[name]
			for pass := range dag.NumPasses {
				for d := range dag.NumNumbers {
					to := known.Cut(pass).Of(d)
					*to = cmp.Or(*to, *ll.Cut(pass).Of(d))
				}
			}
			all[name] = known
		}
	}
	return all, nil
}

// noteExtents takes down along which sides an operation of a pass of a layer can be cut.
func (l *lowerer) noteExtents(n *Node, pass dag.Pass, sides []side) {
	if l.opt.extents == nil {
		return
	}
	ll := l.opt.extents[n.Name]
	of := ll.Cut(pass)
	terms := 1
	for _, s := range sides {
		if !s.cuttable {
			continue
		}
		*of.Of(s.along) = max(*of.Of(s.along), s.extent, s.of)
		if s.dim < 0 {
			terms *= s.extent
		}
	}
	if terms > 1 {
		of.Accumulators = max(of.Accumulators, terms)
	}
	l.opt.extents[n.Name] = ll
}
