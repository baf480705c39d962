package train

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/nn/npz"
)

// TestTrainsOnArrays trains one product with two classes at each of 3×2 positions on numbers of an archive, and compares it with
// gradient descent that is written down here: with d the difference of the two logits and y = ±1 for class 1 or 0 the loss is
// log(1 + exp(-y·d)), whose derivative by d is -y/(1 + exp(y·d)); by the logit of class 0 it is the negative of that. From weights of
// zero the first loss is log 2. Sums of 30 terms in another order differ by less than 1e-13 in each of 20 steps.
func TestTrainsOnArrays(t *testing.T) {
	const samples, positions, steps, rate = 5, 6, 20, 0.5
	rng := rand.New(rand.NewPCG(1, 7))
	x, labels := make([]float64, samples*2*positions), make([]float64, samples*positions)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range labels {
		s, p := i/positions, i%positions
		if x[2*s*positions+p] > x[(2*s+1)*positions+p] {
			labels[i] = 1
		}
	}
	path := filepath.Join(t.TempDir(), "set.npz")
	must.Do(t, npz.Write(path, []npz.Array{
		npz.NewArray("x", dag.Float64, []int{samples, 2, 3, 2}, x), npz.NewArray("y", dag.Int64, []int{samples, 3, 2}, labels)}))

	var losses []float64
	var right []int
	var w [3]float64 // of class 1, and its negative of class 0: two channels and the bias
	for range steps {
		loss, correct, slope := 0.0, 0, [3]float64{}
		for i, label := range labels {
			s, p, y := i/positions, i%positions, 2*label-1
			in := [3]float64{x[2*s*positions+p], x[(2*s+1)*positions+p], 1}
			d := 2 * (w[0]*in[0] + w[1]*in[1] + w[2]*in[2])
			loss += math.Log1p(math.Exp(-y * d))
			if d > 0 == (label == 1) {
				correct++
			}
			for k := range slope {
				slope[k] -= y / (1 + math.Exp(y*d)) * in[k]
			}
		}
		losses, right = append(losses, loss/float64(len(labels))), append(right, correct)
		for k := range w {
			w[k] -= rate * slope[k] / float64(len(labels))
		}
	}

	m := must.Get(nn.New("segments", []int{2, 3, 2}, layers.Conv2D{Filters: 2, Kernel: 1}))(t)
	m.Defaults.Optimizer = nn.SGD{LearningRate: rate}
	for _, stream := range []bool{false, true} {
		d := must.Get(OpenData(path, 0, 0))(t)
		zero := func(_ *nn.Parameter, _ int, values []float64) error { clear(values); return nil }
		work := must.Get(New(m, d, load(t, "emulated"), Options{Type: dag.Float64, Epochs: steps, Init: zero, Stream: stream}))(t)
		run := must.Get(work.Train(context.Background()))(t)
		for i, s := range run.Steps {
			if math.Abs(s.Loss-losses[i]) > 1e-12 || i > 0 && s.Correct != right[i] {
				t.Errorf("stream %v, step %d: loss %v, %d correct; want %v, %d", stream, i, s.Loss, s.Correct, losses[i], right[i])
			}
		}
		last := run.Epochs[steps-1]
		if run.Steps[0].Loss != math.Log(2) && math.Abs(run.Steps[0].Loss-math.Ln2) > 1e-15 || last.Loss > 0.4 || last.Accuracy != float64(right[steps-1])/(samples*positions) {
			t.Errorf("from %v to %v, accuracy %v", run.Steps[0].Loss, last.Loss, last.Accuracy)
		}
	}
}

