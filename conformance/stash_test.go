package conformance

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/platform"
	"dahl/schedule"
)

// stashed is a network of four dense layers on three or four devices, of three two on the first, with an update for each sample.
func stashed(t *testing.T, verticalSync bool, devices ...string) *network {
	t.Helper()
	n := newNetwork(t, "digits-cnn", dag.Float64, 2)
	n.model = must.Get(nn.New("dense", []int{1, 8, 8}, layers.Flatten{}, layers.Dense{Outputs: 13}, layers.ReLU{}, layers.Dense{Outputs: 12}, layers.ReLU{}, layers.Dense{Outputs: 11}, layers.ReLU{}, layers.Dense{Outputs: 10}))(t)
	n.optimizer = nn.SGD{LearningRate: 0.25, Momentum: 0.5}
	l := dag.Lowering{MicroBatches: fixtureBatch, Stash: true, VerticalSync: verticalSync, Default: dag.LayerLowering{Forward: dag.Cut{Outputs: 7}, WeightGradient: dag.Cut{Outputs: 4}}}
	for i, from := range []string{"input", "fc2", "fc3", "fc4"} {
		if i != 1 || len(devices) == 4 {
			l.Stages = append(l.Stages, dag.Stage{From: from, Device: devices[len(l.Stages)]})
		}
	}
	n.lower(t, l)
	return n
}

// delayed trains the network one sample after the other, in plain loops. Layer s computes both passes of sample j of the training, from 0 on, with the
// weights behind max(0, j - delays[s]) updates.
type delayed struct {
	weights, biases    [4][][]float64 // by layer and updates
	speeds, biasSpeeds [4][]float64
	sizes              [5]int
	delays             [4]int
	done               int // samples
}

func (d *delayed) step(x [][]float64, labels []int32) (loss float64) {
	for k := range x {
		j, values := d.done+k, [][]float64{x[k]}
		at := func(layer int) int { return max(0, j-d.delays[layer]) }
		for s := range 4 {
			w, out := d.weights[s][at(s)], append([]float64(nil), d.biases[s][at(s)]...)
			for o := range out {
				for i, v := range values[s] {
					out[o] += w[o*d.sizes[s]+i] * v
				}
				if s < 3 {
					out[o] = max(0, out[o])
				}
			}
			values = append(values, out)
		}
		sum := 0.0
		for _, z := range values[4] {
			sum += math.Exp(z)
		}
		loss += (math.Log(sum) - values[4][labels[k]]) / float64(len(x))
		delta := make([]float64, 10)
		for o, z := range values[4] {
			delta[o] = math.Exp(z) / sum
		}
		delta[labels[k]]--
		for s := 3; s >= 0; s-- {
			w, before := d.weights[s][at(s)], make([]float64, d.sizes[s])
			newW, newB := append([]float64(nil), d.weights[s][j]...), append([]float64(nil), d.biases[s][j]...)
			for o, g := range delta {
				for i, v := range values[s] {
					k := o*d.sizes[s] + i
					if v > 0 {
						before[i] += w[k] * g
					}
					d.speeds[s][k] = 0.5*d.speeds[s][k] + g*v
					newW[k] -= 0.25 * d.speeds[s][k]
				}
				d.biasSpeeds[s][o] = 0.5*d.biasSpeeds[s][o] + g
				newB[o] -= 0.25 * d.biasSpeeds[s][o]
			}
			d.weights[s], d.biases[s], delta = append(d.weights[s], newW), append(d.biases[s], newB), before
		}
	}
	d.done += len(x)
	return loss
}

