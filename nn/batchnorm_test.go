package nn_test

import (
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// TestPassesOfABlock counts how often tasks read or write a map of activations or gradients in a residual block before another one,
// beside the convolutions: 13 passes forward and 17 backward with single layers, where a ReLU's mask is not counted. Fused, there are
// 3 forward, since the second convolution normalises what it reads, and backward 8 of the sum's gradient (dy, the part of the way around, y, x, and dy again; then dy, x, dx), and
// 5 of the other normalisation (dy, x; dy, x, dx).
func TestPassesOfABlock(t *testing.T) {
	conv := layers.Conv2D{Filters: 5, Kernel: 3, Pad: 1, NoBias: true}
	m := mustNew(t, "block", []int{2, 7, 11}, conv, layers.BatchNorm{}, layers.ReLU{},
		conv, layers.BatchNorm{}, layers.ReLU{}, conv, layers.BatchNorm{}, nn.Of(layers.Add{}, "bn3", "relu1"), layers.ReLU{},
		conv, layers.BatchNorm{}, nn.Of(layers.Add{}, "bn4", "relu3"), layers.ReLU{}, conv, layers.Flatten{}, layers.Dense{Outputs: 3})
	for _, c := range []struct {
		fused             bool
		forward, backward int
	}{{false, 13, 17}, {true, 3, 13}} {
		g := mustLower(t, m, nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 3, Unfused: !c.fused})
		passes := map[string]int{}
		for i := range g.Tasks {
			task := &g.Tasks[i]
			block := slices.Contains([]string{"bn2", "relu2", "bn3", "add1", "relu3"}, task.Labels.Layer)
			for _, a := range task.Accesses {
				b := &g.Buffers[a.Buffer]
				if !block || len(b.Shape) != 4 || b.Type == dag.Uint8 {
					continue
				}
				passes[task.Labels.Phase]++
				if a.Mode == dag.ReadWrite {
					passes[task.Labels.Phase]++
				}
			}
		}
		if passes["forward"] != c.forward || passes["backward"] != c.backward {
			t.Errorf("fused %v: passes %v, want %d forward and %d backward", c.fused, passes, c.forward, c.backward)
		}
	}
}

// TestStatisticsOfMicroBatches: a step in micro-batches of two samples and one leaves the running statistics that
// steps of two samples and of one leave, bit for bit.
func TestStatisticsOfMicroBatches(t *testing.T) {
	m := mustNew(t, "normalised", []int{2, 7, 5}, layers.BatchNorm{}, layers.Conv2D{Filters: 3, Kernel: 3}, layers.BatchNorm{Momentum: 0.5}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 5})
	opt := nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 3}
	opt.Lowering.MicroBatches = 2
	together := newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
	together.fill(m, "train", 3)
	together.step(indices(0, 3), 0, 1)

	opt.Lowering.MicroBatches, opt.Batch = 0, 2
	shared := map[string][]uint64{}
	first := newInterpreter(t, mustLower(t, m, opt), shared)
	opt.Batch = 1
	second := newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
	first.fill(m, "train", 3)
	first.step(indices(0, 2), 0, 1)
	second.fill(m, "train", 3)
	for i := range m.Stages {
		for _, p := range m.Stages[i].Running {
			copy(second.storage[p.Name], first.storage[p.Name])
		}
	}
	second.step(indices(2, 1), 0, 1)
	for i := range m.Stages {
		for _, p := range m.Stages[i].Running {
			if got, want := together.storage[p.Name], second.storage[p.Name]; !slices.Equal(got, want) || got[0] == 0 {
				t.Errorf("%s is %v, want %v", p.Name, got, want)
			}
		}
	}
	if n := together.storage["bn1.num_batches_tracked"][0]; n != 2 {
		t.Errorf("%d batches are tracked, want 2", n)
	}
}

// TestStatisticsNeedTwoValues: PyTorch refuses a batch with one value per channel, too.
func TestStatisticsNeedTwoValues(t *testing.T) {
	m := mustNew(t, "single", []int{2, 1, 1}, layers.BatchNorm{}, layers.Flatten{}, layers.Dense{Outputs: 3})
	_, err := m.Lower(nn.LowerOptions{Batch: 1, Type: dag.Float32, Train: true, Samples: 1})
	if err == nil || !strings.Contains(err.Error(), `layer "bn1": a channel has one value, whose variance is not defined; train with more samples at a time`) {
		t.Errorf("error %v", err)
	}
	mustLower(t, m, nn.LowerOptions{Batch: 1, Type: dag.Float32, Samples: 1})
}

// TestDropoutPassesEvaluations: an evaluation has no task for it, in front of a dense layer and of a convolution.
func TestDropoutPassesEvaluations(t *testing.T) {
	with := mustNew(t, "dropped", []int{2, 7, 5}, layers.Conv2D{Filters: 3, Kernel: 3}, layers.Dropout{P: 0.5}, layers.Conv2D{Filters: 7, Kernel: 1}, layers.Flatten{}, layers.Dropout{P: 0.25}, layers.Dense{Outputs: 5})
	without := mustNew(t, "kept", []int{2, 7, 5}, layers.Conv2D{Filters: 3, Kernel: 3}, layers.Conv2D{Filters: 7, Kernel: 1}, layers.Flatten{}, layers.Dense{Outputs: 5})
	var outputs [2][]float64
	for i, m := range []*nn.Model{with, without} {
		g := mustLower(t, m, nn.LowerOptions{Batch: 3, Type: dag.Float64, Samples: 3})
		in := newInterpreter(t, g, map[string][]uint64{})
		in.fill(m, "test", 3)
		in.step(indices(0, 3), 0, 1)
		outputs[i] = in.floats("fc1.out")
	}
	if !slices.Equal(outputs[0], outputs[1]) {
		t.Errorf("outputs %v, without dropout %v", outputs[0], outputs[1])
	}
}
