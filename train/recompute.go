package train

import (
	"maps"

	"dahl/dag"
)

// Recomputable returns the layers whose recomputation lets the plan of a workload fit its memories. It tries the first one of [nn.Model.Recomputable], two, four
// and so on, or all. Nil means that even all of them are too few.
func (w *Workload) Recomputable() []string {
	if w.Model == nil || w.Options.Plan != nil || w.Options.Evaluate {
		return nil
	}
	all := w.Model.Recomputable()
	for count := 1; count/2 < len(all); count *= 2 {
		some := all[:min(count, len(all))]
		l := *w.Lowering
		if l.Layers = maps.Clone(l.Layers); l.Layers == nil {
			l.Layers = map[string]dag.LayerLowering{}
		}
		for _, name := range some {
			ll := l.Of(name)
			ll.Recompute = true
			l.Layers[name] = ll
		}
		of := *w
		of.Options.Lowering, of.Options.Strategy = &l, nil
		if of.Lower() != nil {
			return nil
		}
		of.Program.Graphs, of.Program.Order = of.Program.Graphs[:len(w.Program.Graphs)], w.Program.Order
		if of.Choose() == nil {
			return some
		}
	}
	return nil
}
