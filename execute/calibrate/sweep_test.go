package calibrate

import (
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/must"
)

// TestSweepCoversEveryOperation: each has enough shapes for a fit, for both types.
func TestSweepCoversEveryOperation(t *testing.T) {
	for _, elem := range []dag.DType{dag.Float32, dag.Float64} {
		g := must.Get(sweepGraph(elem))(t)
		shapes := map[string]map[string]bool{}
		for i := range g.Tasks {
			task := &g.Tasks[i]
			if shapes[task.Op] == nil {
				shapes[task.Op] = map[string]bool{}
			}
			shapes[task.Op][task.Shape] = true
		}
		for _, k := range kernels.Kernels() {
			if !k.Host && len(shapes[k.Op]) < 3 {
				t.Errorf("%s: %d shapes of %s", k.Op, len(shapes[k.Op]), elem)
			}
		}
	}
}