// TestStash trains 26 mini-batches of a sample with stashed weights, in steps of 5, 5 and 3, on cores and on emulated GPUs, in the order of the pipeline and
// in HEFT's. The losses are those of plain loops with the same delays, within 1e-12, and the same to the bit for the same delays. In the order of the pipeline the second
// step begins before the first one has ended.
func TestStash(t *testing.T) {
	hashes := map[[4]int]string{}
	for _, c := range []struct {
		platform     *platform.Platform
		devices      []string
		policy       string
		verticalSync bool
		delays       [4]int
	}{
		{machine(t, 3), []string{"cpu.0", "cpu.1", "cpu.2"}, "1f1b", false, [4]int{2, 2, 1, 0}},
		{emulatedNode(t, 2), []string{"gpu", "cpu", "gpu1"}, "1f1b", false, [4]int{2, 2, 1, 0}},
		{emulatedNode(t, 1), []string{"cpu.0", "gpu", "cpu.1"}, "heft", false, [4]int{2, 2, 1, 0}},
		{machine(t, 4), []string{"cpu.0", "cpu.1", "cpu.2", "cpu.3"}, "1f1b", false, [4]int{3, 2, 1, 0}}, // 3 mini-batches are fewer than versions
		{emulatedNode(t, 1), []string{"cpu.0", "gpu", "cpu.1"}, "1f1b", true, [4]int{2, 2, 2, 2}},
		{machine(t, 4), []string{"cpu.0", "cpu.1", "cpu.2", "cpu.3"}, "1f1b", true, [4]int{3, 3, 3, 3}},
	} {
		what := fmt.Sprintf("%v by %s with delays %v", c.devices, c.policy, c.delays)
		n := stashed(t, c.verticalSync, c.devices...)
		tr := n.execute(t, how{platform: c.platform, policy: c.policy, poison: true})
		if hash, known := hashes[c.delays]; known && tr.hash() != hash {
			t.Errorf("%s: weights %.8s, want %.8s", what, tr.hash(), hash)
		}
		hashes[c.delays] = tr.hash()
		if first := tr.runs[0].schedule; c.policy == "1f1b" && !overlap(first) {
			t.Errorf("%s: no step begins before the last one has ended", what)
		}
		var losses []float64
		for k, loss := range tr.losses {
			if k%epochSteps < 3 { // the others are evaluations
				losses = append(losses, loss)
			}
		}
		want := n.delayedLosses(c.delays)
		if len(losses) != len(want) {
			t.Fatalf("%s: %d losses, want %d", what, len(losses), len(want))
		}
		for k := range want {
			if diff := math.Abs(losses[k] - want[k]); !(diff <= 1e-12) {
				t.Errorf("%s: step %d has the loss %v, want %v", what, k, losses[k], want[k])
			}
		}
	}
}

// overlap reports whether a worker begins a step while others work on the one before.
func overlap(s *schedule.Schedule) bool {
	ends := map[int32]time.Duration{}
	for _, span := range s.Spans {
		ends[span.Step] = max(ends[span.Step], span.End)
	}
	return slices.ContainsFunc(s.Spans, func(span schedule.Span) bool {
		return span.Step > 0 && span.Worker == s.Spans[0].Worker && span.Start < ends[span.Step-1]
	})
}

// delayedLosses are the losses of the training steps of the network by plain loops.
func (n *network) delayedLosses(delays [4]int) (losses []float64) {
	d := &delayed{sizes: [5]int{64, 13, 12, 11, 10}, delays: delays}
	for i, p := range n.model.Parameters() {
		values := make([]float64, p.Elems())
		p.Init(values, 0, 5)
		if s := i / 2; i%2 == 0 {
			d.weights[s], d.speeds[s] = [][]float64{values}, make([]float64, len(values))
		} else {
			d.biases[s], d.biasSpeeds[s] = [][]float64{values}, make([]float64, len(values))
		}
	}
	pixels := make([]byte, n.train.Len()*64)
	if err := n.train.Fill(pixels); err != nil {
		panic(err)
	}
	samples := make([]int32, n.train.Len())
	for epoch := range n.epochs {
		data.InOrder(samples)
		data.Shuffle(samples, 3, epoch)
		for first := 0; first < len(samples); first += fixtureBatch {
			var x [][]float64
			var labels []int32
			for _, k := range samples[first:min(first+fixtureBatch, len(samples))] {
				image := make([]float64, 64)
				for i, b := range pixels[64*k:][:64] {
					image[i] = float64(b) / n.train.Divisor
				}
				x, labels = append(x, image), append(labels, n.train.Labels[k])
			}
			losses = append(losses, d.step(x, labels))
		}
	}
	return losses
}

// TestStashOfOneStage: without a stage behind it, a stage goes backward at once. So mini-batches of a sample in steps of 5 train as steps of a sample do, to the bit,
// with convolutions, whose weights have copies in other layouts, and branches.
func TestStashOfOneStage(t *testing.T) {
	for _, model := range []string{"digits-cnn", branching} {
		n := newNetwork(t, model, dag.Float32, 1)
		l := fixtureLowering()
		plain := *n
		plain.prog = must.Get(nn.NewProgram(n.model, nn.ProgramOptions{Batch: 1, TrainSamples: fixtureTrain, TestSamples: fixtureTest, Epochs: 1, Type: n.dtype, Lowering: l, Divisor: n.train.Divisor}))(t)
		want := plain.execute(t, how{platform: machine(t, 1)}).hash()
		l.MicroBatches, l.Stash, l.Stages = fixtureBatch, true, []dag.Stage{{From: "input", Device: "cpu"}}
		n.lower(t, l)
		if got := n.execute(t, how{platform: machine(t, 2), policy: "1f1b"}).hash(); got != want {
			t.Errorf("%s: weights %.8s, want %.8s", model, got, want)
		}
	}
}
