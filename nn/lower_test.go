package nn

import (
	"testing"

	"dahl/dag"
)

// TestModelsLower builds the training step and the evaluation of every model at its
// default batch, with the default lowering.
func TestModelsLower(t *testing.T) {
	for _, info := range Models {
		m := info.New()
		batch := m.Defaults.Batch
		for _, train := range []bool{true, false} {
			g, err := m.Lower(LowerOptions{
				Batch: batch, Type: dag.Float32, Train: train, Samples: 1009,
				Lowering: DefaultLowering(m, batch, 1<<20, dag.Float32),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%-15s batch %3d train=%-5v %4d tasks, %d weights", info.Name, batch, train, g.NumTasks(), m.NumWeights())
		}
	}
}
