package train

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/models"
	"dahl/nn/npz"
	"dahl/nn/rates"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train/metrics"
)

// trainable is a workload of digits-cnn over 53 training and 17 test samples: per epoch 7 steps of 7
// samples, one of 4, and as many batches of the test as fit.
func trainable(t testing.TB, p *platform.Platform, o Options) *Workload {
	t.Helper()
	return trainableAs(t, p, o, nn.Defaults{})
}

// trainableAs is trainable with a schedule, a loss and clipping.
func trainableAs(t testing.TB, p *platform.Platform, o Options, as nn.Defaults) *Workload {
	t.Helper()
	m := must.Get(models.ByName("digits-cnn"))(t)
	m.Defaults.Schedule, m.Defaults.Loss, m.Defaults.ClipNorm = as.Schedule, as.Loss, as.ClipNorm
	return trainableOf(t, m, p, o)
}

// trainableOf is trainable with another network.
func trainableOf(t testing.TB, m *nn.Model, p *platform.Platform, o Options) *Workload {
	t.Helper()
	d := must.Get(OpenData("digits", 53, 0))(t)
	test := *d.Test
	test.Samples, test.Labels = test.Samples[:17*64], test.Labels[:17]
	d.Test = &test
	o.Batch, o.Epochs, o.Shuffle, o.Seed = 7, 3, true, 11
	return must.Get(New(m, d, p, o))(t)
}