// TestFitPositions: labels and outputs have one shape, rows of columns become images of one channel, and any sample a vector.
func TestFitPositions(t *testing.T) {
	conv := layers.Conv2D{Filters: 3, Kernel: 1}
	segments, flat := must.Get(nn.New("m", []int{1, 4, 5}, conv))(t), must.Get(nn.New("m", []int{1, 4, 5}, conv, layers.Flatten{}, layers.Dense{Outputs: 3}))(t)
	vector := must.Get(nn.New("m", []int{7}, layers.Dense{Outputs: 3}))(t)
	for _, c := range []struct {
		m                *nn.Model
		shape, positions []int
		input            []int
		want             string
	}{
		{segments, []int{4, 5}, []int{4, 5}, []int{1, 4, 5}, ""},
		{flat, []int{2, 6, 8}, nil, []int{2, 6, 8}, ""},
		{vector, []int{2, 3, 4, 5}, nil, []int{120}, ""},
		{segments, []int{1, 4, 5}, nil, nil, "data d: one label for each sample, and the network has outputs for labels of 4×5"},
		{flat, []int{1, 4, 5}, []int{4, 5}, nil, "data d: labels of 4×5 for each sample, and the network has outputs for one label"},
	} {
		d := &data.Dataset{Name: "d", Labels: []int32{0}, Shape: c.shape, Positions: c.positions, Classes: 3}
		m, err := Fit(c.m, d)
		if c.want == "" && (err != nil || !slices.Equal(m.Input, c.input)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v with labels of %v: %v", c.shape, c.positions, err)
		}
	}
	unlabelled := &data.Dataset{Name: "d", Labels: []int32{0, 1, -1}, Shape: []int{7}, Classes: 3}
	if _, err := Fit(vector, unlabelled); err == nil || !strings.Contains(err.Error(), "sample 2 has a label of -1, and the loss of network m takes 0 to 2; write ignored_labels = true") {
		t.Errorf("a label of -1: %v", err)
	}
	vector.Defaults.Loss.Ignored = true
	if _, err := Fit(vector, unlabelled); err != nil {
		t.Error(err)
	}
	if got := DefaultData(segments); got != "synthetic:1x4x5:2000:3:4x5" {
		t.Errorf("by default it is trained on %s", got)
	}
}

// TestIgnoredLabels: an epoch's loss and accuracy are means over the labels that count, whatever their number in a step. The input is ln 3
// at all 4×3 positions, and the weights are 0 and 1 for the classes 0 and 1, so that the logits are 0 and ln 3: class 1 is predicted with
// 3/4. A label of 1 is correct and has the loss ln 4/3, a label of 0 has ln 4. A step has two samples:
//
//	step 1  the label 1                   1 correct of 1, loss ln 4/3
//	step 2  the labels 1, 0, 0, 0 and 0   1 correct of 5, loss (ln 4/3 + 4·ln 4)/5
//	epoch                                 2 correct of 6, loss (2·ln 4/3 + 4·ln 4)/6
//
// The rate of 1e-30 moves no weight by more than the rounding. The test set is the training set. With all labels ignored nothing is lost.
func TestIgnoredLabels(t *testing.T) {
	const samples, positions = 4, 3
	x := make([]float64, samples*positions)
	for i := range x {
		x[i] = math.Log(3)
	}
	right, wrong := math.Log(4./3), math.Log(4)
	m := must.Get(nn.New("masked", []int{1, 1, positions}, layers.Conv2D{Filters: 2, Kernel: 1}))(t)
	m.Defaults.Optimizer, m.Defaults.Loss.Ignored = nn.SGD{LearningRate: 1e-30}, true
	init := func(p *nn.Parameter, _ int, values []float64) error {
		clear(values)
		if p.Name == "conv1.weight" {
			values[1] = 1
		}
		return nil
	}
	path := filepath.Join(t.TempDir(), "set.npz")
	must.Do(t, npz.Write(path, []npz.Array{npz.NewArray("x", dag.Float64, []int{samples, 1, 1, positions}, x),
		npz.NewArray("y", dag.Int64, []int{samples, 1, positions}, []float64{-1, 1, -1, -1, -1, -1, 1, 0, 0, 0, -1, 0})}))
	for _, c := range []struct {
		stream, none bool
		steps        [2]float64
		loss, share  float64
	}{
		{false, false, [2]float64{right, (right + 4*wrong) / 5}, (2*right + 4*wrong) / 6, 2. / 6},
		{true, false, [2]float64{right, (right + 4*wrong) / 5}, (2*right + 4*wrong) / 6, 2. / 6},
		{stream: false, none: true},
	} {
		d := Data{Train: must.Get(OpenData(path, 0, 0))(t).Train, Test: must.Get(OpenData(path, 0, 0))(t).Train}
		if c.none {
			for _, set := range []*data.Dataset{d.Train, d.Test} {
				for i := range set.Labels {
					set.Labels[i] = -1
				}
			}
		}
		work := must.Get(New(m, d, load(t, "emulated"), Options{Type: dag.Float64, Batch: 2, Epochs: 1, Init: init, Stream: c.stream}))(t)
		run := must.Get(work.Train(context.Background()))(t)
		e := run.Epochs[0]
		got := []float64{run.Steps[0].Loss, run.Steps[1].Loss, e.Loss, e.TestLoss, e.Accuracy, e.TestAccuracy}
		for i, want := range []float64{c.steps[0], c.steps[1], c.loss, c.loss, c.share, c.share} {
			if !(math.Abs(got[i]-want) < 1e-14) {
				t.Errorf("%+v: number %d is %v; want %v", c, i, got[i], want)
			}
		}
	}
}
