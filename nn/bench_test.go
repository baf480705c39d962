package nn_test

import (
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/models"
)

// BenchmarkLowerMillion lowers a training step of LeNet-5 with 32 tasks for each of its samples, a million in all.
func BenchmarkLowerMillion(b *testing.B) {
	m, err := models.ByName("lenet5")
	if err != nil {
		b.Fatal(err)
	}
	one := dag.Cut{Samples: 1}
	opt := nn.LowerOptions{Batch: 31_250, Samples: 31_250, Type: dag.Float32, Train: true}
	opt.Lowering.Default = dag.LayerLowering{Forward: one, WeightGradient: one}
	b.ReportAllocs()
	for b.Loop() {
		g, err := m.Lower(opt)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(g.NumTasks()), "tasks")
	}
}
