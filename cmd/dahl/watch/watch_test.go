package watch

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/energy/meter"
	"dahl/train"
)

// TestStatus: 3 s after the start, with a sample each second. The window of 2 s has 130 - 30 = 100 samples,
// which took half of it: 100 per second. Two units are busy for 3 of 4 s, one not at all. The meter
// counted 14 J in the 2 s between its readings. 0.25 to 0.4 of the work took 3 s: 0.6 will take 12 s.
func TestStatus(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	begin := time.Now()
	var h history
	for i, samples := range []int{0, 30, 80, 130} {
		at := begin.Add(time.Duration(i) * time.Second)
		busy := time.Duration(i) * 1500 * time.Millisecond
		h.add(sample{at, train.Live{Epoch: 2, Epochs: 5, Training: true, Step: 7 * i, Steps: 29, Loss: 3 - float64(i)/2, Samples: samples, Trained: time.Duration(i) * 500 * time.Millisecond, Done: 0.25 + 0.05*float64(i),
			Devices: []train.LiveDevice{{Name: "cpu", Units: 2, Busy: busy}, {Name: "gpu", Units: 1}}},
			[]meter.Counted{{Of: "processors", At: at, Joules: 7 * float64(i), Celsius: 61}}})
	}
	h.reserved = 3_210_000
	s := h.status()
	s.resident = 45_000_000
	if s.samplesPerS != 100 || math.Abs(s.busy[0].share-0.75) > 1e-9 || s.busy[1].share >= 0 || s.power[0] != (powerNow{"processors", 7, 61}) || (s.left-12*time.Second).Abs() > time.Millisecond {
		t.Errorf("%+v", s)
	}
	want := []string{
		"epoch    2/5  [#####################         ]  step 21/29, training",
		"loss     1.5000  █▅▁",
		"speed    100 samples/s",
		"busy     cpu 75 %, gpu -",
		"power    processors 7 W at 61 degrees",
		"memory   3.21 MB reserved for the network, 45 MB held in all",
		"left     12 s, after 3 s",
	}
	if got := s.lines(); !slices.Equal(got, want) {
		t.Errorf("the page is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := s.line(), "epoch 2/5 [###########     ] step 21/29  loss 1.5000  100 samples/s  busy cpu 75 %, gpu -  left 12 s"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
	h.add(sample{begin.Add(4 * time.Second), train.Live{Epoch: 2, Epochs: 5, Samples: 130, Trained: 1500 * time.Millisecond, Done: 0.5}, nil})
	if s := h.status(); s.samplesPerS != 100 || s.Training {
		t.Errorf("on the test set: %+v", s)
	}
	t.Setenv("LC_ALL", "C")
	if spark([]float64{1, 2}) != "" {
		t.Error("a terminal of ASCII gets other characters")
	}
}

// TestCourse halves 48 means of single values to 24 of pairs: (0+1)/2, (2+3)/2 and so on.
func TestCourse(t *testing.T) {
	var c course
	for i := range courseParts {
		c.add(float64(i))
	}
	c.add(7)
	c.add(8)
	if len(c.means) != 25 || c.means[0] != 0.5 || c.means[23] != 46.5 || c.means[24] != 7.5 {
		t.Errorf("means %v", c.means)
	}
}

// TestPlainLines: without a terminal there is a line every ten seconds, and none at once.
func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	w := &Watcher{plain: &out, live: func() train.Live { return train.Live{Epoch: 1, Epochs: 1, Step: 3, Steps: 7, Training: true} }, counted: func() []meter.Counted { return nil }}
	begin := time.Now()
	for i := range 93 { // 23 s
		w.look(begin.Add(time.Duration(i) * watchEvery))
	}
	if n := strings.Count(out.String(), "\n"); n != 2 || !strings.HasPrefix(out.String(), "epoch 1/1 [######          ] step 3/7  loss -  - samples/s  busy -  left -\n") {
		t.Errorf("%d lines:\n%s", n, &out)
	}
}
