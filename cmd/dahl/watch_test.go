package main

import (
	"bytes"
	"context"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/train"
)

// TestStatus: 3 s after the begin, with a sample each second. The window of 2 s has 130 - 30 = 100 images,
// which took half of it: 100 per second. Two units are busy for 3 of 4 s, one not at all. The meter
// counted 14 J in the 2 s between its readings. 0.25 to 0.4 of the work took 3 s: 0.6 will take 12 s.
func TestStatus(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	begin := time.Now()
	var h history
	for i, images := range []int{0, 30, 80, 130} {
		at := begin.Add(time.Duration(i) * time.Second)
		busy := time.Duration(i) * 1500 * time.Millisecond
		h.add(sample{at, train.Live{Epoch: 2, Epochs: 5, Training: true, Step: 7 * i, Steps: 29, Loss: 3 - float64(i)/2, Images: images, Trained: time.Duration(i) * 500 * time.Millisecond, Done: 0.25 + 0.05*float64(i),
			Devices: []train.LiveDevice{{Name: "cpu", Units: 2, Busy: busy}, {Name: "gpu", Units: 1}}},
			[]energy.Counted{{Of: "processors", At: at, Joules: 7 * float64(i), Celsius: 61}}})
	}
	h.reserved = 3_210_000
	s := h.status()
	s.resident = 45_000_000
	if s.imagesPerS != 100 || math.Abs(s.busy[0].share-0.75) > 1e-9 || s.busy[1].share >= 0 || s.power[0] != (powerNow{"processors", 7, 61}) || (s.left-12*time.Second).Abs() > time.Millisecond {
		t.Errorf("%+v", s)
	}
	want := []string{
		"epoch    2/5  [#####################         ]  step 21/29, training",
		"loss     1.5000  █▅▁",
		"speed    100 images/s",
		"busy     cpu 75 %, gpu -",
		"power    processors 7 W at 61 degrees",
		"memory   3.21 MB reserved for the network, 45 MB held in all",
		"left     12 s, after 3 s",
	}
	if got := s.lines(); !slices.Equal(got, want) {
		t.Errorf("the page is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := s.line(), "epoch 2/5 [###########     ] step 21/29  loss 1.5000  100 images/s  busy cpu 75 %, gpu -  left 12 s"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
	h.add(sample{begin.Add(4 * time.Second), train.Live{Epoch: 2, Epochs: 5, Images: 130, Trained: 1500 * time.Millisecond, Done: 0.5}, nil})
	if s := h.status(); s.imagesPerS != 100 || s.Training {
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
	w := &watcher{plain: &out, live: func() train.Live { return train.Live{Epoch: 1, Epochs: 1, Step: 3, Steps: 7, Training: true} }, counted: func() []energy.Counted { return nil }}
	begin := time.Now()
	for i := range 93 { // 23 s
		w.look(begin.Add(time.Duration(i) * watchEvery))
	}
	if n := strings.Count(out.String(), "\n"); n != 2 || !strings.HasPrefix(out.String(), "epoch 1/1 [######          ] step 3/7  loss -  - images/s  busy -  left -\n") {
		t.Errorf("%d lines:\n%s", n, &out)
	}
}

// terminal keeps what is written to it, and calls when a text has come; nil: any.
type terminal struct {
	mu      sync.Mutex
	written strings.Builder
	text    *regexp.Regexp
	call    func()
}

func (f *terminal) Size() (columns, rows int) { return 80, 24 }

func (f *terminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written.Write(p)
	if f.text == nil || f.text.MatchString(f.written.String()) {
		f.call()
	}
	return len(p), nil
}

// TestProgressOnATerminal trains for ever, until a terminal has shown a rate: in one line by default, in a
// page with --watch. It is then taken away.
func TestProgressOnATerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ flag, want string }{{"--json", `epoch [0-9]+/.*  [0-9,]+ images/s`}, {"--watch", `speed    [0-9,]+ images/s`}} {
		ctx, cancel := context.WithCancel(t.Context())
		to := &terminal{text: regexp.MustCompile(c.want), call: cancel}
		args := []string{"execute", "--model", "digits-cnn", "--workers", "1", "--epochs", "1000", "--out", "run", c.flag}
		var stdout bytes.Buffer
		if code := cli.Run(ctx, newRoot(args), args, &stdout, to); code != cli.ExitInterrupted {
			t.Errorf("%s: exit code %d", c.flag, code)
		}
		if shown := to.written.String(); !strings.Contains(shown, "\x1b[Jdahl: interrupted") {
			t.Errorf("%s: the page is still there:\n%q", c.flag, shown)
		}
	}
}

// TestWatchedWeights: who watches changes no weight.
func TestWatchedWeights(t *testing.T) {
	t.Chdir(t.TempDir())
	train := strings.Fields("execute --model digits-cnn --limit 256 --batch 17 --workers 1 --json --out run")
	var hashes []string
	for _, args := range [][]string{train, append(slices.Clone(train), "--watch")} {
		var stdout bytes.Buffer
		if code := cli.Run(t.Context(), newRoot(args), args, &stdout, &terminal{call: func() {}}); code != cli.ExitOK {
			t.Fatalf("exit code %d", code)
		}
		var s summary
		decodeObject(t, stdout.String(), &s)
		hashes = append(hashes, s.Trained.WeightsSHA256)
	}
	if hashes[0] != hashes[1] || hashes[0] == "" {
		t.Errorf("weights %v", hashes)
	}
}