// run trains, keeping checkpoints; at the n-th one it ends, if n is not 0. From nil it starts at
// the start.
func runFrom(t *testing.T, w *Workload, from *Checkpoint, n int) (tr *Trainer, last []byte, err error) {
	t.Helper()
	if from == nil {
		tr, err = w.Start()
	} else {
		tr, err = w.Resume(from)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	count := 0
	tr.OnCheckpoint = func(c *Checkpoint) error {
		if count++; count == n {
			end(errEnough)
		}
		var b bytes.Buffer
		err := c.Encode(&b)
		last = b.Bytes()
		return err
	}
	err = tr.Run(ctx)
	return tr, last, err
}

var errEnough = errors.New("enough")

// decoded reads a checkpoint back.
func decoded(t *testing.T, data []byte) *Checkpoint {
	t.Helper()
	return must.Get(DecodeCheckpoint(bytes.NewReader(data), int64(len(data))))(t)
}

// TestResume interrupts trainings at every checkpoint in turn and goes on from the bytes that were
// kept: the weights, the losses of all steps and the results of all epochs are those of the
// training that nothing disturbed, whatever the machine, the policy and the optimiser.
func TestResume(t *testing.T) {
	emulated := load(t, "emulated")
	cores := load(t, "emulated")
	cores = must.Get(cores.Select("cpu"))(t)
	policy := func(name string) schedule.Policy {
		return must.Get(policy.ByName(name))(t)
	}
	adam := must.Get(nn.OptimizerByName("adam"))(t)
	momentum := nn.SGD{LearningRate: 0.03125, Momentum: 0.75, Nesterov: true}
	tracked := must.Get(nn.New("tracked", []int{1, 8, 8}, layers.Conv2D{Filters: 5, Kernel: 3}, layers.BatchNorm{}, layers.ReLU{}, layers.Dropout{P: 0.25}, layers.Flatten{}, layers.Dense{Outputs: 10}))(t)
	// 7 samples are 4 mini-batches, or 2 in the last step of an epoch, of which the stages have 3, 2 and 1 versions.
	stashed := func(devices ...string) *dag.Lowering {
		l := &dag.Lowering{MicroBatches: 4, Stash: true, Order: "1f1b"}
		for i, d := range devices {
			l.Stages = append(l.Stages, dag.Stage{From: []string{"input", "conv2", "fc1"}[i], Device: d})
		}
		return l
	}
	for name, c := range map[string]struct {
		p     *platform.Platform
		o     Options
		as    nn.Defaults
		model *nn.Model // nil: digits-cnn
	}{
		"cores, statistics and dropout": {p: cores, o: Options{Optimizer: momentum}, model: tracked},
		"GPU, statistics and dropout":   {p: emulated, o: Options{Record: 1}, model: tracked},
		"cores, momentum":               {p: cores, o: Options{Optimizer: momentum}, as: nn.Defaults{}},
		"cores, Adam, by a policy":      {p: cores, o: Options{Optimizer: adam.New(), Policy: policy("dmda")}, as: nn.Defaults{}},
		"GPU, Adam":                     {p: emulated, o: Options{Optimizer: adam.New(), Record: 1}, as: nn.Defaults{}},
		"GPU, momentum, by a policy":    {p: emulated, o: Options{Optimizer: momentum, Policy: policy("dmdar"), Type: dag.Float64}, as: nn.Defaults{}},
		"GPU, a cosine over epochs":     {p: emulated, o: Options{Record: 1}, as: nn.Defaults{Schedule: rates.Schedule{Kind: "cosine", Over: 2}, Loss: nn.Loss{Name: "mse"}}},
		"cores, stashed weights":        {p: cores, o: Options{Optimizer: momentum, Lowering: stashed("cpu.0", "cpu.1")}},
		"GPU, stashed weights":          {p: emulated, o: Options{Optimizer: momentum, Lowering: stashed("cpu.0", "gpu", "cpu.1"), Record: 1}},
		"cores, all that changes steps": {p: cores, o: Options{Optimizer: nn.DefaultAdamW(), Policy: policy("eager")}, as: nn.Defaults{
			Schedule: rates.Schedule{Kind: "cosine", Over: 17, PerStep: true, Warmup: 3, From: 0.25}, Loss: nn.Loss{LabelSmoothing: 0.125}, ClipNorm: 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Checkpoint = CheckpointEvery{Steps: 5}
			w := trainableAs(t, c.p, c.o, c.as)
			if c.model != nil {
				w = trainableOf(t, c.model, c.p, c.o)
			}
			whole, _ := must.Get2(runFrom(t, w, nil, 0))(t)
			// 3·8 = 24 steps: a checkpoint after 5, 10, 15, 20 of them, and one at the end.
			if whole.Saving.Count != 5 || len(whole.Steps) != 24 {
				t.Fatalf("%d checkpoints in %d steps, want 5 in 24", whole.Saving.Count, len(whole.Steps))
			}
			var from *Checkpoint
			var steps []metrics.Step
			var epochs []metrics.Epoch
			for leg := range 5 {
				tr, last, err := runFrom(t, w, from, 1)
				if leg < 4 && !errors.Is(err, errEnough) || leg == 4 && err != nil {
					t.Fatalf("leg %d: %v", leg, err)
				}
				steps, epochs = append(steps, tr.Steps...), append(epochs, tr.Epochs...)
				if from = decoded(t, last); from.Steps != len(steps) {
					t.Errorf("leg %d: the checkpoint is after %d steps, and %d ran", leg, from.Steps, len(steps))
				}
				if leg == 4 && tr.WeightsHash() != whole.WeightsHash() {
					t.Error("the weights differ from those of the undisturbed training")
				}
				if p, err := tr.Measured, tr.PredictLegs(t.Context()); err != nil || p.Main == nil || tr.Predicted.Main == nil {
					t.Errorf("leg %d: what ran is not predicted: %v", leg, err)
				}
			}
			if !slices.Equal(steps, whole.Steps) {
				t.Error("the losses differ from those of the undisturbed training")
			}
			for i, e := range epochs {
				want := whole.Epochs[i]
				if e.Epoch != want.Epoch || e.Loss != want.Loss || e.Accuracy != want.Accuracy || e.TestLoss != want.TestLoss || e.TestAccuracy != want.TestAccuracy || e.Seconds <= 0 {
					t.Errorf("epoch %d: %+v, want the losses of %+v", i+1, e, want)
				}
			}
		})
	}
}

// TestResumeAtTheBegin: a training that was saved before its first step and lost then is trained whole when it goes on.
func TestResumeAtTheBegin(t *testing.T) {
	w := trainable(t, load(t, "emulated"), Options{Checkpoint: CheckpointEvery{Steps: 5, AtBegin: true}})
	whole, _ := must.Get2(runFrom(t, w, nil, 0))(t)
	tr := must.Get(w.Start())(t)
	defer tr.Close()
	var first bytes.Buffer
	tr.OnCheckpoint = func(c *Checkpoint) error { return errors.Join(c.Encode(&first), errEnough) }
	if err := tr.Run(t.Context()); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	from := decoded(t, first.Bytes())
	if from.Steps != 0 {
		t.Fatalf("the first checkpoint is after %d steps", from.Steps)
	}
	again, _ := must.Get2(runFrom(t, w, from, 0))(t)
	if again.WeightsHash() != whole.WeightsHash() || !slices.Equal(again.Steps, whole.Steps) {
		t.Error("the weights or the losses differ from those of the undisturbed training")
	}
}

// TestResumeAtTheEnd goes on after the last step of all: a step beside the training is measured, and
// the weights stay.
func TestResumeAtTheEnd(t *testing.T) {
	w := trainable(t, load(t, "emulated"), Options{Checkpoint: CheckpointEvery{Steps: 12}})
	whole, _ := must.Get2(runFrom(t, w, nil, 0))(t)
	_, last, err := runFrom(t, w, nil, 2) // after 24 steps
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	tr, _, err := runFrom(t, w, decoded(t, last), 0)
	if err != nil || len(tr.Steps) > 0 || len(tr.Epochs) != 1 || tr.WeightsHash() != whole.WeightsHash() {
		t.Errorf("%v, %d steps, %d epochs, weights %.12s, want %.12s", err, len(tr.Steps), len(tr.Epochs), tr.WeightsHash(), whole.WeightsHash())
	}
	if err := tr.PredictLegs(t.Context()); err != nil || tr.Measured.Main == nil || tr.Measured.Main.Steps != 1 {
		t.Errorf("nothing is measured: %v", err)
	}
}

// TestResumeElsewhere goes on with another lowering, another policy and more epochs; the weights
// are near those of the undisturbed training.
func TestResumeElsewhere(t *testing.T) {
	all := load(t, "emulated")
	cores := must.Get(all.Select("cpu:1"))(t)
	w := trainable(t, all, Options{Checkpoint: CheckpointEvery{Steps: 11}})
	_, last, err := runFrom(t, w, nil, 1)
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	other := trainable(t, cores, Options{Tiles: tiling.Of(tiling.Base{Kind: tiling.Whole})})
	tr, _ := must.Get2(runFrom(t, other, decoded(t, last), 0))(t)
	whole, _ := must.Get2(runFrom(t, w, nil, 0))(t)
	for i, a := range tr.Weights() {
		want := whole.Weights()[i].Float64s()
		for k, v := range a.Float64s() {
			// Sums of a few hundred products of numbers near 1, in float32 and another order, 13 steps.
			if math.Abs(v-want[k]) > 1e-3 {
				t.Fatalf("%s[%d] = %v, want about %v", a.Name, k, v, want[k])
			}
		}
	}
}

// TestResumeRefuses: a checkpoint of another training is the caller's error.
func TestResumeRefuses(t *testing.T) {
	p := load(t, "emulated")
	w := trainable(t, p, Options{Checkpoint: CheckpointEvery{Steps: 5}})
	_, last, err := runFrom(t, w, nil, 1)
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	for want, change := range map[string]func(c *Checkpoint, w *Workload){
		"position is that of step 5 in this program": func(c *Checkpoint, _ *Workload) { c.Steps = 6 },
		"position is none of the program":            func(c *Checkpoint, _ *Workload) { c.Within = 9 },
		"is in epoch 8, and the training has 3":      func(c *Checkpoint, _ *Workload) { c.Epoch, c.Within = 7, 0 },
		"has no":                                     func(c *Checkpoint, _ *Workload) { c.state = c.state[1:] },
		"the network and its optimiser carry":        func(c *Checkpoint, _ *Workload) { c.state = append(c.state, npz.Array{Name: "more"}) },
		`it is of a training by "sgd lr=7`:           func(c *Checkpoint, _ *Workload) { c.Method = "sgd lr=7" },
		"of shape [7]":                               func(c *Checkpoint, _ *Workload) { c.state[0].Shape = []int{7} },
		// Five steps of 7 samples are 35.
		"it counts 1000000000 samples of its epoch in the training and 0 in the test, and its position has 35 and 0": func(c *Checkpoint, _ *Workload) { c.Trained.Samples = 1e9 },
		"it counts -1 samples of its epoch in the training":                                                          func(c *Checkpoint, _ *Workload) { c.Trained.Samples = -1 },
		"it counts 35 samples of its epoch in the training and 7 in the test":                                        func(c *Checkpoint, _ *Workload) { c.Tested.Samples = 7 },
	} {
		c := decoded(t, last)
		change(c, w)
		if _, err := w.Resume(c); !errors.As(err, new(InputError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want an InputError with %q", err, want)
		}
	}
	if _, err := DecodeCheckpoint(bytes.NewReader(last), int64(len(last))-1); err == nil {
		t.Error("a checkpoint that was cut is read")
	}
}

// TestCheckpointEvery: by default a minute passes between two checkpoints, or a hundred times what
// the last one took.
func TestCheckpointEvery(t *testing.T) {
	for text, want := range map[string]CheckpointEvery{"100steps": {Steps: 100}, "1step": {Steps: 1}, "5min": {Time: 5 * time.Minute}, "90s": {Time: 90 * time.Second}, "1h30m": {Time: 90 * time.Minute},
		"100 steps": {Steps: 100}, "5 min": {Time: 5 * time.Minute}} {
		if got, err := ParseCheckpointEvery(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0steps", "-3steps", "100", "5 lightyears", "0s", "-1min"} {
		if _, err := ParseCheckpointEvery(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	var every CheckpointEvery
	if every.period(0) != time.Minute || every.period(2*time.Second) != 200*time.Second {
		t.Errorf("by default every %v, and %v where one takes 2 s", every.period(0), every.period(2*time.Second))
	}
}

// FuzzResume: no bytes make the reader fail but with an error, and what is taken for a checkpoint of
// a training is one: its state fills the storages, and its position is where its steps end.
func FuzzResume(f *testing.F) {
	w := trainable(f, load(f, "emulated"), Options{Checkpoint: CheckpointEvery{Steps: 5}})
	small := &Checkpoint{Progress: Progress{Steps: 3, Within: 3}, state: []npz.Array{npz.NewArray("w", dag.Float32, []int{2}, []float64{1, 2})}}
	whole := &Checkpoint{Method: w.Method().String(), Progress: Progress{Steps: 9, Epoch: 1, Within: 1, Trained: tally{Samples: 7, Loss: exact(math.NaN())}}, state: stateOf(w.Program)}
	for i := range whole.state {
		a := &whole.state[i]
		n := int(a.Type.SizeBytes())
		for _, e := range a.Shape {
			n *= e
		}
		a.Data = make([]byte, n)
	}
	wrong := *whole
	wrong.Trained.Samples = 1e9
	for _, c := range []*Checkpoint{small, whole, &wrong} {
		var b bytes.Buffer
		must.Do(f, c.Encode(&b))
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCheckpoint(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		if err := c.Encode(io.Discard); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if w.follows(c) != nil {
			return
		}
		for i, a := range stateOf(w.Program) {
			if k := slices.IndexFunc(c.state, func(b npz.Array) bool { return b.Name == a.Name }); len(c.state[k].Data) != len(whole.state[i].Data) {
				t.Errorf("%s has %d bytes, want %d", a.Name, len(c.state[k].Data), len(whole.state[i].Data))
			}
		}
		if c.Trained.Samples < 0 || c.Trained.Samples > 53 || c.Tested.Samples < 0 || c.Tested.Samples > 17 {
			t.Errorf("%d samples of 53 and %d of 17 are taken", c.Trained.Samples, c.Tested.Samples)
		}
		if steps := 8*c.Epoch + []int{0, 7, 8, 8}[c.Segment] + []int{c.Within, c.Within, 0, 0}[c.Segment]; steps != c.Steps || c.Epoch > 3 {
			t.Errorf("%+v is taken for step %d", c.Progress, steps)
		}
	})
}
