package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// TestLossPerPosition compares a network that is one product with weights W at each of 3×5 positions with its formulas.
// With z = W·x + b, p = softmax(z), targets q and N·P positions in all:
//
//	cross-entropy  L = mean of -Σ q·log p              dL/dz = (p - q)/(N·P)
//	squared error  L = mean of Σ (z - q)²/C            dL/dz = 2·(z - q)/(C·N·P)
//	               dL/dW = Σ dL/dz·x                   dL/db = Σ dL/dz
//
// Where labels of -1 are ignored, all means are over the positions with others.
//
// Sums of at most 4·15 terms of size 1 differ by less than 1e-13. The samples are pixels or numbers, in memory or handed over.
// A central difference of the loss at steps of 1e-5 is off by 1e-10 times its third derivative, below 1, and by what rounding adds, 1e-16/1e-5.
func TestLossPerPosition(t *testing.T) {
	const n, classes, channels, positions = 4, 3, 2, 15
	rng := rand.New(rand.NewPCG(3, 1))
	at := make([]float64, n*positions*channels) // by sample, channel, position
	bytes := make([]byte, len(at))
	all := make([]int32, n*positions)
	for i := range bytes {
		bytes[i] = byte(rng.IntN(256))
		at[i] = float64(bytes[i]) / 255
	}
	for i := range all {
		all[i] = int32(rng.IntN(classes))
	}
	m := mustNew(t, "segments", []int{channels, 3, 5}, layers.Conv2D{Filters: classes, Kernel: 1})
	if got := fmt.Sprint(m.Classes(), m.Positions()); got != "3 [3 5]" {
		t.Fatalf("classes and positions %s", got)
	}
	for _, c := range []struct {
		kind   dag.DType
		loss   nn.Loss
		stream bool
		micro  int
		tile   int
	}{
		{kind: dag.Uint8}, {kind: dag.Float64}, {kind: dag.Float64, stream: true, tile: 3}, {kind: dag.Uint8, stream: true, micro: 2},
		{kind: dag.Float64, loss: nn.Loss{LabelSmoothing: 0.25}, micro: 3}, {kind: dag.Uint8, loss: nn.Loss{Name: "mse"}, tile: 1},
		{kind: dag.Float64, loss: nn.Loss{LabelSmoothing: 0.25, Ignored: true}, micro: 3}, {kind: dag.Uint8, loss: nn.Loss{Ignored: true}, stream: true, tile: 1},
	} {
		m.Defaults.Loss = c.loss
		labels, counted := slices.Clone(all), n*positions
		if c.loss.Ignored { // every third
			for i := 0; i < len(labels); i += 3 {
				labels[i] = -1
				counted--
			}
		}
		opt := nn.LowerOptions{Batch: n, Samples: n, Type: dag.Float64, SampleType: c.kind, Stream: c.stream, Train: true, Optimizer: keepsGradients}
		opt.Lowering.MicroBatches = c.micro
		opt.Lowering.Layers = map[string]dag.LayerLowering{"loss": {Forward: dag.Cut{Samples: c.tile}}, "input": {Forward: dag.Cut{Samples: c.tile}}}
		in := newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
		from, of := "data.train", "data.train.labels"
		if c.stream {
			from, of = "step", "labels"
		}
		if c.kind == dag.Uint8 {
			copy(in.bytes(from+".images"), bytes)
		} else {
			p, size := in.Elems(from + ".images")
			copy(unsafe.Slice((*float64)(unsafe.Pointer(p)), size), at)
		}
		copy(in.ints(of), labels)
		weights := map[string][]float64{}
		for _, p := range m.Parameters() {
			w := make([]float64, p.Elems())
			for i := range w {
				w[i] = rng.Float64() - 0.5
			}
			weights[p.Name] = w
			in.setFloats(p.Name, w)
		}
		in.step(indices(0, n), 0, 1)
		w, b := weights["conv1.weight"], weights["conv1.bias"]
		loss, correct, dw, db := 0.0, int32(0), make([]float64, len(w)), make([]float64, len(b))
		for i := range n {
			for p := range positions {
				var z [classes]float64
				sum, best := 0.0, 0
				for k := range z {
					z[k] = b[k]
					for x := range channels {
						z[k] += w[k*channels+x] * at[(i*channels+x)*positions+p]
					}
					sum += math.Exp(z[k])
					if z[k] > z[best] {
						best = k
					}
				}
				label := int(labels[i*positions+p])
				if label < 0 {
					continue
				}
				if best == label {
					correct++
				}
				for k := range z {
					q := c.loss.LabelSmoothing / classes
					if k == label {
						q += 1 - c.loss.LabelSmoothing
					}
					dz := math.Exp(z[k])/sum - q
					if c.loss.Name == "mse" {
						loss += (z[k] - q) * (z[k] - q) / classes
						dz = 2 * (z[k] - q) / classes
					} else {
						loss -= q * (z[k] - math.Log(sum))
					}
					dz /= float64(counted)
					db[k] += dz
					for x := range channels {
						dw[k*channels+x] += dz * at[(i*channels+x)*positions+p]
					}
				}
			}
		}
		if got := in.floats("loss")[0]; math.Abs(got-loss/float64(counted)) > 1e-13 || in.ints("correct")[0] != correct {
			t.Errorf("%+v: loss %v, %d correct; want %v, %d", c, got, in.ints("correct")[0], loss/float64(counted), correct)
		}
		grads := map[string][]float64{"grad.conv1.weight": in.floats("grad.conv1.weight"), "grad.conv1.bias": in.floats("grad.conv1.bias")}
		slope, weight := 0.0, weights["conv1.weight"]
		for _, h := range []float64{-1e-5, 2e-5} {
			weight[1] += h
			in.setFloats("conv1.weight", weight)
			in.step(indices(0, n), 0, 1)
			slope = in.floats("loss")[0] - slope
		}
		if got := grads["grad.conv1.weight"][1]; math.Abs(got-slope/2e-5) > 1e-9 {
			t.Errorf("%+v: gradient %v, central difference %v", c, got, slope/2e-5)
		}
		for name, want := range map[string][]float64{"grad.conv1.weight": dw, "grad.conv1.bias": db} {
			for i, got := range grads[name] {
				if math.Abs(got-want[i]) > 1e-13 {
					t.Errorf("%+v: %s[%d] is %v, want %v", c, name, i, got, want[i])
				}
			}
		}
	}
}
