package nn_test

import (
	"fmt"
	"math"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// joined is a network whose last layer has the table of the embedding, and may be lowered together with the loss.
func joined(t testing.TB) *nn.Model {
	const tokens, width, positions = 13, 7, 5
	m := mustNew(t, "tokens", []int{positions},
		nn.Named{Name: "wte", Layer: layers.Embedding{Tokens: tokens, Width: width}}, nn.Named{Name: "norm", Layer: layers.LayerNorm{}},
		nn.Named{Name: "head", Layer: layers.Dense{Outputs: tokens, NoBias: true}, Shares: []string{"wte.weight"}})
	m.Defaults.Optimizer = keepsGradients
	return m
}

// TestJoinLoss compares a step whose last layer computes the loss with a step of both apart: logits and their exponentials are sums of at most 13 terms of size
// 1, so that losses and gradients of 15 positions differ by less than 1e-13. Classes, samples and positions are cut, gradients have accumulators, and labels may be ignored.
func TestJoinLoss(t *testing.T) {
	const batch = 3
	m := joined(t)
	for _, c := range []struct {
		micro   int
		ignored bool
		head    dag.LayerLowering
	}{
		{}, {ignored: true},
		{head: dag.LayerLowering{Forward: dag.Cut{Outputs: 5, Accumulators: 2}, InputGradient: dag.Cut{Outputs: 4, Accumulators: 3}}},
		{micro: 2, ignored: true, head: dag.LayerLowering{Forward: dag.Cut{Samples: 1, Rows: 2, Outputs: 2}, WeightGradient: dag.Cut{Samples: 1, Outputs: 6, Accumulators: 2}}},
	} {
		m.Defaults.Loss.Ignored = c.ignored
		opt := nn.LowerOptions{Batch: batch, Samples: batch, Type: dag.Float64, Train: true}
		opt.Lowering = dag.Lowering{MicroBatches: c.micro, Layers: map[string]dag.LayerLowering{"head": c.head}}
		steps := map[bool]*interpreter{}
		for _, join := range []bool{false, true} {
			opt.Lowering.JoinLoss = join
			g := mustLower(t, m, opt)
			for _, b := range g.Buffers {
				if join && b.Elems() >= batch*5*13 {
					t.Errorf("%+v: buffer %s of %d elements: logits are kept", c, b.Name, b.Elems())
				}
			}
			in := newInterpreter(t, g, map[string][]uint64{})
			in.fill(m, "train", 11)
			if labels := in.ints("data.train.labels"); c.ignored {
				labels[1], labels[7] = -1, -1
			}
			in.step(indices(0, batch), 0, 1)
			steps[join] = in
		}
		names := []string{"loss"}
		for _, p := range m.Parameters() {
			names = append(names, "grad."+p.Name)
		}
		for _, name := range names {
			want, got := steps[false].floats(name), steps[true].floats(name)
			for i := range want {
				if !(math.Abs(got[i]-want[i]) < 1e-13) {
					t.Errorf("%+v: %s[%d] is %v, apart %v", c, name, i, got[i], want[i])
				}
			}
		}
		if a, b := steps[false].ints("correct")[0], steps[true].ints("correct")[0]; a != b {
			t.Errorf("%+v: %d correct, apart %d", c, b, a)
		}
	}
}

// TestJoinLossRefuses networks and losses that have no joined operation.
func TestJoinLossRefuses(t *testing.T) {
	smoothed := joined(t)
	smoothed.Defaults.Loss.LabelSmoothing = 0.1
	for want, m := range map[string]*nn.Model{
		`lower model "tokens": lowering: join_loss is for cross_entropy without label smoothing; the loss is cross_entropy label_smoothing=0.1`: smoothed,
		`lower model "biased": lowering: join_loss needs a dense layer without a bias at the end; the last layer "fc1" is another one`:          mustNew(t, "biased", []int{5}, layers.Dense{Outputs: 3}),
	} {
		_, err := m.Lower(nn.LowerOptions{Batch: 2, Samples: 2, Type: dag.Float64, Train: true, Lowering: dag.Lowering{JoinLoss: true}})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("error %s; want %s", got, want)
		}
	}
}
