package conformance

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/platform"
)

// stashed is a network of four dense layers on three devices, two of them on the first, with an update for each sample.
func stashed(t *testing.T, devices ...string) *network {
	t.Helper()
	n := newNetwork(t, "digits-cnn", dag.Float64, 2)
	n.model = must.Get(nn.New("dense", []int{1, 8, 8}, layers.Flatten{}, layers.Dense{Outputs: 13}, layers.ReLU{}, layers.Dense{Outputs: 12}, layers.ReLU{}, layers.Dense{Outputs: 11}, layers.ReLU{}, layers.Dense{Outputs: 10}))(t)
	n.optimizer = nn.SGD{LearningRate: 0.25, Momentum: 0.5}
	l := dag.Lowering{MicroBatches: fixtureBatch, Stash: true, Default: dag.LayerLowering{Forward: dag.Cut{Outputs: 7}, WeightGradient: dag.Cut{Outputs: 4}}}
	for i, d := range devices {
		l.Stages = append(l.Stages, dag.Stage{From: []string{"input", "fc3", "fc4"}[i], Device: d})
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
// in HEFT's. The losses are those of plain loops with the same delays, within 1e-12, and the same to the bit everywhere.
//
// Of a weight that gradients of inputs read, stage s has 3 - s versions at once in the order of the pipeline: the weight and 2 - s copies. The short last step
// has too few mini-batches for that.
func TestStash(t *testing.T) {
	var want []float64
	var hash string
	for _, c := range []struct {
		platform *platform.Platform
		devices  []string
		policy   string
	}{
		{machine(t, 3), []string{"cpu.0", "cpu.1", "cpu.2"}, "1f1b"},
		{emulatedNode(t, 2), []string{"gpu", "cpu", "gpu1"}, "1f1b"},
		{emulatedNode(t, 1), []string{"cpu.0", "gpu", "cpu.1"}, "heft"},
	} {
		n := stashed(t, c.devices...)
		tr := n.execute(t, how{platform: c.platform, policy: c.policy})
		if want == nil {
			want, hash = n.delayedLosses([4]int{2, 2, 1, 0}), tr.hash()
		}
		if tr.hash() != hash {
			t.Errorf("%v by %s: weights %.8s, want %.8s", c.devices, c.policy, tr.hash(), hash)
		}
		for _, r := range tr.runs {
			for s := range 3 {
				got := versionsAtOnce(r, fmt.Sprintf("fc%d.weight.version", s+2))
				if exact := c.policy == "1f1b" && r.problem.Graph.Name == nn.GraphTrain; exact && got != 2-s || got > 2-s {
					t.Errorf("%v by %s: %s has %d copies of the weight of stage %d at once, want %d", c.devices, c.policy, r.problem.Graph.Name, got, s, 2-s)
				}
			}
		}
		var losses []float64
		for k, loss := range tr.losses {
			if k%epochSteps < 3 { // the others are evaluations
				losses = append(losses, loss)
			}
		}
		if len(losses) != len(want) {
			t.Fatalf("%d losses, want %d", len(losses), len(want))
		}
		for k := range want {
			if diff := math.Abs(losses[k] - want[k]); !(diff <= 1e-12) {
				t.Errorf("%v by %s: step %d has the loss %v, want %v", c.devices, c.policy, k, losses[k], want[k])
			}
		}
	}
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

// versionsAtOnce is the greatest number of copies of a weight that a step has from its task to the end of the last reader.
func versionsAtOnce(r run, name string) (most int) {
	type key struct {
		storage dag.BufferID
		step    int32
	}
	lives := map[key][2]time.Duration{}
	for _, span := range r.schedule.Spans { // by start
		for _, a := range r.problem.Graph.Tasks[span.Task].Accesses {
			storage := r.problem.Graph.Storage(a.Buffer)
			if !strings.HasPrefix(r.problem.Graph.Buffers[storage].Name, name) {
				continue
			}
			k := key{storage, span.Step}
			life, begun := lives[k]
			if !begun {
				life[0] = span.Start
			}
			lives[k] = [2]time.Duration{life[0], max(life[1], span.End)}
		}
	}
	for _, at := range lives {
		now := 0
		for _, life := range lives {
			if life[0] <= at[0] && at[0] < life[1] {
				now++
			}
		}
		most = max(most, now)
	}
	return most
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
