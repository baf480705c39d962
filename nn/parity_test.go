package nn_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/models"
	"dahl/nn/rates"
)

// The fixtures of testdata/torch_fixtures.py.
type fixtures struct {
	Layers     []layerFixture
	Optimizers []optimizerFixture
}

type layerFixture struct {
	Name        string
	Input       []int
	Batch       int
	Layers      []map[string]any
	Images      []byte
	Labels      []int32
	Params      map[string]coded
	Outputs     []coded
	OutputGrads []coded `json:"output_grads"`
	Grads       map[string]coded
	Loss        float64
	Correct     int32

	// Running are the running statistics after the step, Evaluated the output of an evaluation with these.
	Running   map[string]coded
	Evaluated coded
	// Trained is the losses of the first steps by stochastic gradient descent at a rate of 1/64 and a momentum of 1/2.
	Trained []float64
}

type optimizerFixture struct {
	Optimizer struct {
		Kind                                      string
		LR, Momentum, Nesterov, Beta1, Beta2, Eps float64
		WeightDecay                               float64 `json:"weight_decay"`
		DecayDims                                 int     `json:"decay_dims"`

		Schedule, Loss string
		LabelSmoothing float64 `json:"label_smoothing"`
		ClipNorm       float64 `json:"clip_norm"`
	}
	Batch, Features, Classes, Samples int
	Images                            []byte
	Labels                            []int32
	Params                            map[string]coded
	Rates, Loss, Norms                []float64
	After                             []map[string]coded
}

// coded is float64 values, little-endian in base64.
type coded []float64

func (c *coded) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	for i := 0; i+8 <= len(raw); i += 8 {
		*c = append(*c, math.Float64frombits(binary.LittleEndian.Uint64(raw[i:])))
	}
	return err
}

func readFixtures(t testing.TB) *fixtures {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/torch_fixtures.json"))(t)
	var f fixtures
	must.Do(t, json.Unmarshal(data, &f))
	return &f
}

// model builds the fixture's network through the table of layers.
func (f *layerFixture) model(t testing.TB) *nn.Model {
	t.Helper()
	var all []nn.Layer
	for _, spec := range f.Layers {
		kind := must.Get(layers.ByName(spec["kind"].(string)))(t)
		s := layers.Settings{}
		for _, key := range kind.Keys {
			s[key.Name] = key.Default
			switch v := spec[key.Name].(type) {
			case float64:
				s[key.Name] = v
			case []any:
				var list []float64
				for _, e := range v {
					list = append(list, e.(float64))
				}
				s.Set(key.Name, list...)
			}
		}
		n := nn.Named{Layer: kind.New(s)}
		if name, ok := spec[nn.WeightsOf].(string); ok {
			n.Shares = []string{name}
		}
		if names, ok := spec["input"].([]any); ok {
			for _, name := range names {
				n.Inputs = append(n.Inputs, name.(string))
			}
		}
		all = append(all, n)
	}
	return mustNew(t, f.Name, f.Input, all...)
}

// layerCases are the networks of the fixtures, one around each kind of layer and some with many
// branches, with pairwise different primes for all extents. The layer under test follows a
// convolution, so that the gradient of its input is needed.
func layerCases(t testing.TB) map[string]*nn.Model {
	t.Helper()
	cases := map[string]*nn.Model{}
	for _, f := range readFixtures(t).Layers {
		cases[f.Name] = f.model(t)
	}
	return cases
}

// TestLayersMatchPyTorch compares every layer's output, its gradient, and the
// gradients of all weights with PyTorch's float64 results, within the bound that
// magnitudes derives for the element type.
func TestLayersMatchPyTorch(t *testing.T) {
	for _, f := range readFixtures(t).Layers {
		if len(f.Running) == 0 { // PyTorch's statistics are of the batch
			t.Run(f.Name+"/micro-batches", func(t *testing.T) {
				f.check(t, dag.Float64, nn.LowerOptions{Lowering: dag.Lowering{MicroBatches: f.Batch}})
			})
		}
		for _, real := range []dag.DType{dag.Float64, dag.Float32} {
			for _, alone := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/alone=%v", f.Name, real, alone), func(t *testing.T) { f.check(t, real, nn.LowerOptions{Unfused: alone}) })
			}
		}
	}
}

