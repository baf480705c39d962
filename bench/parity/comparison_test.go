package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/must"
	"dahl/train/metrics"
)

// row is a step of a made curve.
type row struct {
	epoch, samples int
	loss           float64
	correct        int
}

// write makes the run directory of a curve.
func write(t *testing.T, dir string, rows []row, accuracies ...float64) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o777))
	steps := "epoch,step,images,loss,correct\n"
	for i, r := range rows {
		steps += fmt.Sprintf("%d,%d,%d,%.17g,%d\n", r.epoch, i+1, r.samples, r.loss, r.correct)
	}
	epochs := "epoch,test_accuracy,seconds\n"
	for i, a := range accuracies {
		epochs += fmt.Sprintf("%d,%.17g,0.5\n", i+1, a)
	}
	for name, text := range map[string]string{"steps.csv": steps, "epochs.csv": epochs} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
}

// Two epochs, the second with a short last batch.
var base = []row{{1, 3, 2, 1}, {1, 3, 2, 2}, {2, 3, 1, 2}, {2, 2, 0.5, 1}}

func scaled(rows []row, step int, factor float64) []row {
	rows = append([]row(nil), rows...)
	rows[step].loss *= factor
	return rows
}

func TestBounds(t *testing.T) {
	otherCount := append([]row(nil), base...)
	otherCount[2].correct = 3
	for _, test := range []struct {
		name, dtype string
		rows        []row
		accuracy    float64
		want        []string // what each broken bound says
	}{
		{"equal", "float64", base, 0.7, nil},
		{"rounding", "float64", scaled(base, 2, 1+1e-13), 0.7, nil},
		{"too far", "float64", scaled(base, 2, 1+1e-11), 0.7, []string{"step's loss"}},
		{"not a number", "float64", scaled(base, 3, math.NaN()), 0.7, []string{"step's loss"}},
		{"another count", "float64", otherCount, 0.7, []string{"1 steps count"}},
		{"another accuracy", "float64", base, 0.71, []string{"test accuracy 0.71 after epoch 2"}},
		{"another accuracy is no matter", "float32", base, 0.71, nil},
		{"rounding", "float32", scaled(base, 0, 1+1e-6), 0.7, nil},
		{"too far early", "float32", scaled(base, 0, 1+1e-4), 0.7, []string{"first 100 steps"}},
		// Twice the loss in 2 of the epoch's 5 samples: 4/5 against 5/5 of mean loss.
		{"too far in the mean", "float32", scaled(base, 3, 2), 0.7, []string{"first 100 steps", "epoch 2 is 0.25 off"}},
		{"not a number", "float32", scaled(base, 3, math.NaN()), 0.7, []string{"first 100 steps", "epoch 2 is NaN off"}},
	} {
		dir := t.TempDir()
		prefix := filepath.Join(dir, "net."+test.dtype)
		write(t, prefix+".torch", base, 0.5, 0.7)
		write(t, prefix+".dahl", test.rows, 0.5, test.accuracy)
		var out bytes.Buffer
		err := run(&out, dir)
		if errors.Is(err, errBroken) != (test.want != nil) || err != nil && test.want == nil {
			t.Errorf("%s, %s: error %v", test.dtype, test.name, err)
		}
		if n := strings.Count(out.String(), "broken: net in "+test.dtype); n != len(test.want) {
			t.Errorf("%s, %s: %d broken bounds, want %d:\n%s", test.dtype, test.name, n, len(test.want), out.String())
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s, %s: nothing says %q:\n%s", test.dtype, test.name, want, out.String())
			}
		}
	}
}

// PyTorch's runs have epoch means 1, 1.1 and 0.9: mean 1 and sample deviation
// sqrt((0.1²+0.1²)/2) = 0.1, so a mean loss within 0.3 of 1 is one of them.
func TestSpreadWidensTheBound(t *testing.T) {
	for _, test := range []struct {
		loss float64
		ok   bool
	}{{1.29, true}, {0.71, true}, {1.31, false}, {0.69, false}} {
		// The early steps agree; the rest, 7/8 of the samples, make the mean.
		curve := func(mean float64) []row {
			var rows []row
			for range earlySteps {
				rows = append(rows, row{1, 1, 1, 0})
			}
			return append(rows, row{1, 7 * earlySteps, 1 + (mean-1)*8/7, 0})
		}
		dir := t.TempDir()
		prefix := filepath.Join(dir, "net.float32")
		write(t, prefix+".torch", curve(1), 0.5)
		write(t, prefix+".order1", curve(1.1), 0.5)
		write(t, prefix+".order2", curve(0.9), 0.5)
		write(t, prefix+".dahl", curve(test.loss), 0.5)
		if err := run(&bytes.Buffer{}, dir); (err == nil) != test.ok {
			t.Errorf("mean loss %g: error %v", test.loss, err)
		}
	}
}

// Three samples of loss 1 and two of 0.5 have mean 4/5.
func TestEpochMeansWeighImages(t *testing.T) {
	steps := []metrics.Step{{Epoch: 1, Samples: 5, Loss: 2}, {Epoch: 2, Samples: 3, Loss: 1}, {Epoch: 2, Samples: 2, Loss: 0.5}}
	means, err := epochMeans(steps)
	if err != nil || len(means) != 2 || means[0] != 2 || means[1] != 0.8 {
		t.Errorf("means %v, error %v; want 2 and 0.8", means, err)
	}
}

func TestRefusesCurvesThatDoNotMatch(t *testing.T) {
	for _, test := range []struct {
		name, run, want string
		rows            []row
		accuracies      []float64
	}{
		{"fewer steps", "net.float64", "3 steps against 4", base[:3], []float64{0.5, 0.7}},
		{"other batches", "net.float64", "row 1", append([]row{{1, 4, 2, 1}}, base[1:]...), []float64{0.5, 0.7}},
		{"an epoch left out", "net.float64", "does not follow", base[2:], []float64{0.7}},
		{"too few epochs tested", "net.float64", "1 rows", base, []float64{0.5}},
		{"another type", "net.float16", "not named", base, []float64{0.5, 0.7}},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, test.run+".torch"), base, 0.5, 0.7)
		write(t, filepath.Join(dir, test.run+".dahl"), test.rows, test.accuracies...)
		if err := run(&bytes.Buffer{}, dir); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v; want one with %q", test.name, err, test.want)
		}
	}
	if err := run(&bytes.Buffer{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no run directory") {
		t.Errorf("empty directory: error %v", err)
	}
}
