package nn_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// TestLayerCasesCoverTable makes a new layer in the table ask for its case.
func TestLayerCasesCoverTable(t *testing.T) {
	cases := layerCases(t)
	for _, kind := range layers.All() {
		m := cases[kind.Kind]
		if m == nil {
			t.Errorf("layer kind %q has no case in layerCases", kind.Kind)
			continue
		}
		found := false
		for _, s := range m.Stages {
			found = found || s.Layer.Kind() == kind.Kind
		}
		if !found {
			t.Errorf("the case of layer kind %q does not use it", kind.Kind)
		}
	}
}

// TestGradientsAgainstFiniteDifferences compares every weight's gradient (all of
// them for small parameters, 12 drawn ones else) with central differences of the loss.
//
// With D(h) = (L(w+h)-L(w-h))/2h the truncation error is h²·L”'/6 + O(h⁴), so
// D(2h)-D(h) is three times it; the loss itself errs by at most the bound of
// magnitudes, which the quotient divides by h. For networks much deeper than those of one kind
// that bound is too large to be a test.
func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	cases := layerCases(t)
	for _, kind := range layers.All() {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/alone=%v", kind.Kind, alone), func(t *testing.T) { checkGradients(t, cases[kind.Kind], alone) })
		}
	}
}

// TestLossesAgainstFiniteDifferences does the same with other losses. Label smoothing changes no bound,
// since the parts of a target add up to 1. The squared error is steeper in an output z by 2(|z|+1).
func TestLossesAgainstFiniteDifferences(t *testing.T) {
	for _, loss := range []nn.Loss{{LabelSmoothing: 0.25}, {Name: "mse"}} {
		t.Run(loss.String(), func(t *testing.T) {
			m := mustNew(t, "one dense layer", []int{7}, layers.Dense{Outputs: 5})
			m.Defaults.Loss = loss
			checkGradients(t, m, false)
		})
	}
}

func checkGradients(t *testing.T, m *nn.Model, alone bool) {
	const batch, h = 3, 0x1p-15
	some := 12
	if testing.Short() {
		some = 5
	}
	g := mustLower(t, m, nn.LowerOptions{Batch: batch, Type: dag.Float64, Train: true, Samples: batch, Unfused: alone, Optimizer: keepsGradients})
	in := newInterpreter(t, g, map[string][]uint64{})
	in.fill(m, "train", 1)
	index := indices(0, batch)
	in.step(index, 0, 1) // rate 0: the weights stay
	mag := magnitudesOf(t, m, in, batch, batch, index, dag.Float64)
	steep := 1.0
	if m.Defaults.Loss.Name == "mse" {
		steep = 2 * mag.m["loss"][0]
	}
	grads := map[string][]float64{}
	for _, p := range m.Parameters() {
		grads[p.Name] = in.floats("grad." + p.Name)
	}
	for _, p := range m.Parameters() {
		w := in.floats(p.Name)
		slope := func(i int, h float64) float64 {
			old := w[i]
			defer func() { w[i] = old; in.setFloats(p.Name, w) }()
			var loss [2]float64
			for k, d := range []float64{h, -h} {
				w[i] = old + d
				in.setFloats(p.Name, w)
				in.step(index, 0, 1)
				loss[k] = in.floats("loss")[0]
			}
			return (loss[0] - loss[1]) / (2 * h)
		}
		for _, i := range drawn(len(w), some) {
			d1, d2 := slope(i, h), slope(i, 2*h)
			limit := math.Abs(d2-d1) + 3*steep*mag.bound("loss", 0)/h
			if got := grads[p.Name][i]; !(math.Abs(got-d1) <= limit) {
				t.Errorf("grad.%s[%d] is %g, central difference %g ± %.2g", p.Name, i, got, d1, limit)
			} else if limit > 1e-3 {
				t.Errorf("grad.%s[%d]: bound %g is no test", p.Name, i, limit)
			}
		}
	}
}

// drawn returns all of 0…n-1, or some of them.
func drawn(n, some int) []int {
	if n <= some {
		some = n
	}
	return rand.New(rand.NewPCG(uint64(n), 3)).Perm(n)[:some]
}

// TestLoweringsAgree compares loss, outputs and gradients of random lowerings with
// the unsplit chain of single layers, for every fusion and the networks with branches: both
// float types, all layers cut at once, in up to 6 micro-batches. Tiles
// that do not divide the extents are among them. (TestCutsAreExact and TestCutsWithinRounding cut each kind of
// layer by itself.) All of them add up the same products, some in another order, so the
// bounds of magnitudes hold for their differences: a ReLU and the maximum of a window
// are exact, and a fused one is 0 where no gradient passes, as its mask would be.
func TestLoweringsAgree(t *testing.T) {
	const batch, samples = 7, 11
	rng := rand.New(rand.NewPCG(5, 6))
	cases := layerCases(t)
	for _, kind := range layers.All() {
		delete(cases, kind.Kind)
	}
	maps.Copy(cases, fusionCases(t))
	maps.Copy(cases, branchCases(t))
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		m, types := cases[name], []dag.DType{dag.Float32, dag.Float64}
		if testing.Short() {
			types = types[i%2:][:1]
		}
		for _, real := range types {
			index := indices(2, batch)
			opt := nn.LowerOptions{Batch: batch, Type: real, Train: true, Samples: samples, Optimizer: keepsGradients, Unfused: true}
			whole := newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
			whole.fill(m, "train", 2)
			mag := magnitudesOf(t, m, whole, batch, samples, index, real)
			whole.step(index, 0, 1)
			opt.Unfused = false
			opt.Lowering = randomLowering(m, rng)
			if micro := rng.IntN(2) * rng.IntN(batch); !isTracked(m) {
				opt.Lowering.MicroBatches = micro
			}
			split := newInterpreterOf(t, mustLower(t, m, opt), map[string][]uint64{}, byDefault)
			split.fill(m, "train", 2)
			split.step(index, 0, 1)
			what := fmt.Sprintf("%s %v %+v", name, real, opt.Lowering)
			mag.compareSteps(t, what, m, split, whole)
			if split.ints("correct")[0] != whole.ints("correct")[0] {
				t.Fatalf("%s: %d correct, want %d", what, split.ints("correct")[0], whole.ints("correct")[0])
			}
		}
	}
}

func randomLowering(m *nn.Model, rng *rand.Rand) dag.Lowering {
	cut := func() dag.Cut {
		c := dag.Cut{Samples: rng.IntN(6), Outputs: rng.IntN(5), Accumulators: rng.IntN(5)}
		for _, tile := range []*int{&c.Inputs, &c.Rows, &c.Columns} {
			if rng.IntN(2) == 0 {
				*tile = 1 + rng.IntN(5)
			}
		}
		return c
	}
	draw := func() dag.LayerLowering {
		l := dag.LayerLowering{Forward: cut(), WeightGradient: cut()}
		if rng.IntN(2) == 0 {
			l.InputGradient = cut()
		}
		return l
	}
	l := dag.Lowering{Default: draw(), Layers: map[string]dag.LayerLowering{"input": draw(), "loss": draw()}}
	for _, s := range m.Stages {
		if rng.IntN(4) > 0 {
			l.Layers[s.Name] = draw()
		}
	}
	return l
}