// keepsGradients is an optimiser for which all lowerings have all gradients in memory.
var keepsGradients = nn.DefaultAdam()

// check runs the fixture's network and compares every value that the lowering keeps.
func (f *layerFixture) check(t *testing.T, real dag.DType, opt nn.LowerOptions) {
	m := f.model(t)
	opt.Batch, opt.Type, opt.Train, opt.Samples, opt.Optimizer = f.Batch, real, true, f.Batch, keepsGradients
	g := mustLower(t, m, opt)
	shared := map[string][]uint64{}
	in := newInterpreter(t, g, shared)
	copy(in.bytes("data.train.images"), f.Images)
	copy(in.ints("data.train.labels"), f.Labels)
	for name, values := range f.Params {
		in.setFloats(name, values)
	}
	if seed := shared[nn.DropoutSeed]; seed != nil {
		seed[0] = 0x0123456789ABCDEF
	}
	index := indices(0, f.Batch)
	mag := magnitudesOf(t, m, in, f.Batch, f.Batch, index, real)
	in.step(index, 0, 1)
	compared, without := 0, 0
	for i, s := range m.Stages {
		for name, want := range map[string]coded{s.Name + ".out": f.Outputs[i], "grad." + s.Name + ".out": f.OutputGrads[i]} {
			if got := in.ofStage(m, i, name); got != nil && len(want) > 0 {
				mag.compareWithin(t, "PyTorch", name, got, want)
				compared++
			}
		}
		if len(f.OutputGrads[i]) == 0 {
			without++
		}
		if s.Traits.Integers {
			without++
		}
	}
	if all := 2*len(m.Stages) - without; compared > all || compared < all && opt.Unfused {
		t.Errorf("%d of %d outputs and their gradients are there", compared, all)
	}
	for _, p := range m.Parameters() {
		mag.compareWithin(t, "PyTorch", "grad."+p.Name, in.floats("grad."+p.Name), f.Grads[p.Name])
	}
	mag.compareWithin(t, "PyTorch", "loss", in.floats("loss"), []float64{f.Loss})
	if got := in.ints("correct")[0]; got != f.Correct {
		t.Errorf("%d correct, want %d", got, f.Correct)
	}
	if len(f.Running) > 0 {
		f.checkRunning(t, in, shared, mag, opt.Unfused)
	}
}

// checkRunning compares running statistics, and the output of an evaluation with these and the same weights: within
// 1e-5 of the largest output for float32, and 1e-13 for float64.
func (f *layerFixture) checkRunning(t *testing.T, in *interpreter, shared map[string][]uint64, mag *magnitudes, alone bool) {
	m := f.model(t)
	for name, want := range f.Running {
		mag.compareWithin(t, "PyTorch", name, in.floats(name), want)
	}
	for i := range m.Stages {
		for _, p := range m.Stages[i].Running {
			if p.Counts && shared[p.Name][0] != 1 {
				t.Errorf("%s is %d after a step", p.Name, shared[p.Name][0])
			}
		}
	}
	g := mustLower(t, m, nn.LowerOptions{Batch: f.Batch, Type: in.kind, Samples: f.Batch, Unfused: alone})
	shared["data.test.images"], shared["data.test.labels"] = shared["data.train.images"], shared["data.train.labels"]
	evaluation := newInterpreter(t, g, shared)
	evaluation.step(indices(0, f.Batch), 0, 1)
	limit := 1e-13
	if in.kind == dag.Float32 {
		limit = 1e-5
	}
	top := max(slices.Max(f.Evaluated), -slices.Min(f.Evaluated))
	for i, got := range evaluation.floats(m.Stages[len(m.Stages)-1].Name + ".out") {
		if !(math.Abs(got-f.Evaluated[i]) <= limit*top) {
			t.Fatalf("output %d of the evaluation is %.17g, want %.17g", i, got, f.Evaluated[i])
		}
	}
}

// TestTrainingMatchesPyTorch: 20 steps of networks with batch normalisations, of a GPT and of a Llama, and 50 of a vision transformer with a class token, have PyTorch's losses to eleven digits in
// float64, with fused layers and single ones.
func TestTrainingMatchesPyTorch(t *testing.T) {
	for _, f := range readFixtures(t).Layers {
		for _, alone := range []bool{false, true} {
			if len(f.Trained) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/alone=%v", f.Name, alone), func(t *testing.T) {
				f.train(t, nn.LowerOptions{Unfused: alone})
			})
		}
	}
}

