package train

import (
	"errors"
	"math"
	"slices"
	"testing"

	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/platform"
	"dahl/train/metrics"
)

// growing is a training of 20 steps whose convolution grows by -3 in each: a rate of 0.5 and a decay of 8 make -3 of 1. It begins
// with 1e15, so that the variance of its outputs is about 1e30 and ninefold after each step. A float32 ends at 3.4e38,
// some 9 steps later. From there on the normalised outputs are 0, and all losses stay finite, while the running
// variance of the normalisation is infinite. The weights themselves reach 3.4e38 some 49 steps after the start.
func growing(t *testing.T, p *platform.Platform, o Options) *Workload {
	t.Helper()
	m := must.Get(nn.New("growing", []int{1, 8, 8}, layers.Conv2D{Filters: 3, Kernel: 3}, layers.BatchNorm{}, layers.Flatten{}, layers.Dense{Outputs: 10}))(t)
	d := must.Get(OpenData("digits", 60, 0))(t)
	d.Test = nil
	o.Batch, o.Seed, o.Optimizer = 3, 11, nn.SGD{LearningRate: 0.5, WeightDecay: 8}
	o.Init = func(p *nn.Parameter, from int, values []float64) error {
		p.Init(values, from, 11)
		for i := range values {
			if p.Name == "conv1.weight" {
				values[i] *= 1e15
			}
		}
		return nil
	}
	return must.Get(New(m, d, p, o))(t)
}

// TestLastFiniteWeights: a training whose losses are finite and whose weights are not ends with those after the last
// step that left finite ones, and names the step after it. That step is found beforehand by a training that goes on, and is
// looked through after each. The variances of a batch are made with the outputs of the convolution, which is where the
// first number comes up.
func TestLastFiniteWeights(t *testing.T) {
	emulated := load(t, "emulated")
	cores := must.Get(emulated.Select("cpu"))(t)
	var hashes []string // of the weights after each step
	bad := 0
	tr := must.Get(growing(t, cores, Options{ContinueOnNaN: true, Checkpoint: CheckpointEvery{Steps: 1}}).Start())(t)
	defer tr.Close()
	var noted *Divergence
	tr.OnDivergence = func(d *Divergence) { noted = d }
	tr.OnCheckpoint = func(c *Checkpoint) error {
		if c.Steps > len(hashes) { // the last one is of the end
			hashes = append(hashes, tr.WeightsHash())
		}
		for _, a := range tr.Weights() {
			if bad == 0 && slices.ContainsFunc(a.Float64s(), notFinite) {
				bad = c.Steps
			}
		}
		return nil
	}
	must.Do(t, tr.Run(t.Context()))
	if bad < 5 || bad > 15 || len(hashes) != 20 || slices.ContainsFunc(tr.Steps, func(s metrics.Step) bool { return notFinite(s.Loss) }) {
		t.Fatalf("of %d steps the first with weights that are not finite is %d; losses %v", len(hashes), bad, tr.Steps)
	}
	if noted == nil || noted != tr.Diverged || noted.Loss != "" || !slices.Equal(noted.Weights, []string{"bn1.running_var"}) {
		t.Errorf("what goes on says %+v", noted)
	}
	for name, c := range map[string]struct {
		p *platform.Platform
		o Options
	}{
		"an epoch at once":  {cores, Options{}},
		"after every step":  {cores, Options{KeepEvery: 1}},
		"saved after seven": {cores, Options{Checkpoint: CheckpointEvery{Steps: 7}}},
		"a GPU":             {emulated, Options{Record: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := growing(t, c.p, c.o).Start()
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			if c.o.Checkpoint.Steps > 0 {
				tr.OnCheckpoint = func(at *Checkpoint) error {
					if at.Steps >= bad {
						t.Errorf("weights that are not finite are kept after step %d", at.Steps)
					}
					return nil
				}
			}
			err = tr.Run(t.Context())
			d := (*Divergence)(nil)
			if !errors.As(err, &d) || d.Loss != "" || d.Step != bad || d.KeptStep != bad-1 || !slices.Equal(d.Weights, []string{"bn1.running_var"}) {
				t.Fatalf("it ends with %v, want step %d", err, bad)
			}
			if tr.Complete || len(tr.Steps) != bad-1 {
				t.Errorf("complete %v, %d steps, want %d", tr.Complete, len(tr.Steps), bad-1)
			}
			if !c.p.Spread() && (d.FoundInStep != bad || d.Layer != "conv1" || tr.WeightsHash() != hashes[bad-2]) {
				t.Errorf("found in step %d, layer %q; weights %.12s, want those of step %d, %.12s", d.FoundInStep, d.Layer, tr.WeightsHash(), bad-1, hashes[bad-2])
			}
			for _, a := range tr.Weights() {
				if !a.IsFinite() {
					t.Errorf("%s is not finite", a.Name)
				}
			}
			if tr.Measured.Main == nil || math.IsNaN(tr.Measured.Run.Seconds()) {
				t.Error("nothing was measured")
			}
		})
	}
}
