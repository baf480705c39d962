package train

import (
	"cmp"
	"maps"
	"slices"

	"dahl/dag"
)

// Recomputable returns the layers whose recomputation lets the plan of a workload fit its memories. It tries the layers with the
// largest outputs: one, two, four and so on, or all. Nil means that even all of them are too few.
func (w *Workload) Recomputable() []string {
	if w.Model == nil || w.Options.Plan != nil || w.Options.Evaluate {
		return nil
	}
	largest := w.layersByOutput()
	for count := 1; count/2 < len(largest); count *= 2 {
		some := largest[:min(count, len(largest))]
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

// layersByOutput lists the layers with tasks in the forward pass, the largest output first.
func (w *Workload) layersByOutput() (layers []string) {
	bytes := map[string]int64{}
	g := w.Program.Graphs[0]
	for t := range g.Tasks {
		labels := &g.Tasks[t].Labels
		if labels.Phase != "forward" {
			continue
		}
		if _, known := bytes[labels.Layer]; !known {
			layers = append(layers, labels.Layer)
		}
		for i, a := range g.Tasks[t].Accesses {
			if a.Mode == dag.Write {
				bytes[labels.Layer] += g.RegionBytes(dag.TaskID(t), i)
			}
		}
	}
	slices.SortStableFunc(layers, func(a, b string) int { return cmp.Compare(bytes[b], bytes[a]) })
	return layers
}
