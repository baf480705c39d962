//go:build cuda

package conformance

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/execute/cuda"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/platform"
)

// How tensor cores round: factors of 11 and 8 bits.
var (
	tf32Factors = arithmetic{sums: 0x1p-24, factors: 0x1p-11}
	bf16Factors = arithmetic{sums: 0x1p-24, factors: 0x1p-8}
)

// cudaPlatform is emulatedNode with CUDA devices in place of the emulated ones; the test
// is skipped where there are fewer.
func cudaPlatform(t testing.TB, gpus int) *platform.Platform {
	t.Helper()
	if n, err := cuda.Count(); errors.Is(err, cuda.ErrNoDevice) || err == nil && n < gpus {
		t.Skipf("%d of %d CUDA devices: %v", n, gpus, err)
	} else if err != nil {
		t.Fatal(err)
	}
	p := emulatedNode(t, gpus)
	for i := 1; i <= gpus; i++ {
		p.Devices[i].Kind, p.Devices[i].Ordinal = "cuda", i-1
	}
	return p
}

// TestCUDAWeights trains on a GPU alone, but for what the caller does, and on
// splits of cores and GPUs, in every arithmetic that GPUs have. The weights stay within the
// bound of the exact trajectory, as those of the cores do (TestWeightsAfterHundredSteps), and
// have the same bits in a second run. Rounded factors get few steps: later some value is so near a
// kink that it falls on the other side of it (tf32: 12 % off after 10 steps, for two splits), where
// no first order holds.
func TestCUDAWeights(t *testing.T) {
	for _, c := range []struct {
		dtype   dag.DType
		variant string
		a       arithmetic
		steps   int
	}{
		{dag.Float32, "", float32Sums, 100},
		{dag.Float64, "", float64Sums, 30}, // the test driver is slow
		{dag.Float32, "tf32", tf32Factors, 5},
		{dag.Float32, "bf16", bf16Factors, 5},
		{dag.Float32, "cudnn", float32Sums, 10},
		{dag.Float32, "cudnn-tf32", tf32Factors, 5},
	} {
		t.Run(fmt.Sprintf("%v %s", c.dtype, c.variant), func(t *testing.T) {
			cudaPlatform(t, 1)
			exact := newTrajectory(t, c.a, c.steps)
			bounds := exact.bounds(t)
			if c.variant == "" {
				exact.meaningful(t, bounds, 0.01)
			}
			n := smallNetwork(t, c.dtype)
			for split := range deviceSplits {
				gpus := 1 + split%2 // sample on one, filter on two, stage on one
				t.Run(deviceSplits[split].name, func(t *testing.T) {
					n.tiles(t, split)
					h := how{platform: cudaPlatform(t, gpus), plans: n.splitPlans(2+gpus, split), variant: c.variant}
					got := n.after(t, h, c.steps)
					exact.within(t, got, bounds)
					if c.a.factors > 0 {
						exact.along(t, got, c.a.factors)
					}
					if again := n.after(t, h, c.steps); !maps.EqualFunc(got, again, slices.Equal[[]float64]) {
						t.Error("a second run gives other bits")
					}
				})
			}
		})
	}
}

// TestCUDATrainsAllLayers trains a network with every function, a dilated depthwise convolution, a padded pooling, a sum, a concatenation and
// an average of all pixels on a GPU alone, with clipped gradients, smoothed labels and both layouts. The weights after a few
// steps are those of the reference on a core but for roundings of float64: a wrong kernel would
// change what training moves, which is 10⁻⁴ at least, and roundings of 10⁻¹⁶ have 10⁶ to grow by.
func TestCUDATrainsAllLayers(t *testing.T) {
	cudaPlatform(t, 1)
	m, err := nn.New("all layers", []int{1, 8, 8},
		layers.Conv2D{Filters: 5, Kernel: 3, Pad: 1}, layers.Activation{Function: "tanh"}, layers.Conv2D{Filters: 5, Kernel: 3, Pad: 2, Dilation: 2, Groups: 5},
		nn.Of(layers.Add{}, "tanh1", "conv2"), layers.Activation{Function: "gelu"}, layers.MaxPool{Size: 3, Stride: 2, Pad: 1},
		layers.Conv2D{Filters: 7, Kernel: 3, Pad: 1}, layers.Activation{Function: "leaky_relu", Setting: 0.01}, nn.Of(layers.Concat{}, "pool1", "leaky_relu1"), layers.GlobalAvgPool{},
		layers.Flatten{}, layers.Dense{Outputs: 13}, layers.Activation{Function: "sigmoid"}, layers.Dense{Outputs: 11}, layers.Activation{Function: "gelu_tanh"}, layers.Dense{Outputs: 10})
	if err != nil {
		t.Fatal(err)
	}
	m.Defaults.ClipNorm, m.Defaults.Loss = 0.5, nn.Loss{LabelSmoothing: 0.125}
	n := newNetwork(t, "digits-cnn", dag.Float64, 1)
	n.model, n.optimizer = m, nn.SGD{LearningRate: 0.25, Momentum: 0.9}
	const steps = 4
	n.lower(t, dag.Lowering{})
	want := n.after(t, how{platform: machine(t, 1), policy: "eager", variant: "ref"}, steps)
	got := n.after(t, how{platform: cudaPlatform(t, 1), plans: n.splitPlans(3, len(deviceSplits)-1)}, steps)
	for name, w := range want {
		for i := range w {
			if d := math.Abs(got[name][i] - w[i]); !(d <= 1e-10) {
				t.Fatalf("%s[%d] is %g off", name, i, d)
			}
		}
	}
}

// along wants weights whose way from the first to the last step is the exact one but for a
// share, in the 2-norm of each parameter. Every layer rounds the factors of its products
// forward (which the softmax may double), backward and for the gradient: 8·L·v, to first
// order, of what it adds up. The worst case, where all errors have one sign and the sums
// cancel (stepErrors), is larger than the way itself; so this is the closer test of the two. It
// also wants the rounding to be there.
func (tr *trajectory) along(t *testing.T, weights map[string][]float64, v float64) {
	t.Helper()
	const layers = 4
	most := 0.0
	for name, w := range tr.weights {
		off, moved := 0.0, 0.0
		for i := range w {
			off += (weights[name][i] - w[i]) * (weights[name][i] - w[i])
			moved += tr.moved[name][i] * tr.moved[name][i]
		}
		share := math.Sqrt(off / moved)
		if most = max(most, share); share > 8*layers*v {
			t.Errorf("%s: %.3g of its way from the exact one, bound %.3g", name, share, 8*layers*v)
		}
	}
	if most < v/8 {
		t.Errorf("all parameters are within %.3g of their ways: factors are not rounded to %.3g", most, v)
	}
}
