package metrics_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/train/metrics"
)

func TestStepMetrics(t *testing.T) {
	steps := []metrics.Step{
		{1, 1, 32, 2.302585092994046, 3}, {1, 2, 32, 0.1, 31}, {2, 3, 17, 1. / 3, 5},
		{2, 4, 17, math.SmallestNonzeroFloat64, 17}, {3, 5, 1, math.Inf(1), 0}, {3, 6, 1, math.NaN(), 0},
	}
	var b bytes.Buffer
	w := must.Get(metrics.NewStepWriter(&b, false))(t)
	for _, s := range steps {
		must.Do(t, w.Step(s))
	}
	must.Do(t, w.Flush())
	if want := "epoch,step,images,loss,correct\n1,1,32,2.302585092994046,3\n1,2,32,0.1,31\n"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("file\n%s\nbegins not with\n%s", b.String(), want)
	}
	back := must.Get(metrics.ReadSteps(&b))(t)
	if len(back) != len(steps) {
		t.Fatalf("%d rows came back of %d", len(back), len(steps))
	}
	for i, want := range steps {
		got := back[i]
		same := math.Float64bits(got.Loss) == math.Float64bits(want.Loss) || math.IsNaN(got.Loss) && math.IsNaN(want.Loss)
		got.Loss, want.Loss = 0, 0
		if !same || got != want {
			t.Errorf("row %d: %+v came back as %+v", i, steps[i], back[i])
		}
	}
}

// What is not known is an empty cell, never a number.
func TestEpochMetrics(t *testing.T) {
	var b bytes.Buffer
	w := must.Get(metrics.NewEpochWriter(&b, false))(t)
	rows := []metrics.Epoch{
		{Epoch: 1, Loss: 0.5, Accuracy: 0.75, TestLoss: 9, Joules: 9},
		{Epoch: 2, Loss: 0.25, Accuracy: 0.875, Tested: true, TestLoss: 0.3, TestAccuracy: 0.9,
			Steps: 47, Samples: 3000, Seconds: 2.5, Joules: 70.5, Modelled: true},
	}
	for _, e := range rows {
		must.Do(t, w.Epoch(e))
	}
	const want = `epoch,loss,accuracy,test_loss,test_accuracy,steps,images,seconds,images_per_s,modelled_joules
1,0.5,0.75,,,0,0,0,,
2,0.25,0.875,0.3,0.9,47,3000,2.5,1200,70.5
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	back, err := metrics.ReadEpochs(&b)
	rows[0].TestLoss, rows[0].Joules = 0, 0 // not known
	if err != nil || !slices.Equal(back, rows) {
		t.Errorf("%+v came back as %+v, %v", rows, back, err)
	}
}

// TestMetricsGoOn: a table in two parts reads as one.
func TestMetricsGoOn(t *testing.T) {
	var b bytes.Buffer
	for i := range 2 {
		w := must.Get(metrics.NewStepWriter(&b, i > 0))(t)
		must.Do(t, errors.Join(w.Step(metrics.Step{Step: i}), w.Flush()))
	}
	if steps, err := metrics.ReadSteps(&b); err != nil || !slices.Equal(steps, []metrics.Step{{Step: 0}, {Step: 1}}) {
		t.Errorf("%+v, %v", steps, err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestMetricsReportWriteErrors(t *testing.T) {
	w, err := metrics.NewEpochWriter(fullDisk{}, false)
	if err == nil {
		err = w.Epoch(metrics.Epoch{})
	}
	if err == nil {
		t.Error("a full disk went unnoticed")
	}
}

func TestReadStepsRefuses(t *testing.T) {
	const header = "epoch,step,images,loss,correct\n"
	for file, want := range map[string]string{
		"":                                  "EOF",
		"epoch,loss\n1,2\n":                 "columns",
		header + "1,1,32,abc,3\n":           `line 2: column loss: "abc" is not a number`,
		header + "1,1,32,1,3\n1,x,32,1,3\n": `line 3: column step: "x"`,
		header + "1,1,32\n":                 "wrong number of fields",
	} {
		if _, err := metrics.ReadSteps(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", file, err, want)
		}
	}
}

func FuzzReadSteps(f *testing.F) {
	f.Add("epoch,step,images,loss,correct\n1,1,32,0.5,3\n")
	f.Add("epoch,step,images,loss,correct\n1,1,32,NaN,\"3\n")
	f.Fuzz(func(t *testing.T, file string) {
		steps, err := metrics.ReadSteps(strings.NewReader(file))
		if err != nil && steps != nil {
			t.Errorf("%d rows beside error %v", len(steps), err)
		}
	})
}
