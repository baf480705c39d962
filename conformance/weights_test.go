package conformance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/schedule/audit"
)

const (
	twins          = 3
	trajectoryRate = 0.1
)

// trajectory is a training in float64, on one core by the reference kernels
// in program order, and what rounding may make of it.
//
// Bound. A training in another arithmetic is v(t+1) = F(v(t)) + r(t), F being the exact
// step and r what the step rounds, of which stepErrors bounds every element: |r| ≤ ρ.
// To first order its distance from the exact w(t+1) = F(w(t)) is d(T) = Σ J(T←s)·r(s), the
// J being products of the derivatives of F along w. How far they carry an error is
// found by twins: float64 trainings z(t+1) = F(z(t)) + ±ρ(t), with random signs, whose
// distance from w is the same sum with errors of the largest size. Rounding errors r have
// no common sign either, and are far below ρ. So the largest distance among the elements of
// a parameter, and the twins, bounds that of any such training.
//
// Errors of size ρ would carry values over the kinks of ReLU and max-pool, where no first order
// holds; those of float32 are so much smaller that they do not. So its twins have a small part of ρ, and
// their distance is that much larger. Factors of 8 or 11 bits do cross kinks, and so do their twins.
type trajectory struct {
	*network                              // in float64
	weights, moved map[string][]float64   // after the last step, and their distance from the first
	errors         []map[string][]float64 // ρ, by step
	part           float64                // of ρ that the twins have
}

// smallNetwork has two convolutions of different kinds, pooling and two dense layers.
func smallNetwork(t testing.TB, dtype dag.DType) *network {
	t.Helper()
	m := must.Get(nn.New("small", []int{1, 8, 8}, layers.Conv2D{Filters: 5, Kernel: 3, Pad: 1}, layers.ReLU{}, layers.MaxPool{Size: 2},
		layers.Conv2D{Filters: 7, Kernel: 3}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 13}, layers.ReLU{}, layers.Dense{Outputs: 10}))(t)
	n := &network{model: m, dtype: dtype, epochs: 1, optimizer: nn.SGD{LearningRate: trajectoryRate}}
	n.train = must.Get(data.Open("digits", data.Options{Limit: 97}))(t)
	n.test = n.train
	n.lower(t, fixtureLowering())
	return n
}

// tiles lowers with tiles for a split alone, and so in few tasks.
func (n *network) tiles(t testing.TB, split int) {
	t.Helper()
	l := dag.Lowering{}
	switch deviceSplits[split].name {
	case "sample":
		l.Default = dag.LayerLowering{Forward: dag.Cut{Samples: 2}, WeightGradient: dag.Cut{Samples: 2}}
	case "filter":
		l.Default = dag.LayerLowering{Forward: dag.Cut{Outputs: 4}, WeightGradient: dag.Cut{Outputs: 4}}
	}
	n.lower(t, l)
}

func newTrajectory(t testing.TB, a arithmetic, steps int) *trajectory {
	t.Helper()
	tr := &trajectory{network: smallNetwork(t, dag.Float64), moved: map[string][]float64{}, part: 1}
	if a == float32Sums {
		tr.part = 0x1p-16
	}
	exact := tr.start(t, how{platform: machine(t, 1), policy: "eager", variant: "ref"})
	defer exact.runner.Close()
	first := exact.parameters()
	for step := range steps {
		tr.errors = append(tr.errors, a.stepErrors(tr.model, exact.parameters(), exact.images(step), exact.labels(step), trajectoryRate))
		exact.step(t, step)
	}
	tr.weights = exact.parameters()
	for name, w := range tr.weights {
		for i := range w {
			tr.moved[name] = append(tr.moved[name], w[i]-first[name][i])
		}
	}
	return tr
}

// bounds is how far the elements of each parameter may be from the trajectory.
func (tr *trajectory) bounds(t testing.TB) map[string]float64 {
	t.Helper()
	bounds := map[string]float64{}
	for seed := range uint64(twins) {
		twin := tr.start(t, how{platform: machine(t, 1), policy: "eager", variant: "ref"})
		rng := rand.New(rand.NewPCG(seed, 43))
		for step := range tr.errors {
			twin.step(t, step)
			for _, p := range tr.model.Parameters() { // in a fixed order, for the same signs
				for i, e := range tr.errors[step][p.Name] {
					twin.runner.Float64s(p.Name)[i] += tr.part * e * float64(2*rng.IntN(2)-1)
				}
			}
		}
		for name, far := range tr.distances(twin.parameters()) {
			bounds[name] = max(bounds[name], far/tr.part)
		}
		twin.runner.Close()
	}
	return bounds
}

// distances is the largest distance of an element from the trajectory, by parameter.
func (tr *trajectory) distances(weights map[string][]float64) map[string]float64 {
	far := map[string]float64{}
	for name, w := range tr.weights {
		for i := range w {
			d := math.Abs(weights[name][i] - w[i])
			if math.IsNaN(d) {
				d = math.Inf(1)
			}
			far[name] = max(far[name], d)
		}
	}
	return far
}

