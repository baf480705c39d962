package conformance

import (
	"context"
	"runtime"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/execute/executetest"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
)

// TestSteadyTrainingStepsAllocateNothing counts the allocations of the whole process
// over 1,000 steps of a training run with every kind of layer, split and summed in
// accumulators, from inside the run. What the runtime itself allocates now and then
// is left out by taking the best of five tries.
func TestSteadyTrainingStepsAllocateNothing(t *testing.T) {
	const first, last = 50, 1050
	m := must.Get(nn.New("small", []int{2, 7, 5}, layers.Conv2D{Filters: 3, Kernel: 3, Pad: 1}, layers.BatchNorm{}, layers.ReLU{}, layers.Dropout{P: 0.25}, layers.AvgPool{Size: 3, Stride: 1},
		layers.MaxPool{Size: 2}, layers.Flatten{}, layers.Dense{Outputs: 11}))(t)
	train := must.Get(data.Open("synthetic:2x7x5:13:11", data.Options{}))(t)
	n := &network{model: m, dtype: dag.Float32, train: train, test: train, epochs: 1}
	n.lower(t, dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 3}, WeightGradient: dag.Cut{Samples: 2, Outputs: 2, Accumulators: 2}}})
	for _, policy := range []string{"heft", "eager", "dmda"} {
		if least := n.leastAllocations(t, policy, first, last); least != 0 {
			t.Errorf("%s: %d allocations in %d steps, want none", policy, least, last-first)
		}
	}
}

// leastAllocations counts between two steps of one run, at the least of five tries.
func (n *network) leastAllocations(t *testing.T, policy string, first, last int) uint64 {
	t.Helper()
	tr := &training{network: n}
	var before, after runtime.MemStats
	tr.open(t, how{platform: machine(t, 2), policy: policy}, map[string]execute.Hook{
		"feed": func(step int, args []calls.Arg) error {
			switch step {
			case first:
				runtime.ReadMemStats(&before)
			case last:
				runtime.ReadMemStats(&after)
			}
			copy(calls.Data[float64](&args[1]), []float64{0.01, float64(step + 1)})
			return tr.feedOrder(step, args)
		},
		"fetch": func(int, []calls.Arg) error { return nil },
	})
	defer tr.runner.Close()
	least := uint64(1 << 60)
	for try := 0; try < 5 && least > 0; try++ {
		executetest.CacheWaits()
		if _, err := tr.runner.Run(context.Background(), 0, last+1, true); err != nil {
			t.Fatal(err)
		}
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return least
}

// feedOrder visits the training samples in order, over and over.
func (tr *training) feedOrder(step int, args []calls.Arg) error {
	index := calls.Data[int32](&args[0])
	for i := range index {
		index[i] = int32((step*len(index) + i) % tr.train.Len())
	}
	return nil
}