// TestLlama: the first two layers of the built-in Llama and its ends are those of the fixture, each with the same inputs.
func TestLlama(t *testing.T) {
	all := readFixtures(t).Layers
	want := all[slices.IndexFunc(all, func(f layerFixture) bool { return f.Name == "llama" })].model(t).Stages
	got := must.Get(models.ByName("llama-8b"))(t).Stages
	for i, s := range want {
		g := got[i]
		if i >= len(want)-2 { // thirty layers later
			g = got[len(got)-len(want)+i]
			g.Inputs = []int{g.Inputs[0] - len(got) + len(want)}
		}
		if g.Layer.Kind() != s.Layer.Kind() || !slices.Equal(g.Inputs, s.Inputs) || len(g.Params) != len(s.Params) {
			t.Errorf("layer %s is %s of %v, want %s of %v", g.Name, g.Layer.Kind(), g.Inputs, s.Layer.Kind(), s.Inputs)
		}
	}
	if r, a := got[3].Layer, got[4].Layer; r != (layers.Rotary{Heads: 40, Width: 128, Base: 500000}) || a != (layers.Attention{Heads: 32, KeyHeads: 8, Causal: true}) {
		t.Errorf("positions %+v, attention %+v", r, a)
	}
}

// train compares the losses of the first steps under a lowering.
func (f *layerFixture) train(t *testing.T, opt nn.LowerOptions) {
	t.Helper()
	opt.Batch, opt.Type, opt.Train, opt.Samples, opt.Optimizer = f.Batch, dag.Float64, true, f.Batch, nn.SGD{Momentum: 0.5}
	in := newInterpreterOf(t, mustLower(t, f.model(t), opt), map[string][]uint64{}, byDefault)
	copy(in.bytes("data.train.images"), f.Images)
	copy(in.ints("data.train.labels"), f.Labels)
	for name, values := range f.Params {
		in.setFloats(name, values)
	}
	for step, want := range f.Trained {
		in.step(indices(0, f.Batch), 1./64, step+1)
		if got := in.floats("loss")[0]; !(math.Abs(got-want) <= 1e-11*want) {
			t.Fatalf("%+v: loss %d is %.17g, want %.17g", opt.Lowering, step+1, got, want)
		}
	}
}

// TestSequencesInEveryForm: 20 steps of a GPT have PyTorch's losses in micro-batches, cut along samples, features and positions, recomputed, and shared
// by three devices along each of these, by two to four in pairs of layers along outputs and inputs, also with one sample at a time.
func TestSequencesInEveryForm(t *testing.T) {
	all := readFixtures(t).Layers
	f := &all[slices.IndexFunc(all, func(f layerFixture) bool { return f.Name == "gpt" })]
	every := func(c dag.Cut) dag.LayerLowering {
		return dag.LayerLowering{Forward: c, InputGradient: c, WeightGradient: c}
	}
	lowerings := []dag.Lowering{
		{MicroBatches: 2}, {Default: every(dag.Cut{Samples: 2})}, {Default: every(dag.Cut{Rows: 3, Accumulators: 2})},
		{Default: every(dag.Cut{Outputs: 4, Inputs: 7})}, {Default: dag.LayerLowering{Recompute: true, Forward: dag.Cut{Rows: 4}}},
	}
	devices := []string{"a", "b", "c"}
	for _, along := range []dag.Dimension{dag.AlongSamples, dag.AlongOutputs, dag.AlongRows} {
		for sum := range dag.NumExchanges {
			lowerings = append(lowerings, dag.Lowering{Stages: []dag.Stage{{From: "input", Devices: devices, Along: along, Sum: sum}}})
		}
	}
	pairs, second := map[string]dag.LayerLowering{}, false // every other layer with a weight is cut along its inputs
	for _, s := range f.model(t).Stages {
		if s.Traits.Weight {
			if second {
				pairs[s.Name] = dag.LayerLowering{Forward: dag.Cut{Inputs: (nn.Channels(s.In[0]) + 1) / 2, Accumulators: 2}}
			}
			second = !second
		}
	}
	for _, on := range [][]string{devices[:2], devices, {"a", "b", "c", "d"}} {
		s := dag.Stage{From: "input", Devices: on, Along: dag.AlongOutputs, Sum: dag.Ring, Replicas: len(on) / 2}
		if len(on) == 3 {
			s.Replicas = 0
		}
		lowerings = append(lowerings, dag.Lowering{Layers: pairs, Stages: []dag.Stage{s}}, dag.Lowering{Layers: pairs, Stages: []dag.Stage{s}, MicroBatches: f.Batch})
	}
	for _, l := range lowerings {
		f.train(t, nn.LowerOptions{Lowering: l})
	}
}