// start puts a network on a runner, to be trained step by step in the order of the samples.
func (n *network) start(t testing.TB, h how) *training {
	t.Helper()
	tr := &training{network: n}
	tr.open(t, h, map[string]execute.Hook{
		"feed": func(step int, call *calls.Call) error {
			if len(call.Args) > 1 {
				copy(calls.Data[float64](&call.Args[1]), []float64{n.rate(), float64(tr.done + step + 1)})
			}
			tr.visit(tr.done+step, calls.Data[int32](&call.Args[0]))
			return nil
		},
		"fetch": tr.fetch,
	})
	return tr
}

// visit names the training samples of a step: in their order, over and over.
func (tr *training) visit(step int, index []int32) {
	for i := range index {
		index[i] = int32((step*len(index) + i) % tr.train.Len())
	}
}

// images are the pixels of the samples of a step.
func (tr *training) images(step int) [][]float64 {
	index := make([]int32, fixtureBatch)
	tr.visit(step, index)
	images := make([][]float64, len(index))
	size := product(tr.train.Shape[:])
	for i, at := range index {
		for _, b := range tr.train.Samples[int(at)*size:][:size] {
			images[i] = append(images[i], float64(b)/tr.train.Divisor)
		}
	}
	return images
}

// labels are those of the samples of a step.
func (tr *training) labels(step int) []int32 {
	labels := make([]int32, fixtureBatch)
	tr.visit(step, labels)
	for i, at := range labels {
		labels[i] = tr.train.Labels[at]
	}
	return labels
}

// step trains for one step.
func (tr *training) step(t testing.TB, step int) {
	t.Helper()
	tr.done = step
	must.Get(tr.runner.Run(context.Background(), 0, 1, false))(t)
}

// parameters are the weights by name.
func (tr *training) parameters() map[string][]float64 {
	weights := map[string][]float64{}
	for _, p := range tr.model.Parameters() {
		if tr.dtype == dag.Float64 {
			weights[p.Name] = slices.Clone(tr.runner.Float64s(p.Name))
			continue
		}
		for _, w := range tr.runner.Float32s(p.Name) {
			weights[p.Name] = append(weights[p.Name], float64(w))
		}
	}
	return weights
}

// after trains for some steps in one run.
func (n *network) after(t testing.TB, h how, steps int) map[string][]float64 {
	t.Helper()
	tr := n.start(t, h)
	defer tr.runner.Close()
	s := must.Get(tr.runner.Run(context.Background(), 0, steps, true))(t)
	if err := audit.Check(s, tr.decision.Problem(0, steps, false)); err != nil {
		t.Error(err)
	}
	return tr.parameters()
}

// within fails where weights are farther from the trajectory than bounds allow.
func (tr *trajectory) within(t *testing.T, weights map[string][]float64, bounds map[string]float64) {
	t.Helper()
	for name, far := range tr.distances(weights) {
		if far > bounds[name] {
			t.Errorf("%s is %.3g off, bound %.3g", name, far, bounds[name])
		}
	}
}

// meaningful fails unless every bound is below a share of what training changed.
func (tr *trajectory) meaningful(t *testing.T, bounds map[string]float64, share float64) {
	t.Helper()
	for name, moved := range tr.moved {
		most := 0.0
		for _, m := range moved {
			most = max(most, math.Abs(m))
		}
		t.Logf("%s: moved %.3g, bound %.3g", name, most, bounds[name])
		if bounds[name] > share*most {
			t.Errorf("%s: a bound of %.3g says little: training moved it by %.3g", name, bounds[name], most)
		}
	}
}

// TestWeightsAfterHundredSteps trains on one core with each variant in both types, and on
// splits with emulated GPUs: all stay within the derived bound of the exact trajectory.
func TestWeightsAfterHundredSteps(t *testing.T) {
	const steps = 100
	for _, c := range []struct {
		dtype dag.DType
		a     arithmetic
	}{{dag.Float32, float32Sums}, {dag.Float64, float64Sums}} {
		exact := newTrajectory(t, c.a, steps)
		bounds := exact.bounds(t)
		exact.meaningful(t, bounds, 0.01)
		n := smallNetwork(t, c.dtype)
		for _, variant := range []string{"", "go", "ref"} {
			t.Run(fmt.Sprintf("%v, variant %q", c.dtype, variant), func(t *testing.T) {
				exact.within(t, n.after(t, how{platform: machine(t, 2), policy: "eager", variant: variant}, steps), bounds)
			})
		}
		for split := range deviceSplits {
			t.Run(fmt.Sprintf("%v, %s split", c.dtype, deviceSplits[split].name), func(t *testing.T) {
				n.tiles(t, split)
				exact.within(t, n.after(t, how{platform: emulatedNode(t, 2), plans: n.splitPlans(4, split)}, steps), bounds)
			})
		}
	}
}

// TestBoundSeesAWrongRate: the bound tells apart trainings whose rates differ by a tenth
// of a percent.
func TestBoundSeesAWrongRate(t *testing.T) {
	const steps = 100
	exact := newTrajectory(t, float32Sums, steps)
	n := smallNetwork(t, dag.Float32)
	n.optimizer = nn.SGD{LearningRate: trajectoryRate * 1.001}
	bounds := exact.bounds(t)
	for name, far := range exact.distances(n.after(t, how{platform: machine(t, 1), policy: "eager"}, steps)) {
		if far <= bounds[name] {
			t.Errorf("%s: a rate of 1.001 is not seen: %.3g off, bound %.3g", name, far, bounds[name])
		}
	}
}
