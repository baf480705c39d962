package conformance

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/schedule/layout"
)

// TestSharedStages: a step whose samples five devices share is the step of tiles of one sample with five accumulators, to the bit, if the devices sum in
// pairs, as accumulators do. Other dimensions and exchanges sum in other orders: their losses are near. Whatever runs a step gives the same bits: cores, or emulated
// GPUs beside cores. The last batch has three samples, so that two devices have none.
func TestSharedStages(t *testing.T) {
	cores := []string{"cpu.0", "cpu.1", "cpu.2", "cpu.3", "cpu.4"}
	mixed := []string{"gpu", "cpu.0", "gpu1", "gpu2", "cpu.1"}
	for _, c := range []struct {
		model string
		along dag.Dimension
		sum   dag.Exchange
	}{
		{"digits-cnn", dag.AlongSamples, dag.Tree}, {"digits-cnn", dag.AlongSamples, dag.Direct}, {"digits-cnn", dag.AlongOutputs, dag.Ring}, {"digits-cnn", dag.AlongRows, dag.Ring},
		{branching, dag.AlongSamples, dag.Tree}, {branching, dag.AlongOutputs, dag.Direct}, {branching, dag.AlongRows, dag.Tree},
		{normalised, dag.AlongSamples, dag.Tree}, {normalised, dag.AlongOutputs, dag.Direct}, {normalised, dag.AlongRows, dag.Direct},
	} {
		if testing.Short() && c.model != normalised && c.sum == dag.Direct {
			continue
		}
		n := newNetwork(t, c.model, dag.Float64, 1)
		n.lower(t, dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 1}, WeightGradient: dag.Cut{Samples: 1, Accumulators: 5}}})
		plain := n.execute(t, how{platform: machine(t, 1), policy: "eager"})
		hash := ""
		for i, devices := range [][]string{cores, mixed} {
			what := fmt.Sprintf("%s, %v shared by %v, sums %v", c.model, c.along, devices, c.sum)
			n.lower(t, dag.Lowering{Stages: []dag.Stage{{From: "input", Devices: devices, Along: c.along, Sum: c.sum}}})
			on := machine(t, 5)
			if i == 1 {
				on = emulatedNode(t, 3)
			}
			tr := n.execute(t, how{platform: on, poison: true})
			if hash != "" && tr.hash() != hash {
				t.Errorf("%s: weights %.8s, and on cores %.8s", what, tr.hash(), hash)
			}
			hash = tr.hash()
			if c.sum == dag.Tree && c.along == dag.AlongSamples && hash != plain.hash() {
				t.Errorf("%s: weights %.8s, without stages %.8s", what, hash, plain.hash())
			}
			for step, loss := range tr.losses {
				if want := plain.losses[step]; !(math.Abs(loss-want) <= 1e-12*want) {
					t.Errorf("%s: loss %v of step %d, without stages %v", what, loss, step, want)
				}
			}
		}
	}
}

// wideNetwork has gradients that are exchanged in slices: of a convolution, 67×31×3×3 elements, and of a dense layer, 71×268.
func wideNetwork(t testing.TB, dtype dag.DType, optimizer nn.Optimizer) *network {
	t.Helper()
	m := must.Get(nn.New("wide", []int{1, 8, 8}, layers.Conv2D{Filters: 31, Kernel: 3, Pad: 1}, layers.ReLU{}, layers.MaxPool{Size: 2},
		layers.Conv2D{Filters: 67, Kernel: 3}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 71}, layers.ReLU{}, layers.Dense{Outputs: 10}))(t)
	n := &network{model: m, dtype: dtype, epochs: 1, optimizer: optimizer}
	n.train = must.Get(data.Open("digits", data.Options{Limit: 97}))(t)
	n.test = n.train
	return n
}

// TestSlicesOfState: each of three devices has the optimiser's state of the slice that it updates, in a third of the bytes, and the parameters whole. States of small
// parameters, whose gradients are summed in pairs, are on the first device.
func TestSlicesOfState(t *testing.T) {
	n, devices := wideNetwork(t, dag.Float32, nn.DefaultAdam()), []string{"gpu", "gpu1", "gpu2"}
	n.lower(t, dag.Lowering{Stages: []dag.Stage{{From: "input", Devices: devices}}})
	tr := n.start(t, how{platform: emulatedNode(t, 3)})
	defer tr.runner.Close()
	tr.step(t, 0)
	for k := range devices {
		want := int64(0)
		for _, p := range n.model.Parameters() {
			bytes, rows := 4*int64(p.Elems()), dag.ShareOf(k, p.Shape[0], 3)
			want += layout.Align(bytes)
			if bytes >= dag.SlicedBytes {
				want += 2 * layout.Align(bytes/int64(p.Shape[0])*int64(rows.Len()))
			} else if k == 0 {
				want += 2 * layout.Align(bytes)
			}
		}
		if got := tr.decision.Layouts(0)[1+k].ArenaBytes[layout.NetworkArena]; got != want {
			t.Errorf("%s has %d bytes of parameters and states, want %d", devices[k], got, want)
		}
	}
}

// TestExchangesRound: one step of a network whose weights are large enough to be exchanged in slices. Whatever the order of its sums, a weight is within the bound of
// stepErrors of the exact one. So two exchanges are at most twice that apart. Each order gives the same bits again.
func TestExchangesRound(t *testing.T) {
	for dtype, a := range map[dag.DType]arithmetic{dag.Float32: float32Sums, dag.Float64: float64Sums} {
		n := wideNetwork(t, dtype, nn.SGD{LearningRate: trajectoryRate})
		var bounds map[string][]float64
		var first map[string][]float64
		sliced := 0
		for _, sum := range []dag.Exchange{dag.Tree, dag.Direct, dag.Ring, dag.Ring} {
			stage := dag.Stage{From: "input", Devices: []string{"gpu", "gpu1", "gpu2"}, Sum: sum}
			n.lower(t, dag.Lowering{Stages: []dag.Stage{stage}})
			tr := n.start(t, how{platform: emulatedNode(t, 3)})
			before := tr.parameters()
			tr.step(t, 0)
			after := tr.parameters()
			if first == nil {
				first, bounds = after, a.stepErrors(n.model, before, tr.images(0), tr.labels(0), trajectoryRate)
			}
			different := false
			for name, w := range after {
				for i := range w {
					if d := math.Abs(w[i] - first[name][i]); !(d <= 2*bounds[name][i]) {
						t.Fatalf("%v, %v: element %d of %s is %g from the one of a tree, and may be %g", dtype, sum, i, name, d, 2*bounds[name][i])
					}
				}
				different = different || !slices.Equal(w, first[name])
			}
			if different {
				sliced++
			}
			tr.runner.Close()
		}
		if sliced < 2 {
			t.Errorf("%v: %d exchanges give other bits than a tree; nothing was exchanged in slices", dtype, sliced)
		}
	}
}