func (f *optimizerFixture) optimizer() nn.Optimizer {
	o := f.Optimizer
	if o.Kind != "sgd" {
		return nn.Adam{LearningRate: o.LR, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, WeightDecay: o.WeightDecay, DecayDims: o.DecayDims, Decoupled: o.Kind == "adamw"}
	}
	return nn.SGD{LearningRate: o.LR, Momentum: o.Momentum, WeightDecay: o.WeightDecay, Nesterov: o.Nesterov != 0}
}

// TestSchedulesMatchPyTorch compares the rates of schedules with those of PyTorch's schedulers, where an
// epoch has three steps. PyTorch computes a rate from the one before, in at most four roundings: after
// 20 steps they differ by at most 100 roundings of the largest rate.
func TestSchedulesMatchPyTorch(t *testing.T) {
	compared := 0
	for _, f := range readFixtures(t).Optimizers {
		if f.Optimizer.Schedule == "" {
			continue
		}
		s := must.Get(rates.Parse(f.Optimizer.Schedule))(t)
		rate := s.Rates(f.Optimizer.LR, 3)
		for step, want := range f.Rates {
			if got := rate(step); !(math.Abs(got-want) <= 100*0x1p-53*f.Optimizer.LR) {
				t.Errorf("%s: rate %.17g of step %d, want %.17g", f.Optimizer.Schedule, got, step, want)
			}
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("%d rates are no test", compared)
	}
}

// TestOptimizersMatchPyTorch trains one dense layer for some steps whose rate
// changes, and compares weights and losses after each with PyTorch's.
//
// Bound. All differences are norms (of Frobenius) over the N weights, in which a rounding of each is
// √N roundings. With pixels in [0,1], a batch of n, and weights that differ by at most d, logits of
// a sample differ by at most √(features+1)·d, softmax probabilities by half of that, and the mean
// gradient of the weights by √(features+1) times that: a gradient errs by
// e = (features+1)/2·d + √N·K·eps·M with K, M as in magnitudes (K = 2·features + n +
// 2·classes + 20, M ≤ 1 + max|z| ≤ 1 + features+1 times the largest weight), plus
// weight_decay·d. Label smoothing takes constants from the probabilities. The squared error has
// 2/classes in place of ½, which is less, and the loss is steeper by M. Clipping maps gradients
// into a ball and brings no two of them farther apart. SGD then adds at most rate·e to d, or with momentum rate·Σ of the
// e so far (velocities err by the sum; Nesterov counts the last one twice), and eps
// times the numbers added. In Adam, m/(√v+eps') has in each moment the errors of the
// gradients so far, relative to √v+eps': with r the smallest √v̂+eps' (as recomputed
// from our own state, which is bounded away from 0 by the test) the quotient errs by at most 2·e/r,
// plus 8 roundings; a factor 2 for bias corrections that PyTorch applies in another order.
func TestOptimizersMatchPyTorch(t *testing.T) {
	for _, f := range readFixtures(t).Optimizers {
		for _, real := range []dag.DType{dag.Float64, dag.Float32} {
			for _, l := range updateLowerings {
				t.Run(fmt.Sprintf("%+v/%v/%d samples, %d micro-batches", f.Optimizer, real, l.Default.WeightGradient.Samples, l.MicroBatches), func(t *testing.T) { checkOptimizer(t, &f, real, l) })
			}
		}
	}
}

// updateLowerings split the updates, so that parts of a parameter are updated by tasks of
// their own: behind gradients summed over tiles of samples, and at once with them. In the last one
// micro-batches follow each other.
var updateLowerings = []dag.Lowering{
	{Default: dag.LayerLowering{WeightGradient: dag.Cut{Samples: 2, Outputs: 2}}},
	{Default: dag.LayerLowering{WeightGradient: dag.Cut{Outputs: 2}}},
	{MicroBatches: 3, Default: dag.LayerLowering{WeightGradient: dag.Cut{Outputs: 2}}},
}

func checkOptimizer(t *testing.T, f *optimizerFixture, real dag.DType, lowering dag.Lowering) {
	m := mustNew(t, "one dense layer", []int{f.Features}, layers.Dense{Outputs: f.Classes})
	m.Defaults.Loss = nn.Loss{Name: f.Optimizer.Loss, LabelSmoothing: f.Optimizer.LabelSmoothing}
	m.Defaults.ClipNorm = f.Optimizer.ClipNorm
	if len(f.Norms) > 0 && (slices.Min(f.Norms) > m.Defaults.ClipNorm || slices.Max(f.Norms) < m.Defaults.ClipNorm) {
		t.Fatalf("norms %v are all on one side of %v, which is no test", f.Norms, m.Defaults.ClipNorm)
	}
	g := mustLower(t, m, nn.LowerOptions{Batch: f.Batch, Type: real, Train: true, Samples: f.Samples, Optimizer: f.optimizer(), Lowering: lowering})
	in := newInterpreter(t, g, map[string][]uint64{})
	copy(in.bytes("data.train.images"), f.Images)
	copy(in.ints("data.train.labels"), f.Labels)
	for name, values := range f.Params {
		in.setFloats(name, values)
	}
	eps := 0x1p-53
	if real == dag.Float32 {
		eps = 0x1p-24
	}
	d, sumErr := 0.0, 0.0
	for step, rate := range f.Rates {
		index := make([]int32, f.Batch)
		for i := range index {
			index[i] = int32((f.Batch*step + i) % f.Samples)
		}
		in.step(index, rate, step+1)
		top := 0.0
		for _, p := range m.Parameters() {
			for _, w := range in.floats(p.Name) {
				top = max(top, math.Abs(w))
			}
		}
		k := float64(2*f.Features + f.Batch + 2*f.Classes + 20)
		mag := 1 + float64(f.Features+1)*(top+1)
		root := math.Sqrt(float64((f.Features + 1) * f.Classes))
		e := float64(f.Features+1)/2*d + root*k*eps*mag + f.Optimizer.WeightDecay*d
		sumErr += e
		steep := 1.0
		if m.Defaults.Loss.Name == "mse" {
			steep = mag
		}
		if loss := in.floats("loss")[0]; !(math.Abs(loss-f.Loss[step]) <= 2*steep*(k*eps*mag+2*float64(f.Features+1)*d)) {
			t.Fatalf("step %d: loss %.17g, want %.17g", step+1, loss, f.Loss[step])
		}
		switch o := f.Optimizer; {
		case o.Kind != "sgd":
			d += rate * (2*2*sumErr/smallestRoot(in, m, f, step+1) + root*8*eps)
		case o.Momentum > 0:
			d += rate * (sumErr + e + root*4*eps*mag)
		default:
			d += rate * (e + root*2*eps*mag)
		}
		d += root * 4 * eps * top
		for name, want := range f.After[step] {
			for i, got := range in.floats(name) {
				if !(math.Abs(got-want[i]) <= 2*d) {
					t.Fatalf("step %d: %s[%d] is %.17g, want %.17g, off by %.3g, bound %.3g", step+1, name, i, got, want[i], math.Abs(got-want[i]), 2*d)
				}
			}
		}
		if d > 0.01 && step > 0 && real == dag.Float32 {
			return // dividing by √v lets the float32 bound of Adam grow past use
		}
		if d > 0.01 {
			t.Fatalf("step %d: bound %g is no test", step+1, d)
		}
	}
}

// smallestRoot is the smallest √v̂+eps of Adam over all weights after a step.
func smallestRoot(in *interpreter, m *nn.Model, f *optimizerFixture, step int) float64 {
	least := math.Inf(1)
	for _, p := range m.Parameters() {
		for _, v := range in.floats("state." + p.Name + ".v") {
			least = min(least, math.Sqrt(v/(1-math.Pow(f.Optimizer.Beta2, float64(step))))+f.Optimizer.Eps)
		}
	}
	return least
}
