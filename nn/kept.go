package nn

import "dahl/dag"

// KeptBytes is the bytes of activations that the forward pass of a training step leaves to its backward pass, by the layers of their tasks. Results
// of recomputed layers are not among them.
func KeptBytes(g *dag.Graph) map[string]int64 {
	writer, kept := make([]string, len(g.Buffers)), map[string]int64{}
	for t := range g.Tasks {
		task := &g.Tasks[t]
		for _, a := range task.Accesses {
			storage := g.Storage(a.Buffer)
			b := &g.Buffers[storage]
			switch {
			case b.Role != dag.Activation:
			case a.Mode.Writes() && (task.Labels.Phase == phaseForward || task.Labels.Phase == phaseLoad):
				writer[storage] = task.Labels.Layer
			case a.Mode.Reads() && task.Labels.Phase == phaseBackward && writer[storage] != "":
				kept[writer[storage]] += b.Bytes()
				writer[storage] = ""
			}
		}
	}
	return kept
}
