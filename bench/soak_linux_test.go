package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"dahl/cmd/cli"
	"dahl/schedule/policy"
	"dahl/train"
)

const (
	// soakPiece is the number of steps of a run in the part that has many.
	soakPiece = 100
	// soakWarmup is the part of a run whose samples do not count.
	soakWarmup = 0.2
	// soakMemoryAllowance is how much memory may seem to grow over a run, in bytes:
	// the system counts resident memory in batches of pages for each thread, and Go's
	// runtime keeps records of its own.
	soakMemoryAllowance = 1 << 20
	soakInterval        = 10 * time.Millisecond
	// rounding is what a line through equal numbers may rise.
	rounding = 1e-6
)

// TestSoak trains for long, in one run and in runs of soakPiece recorded steps, on cores and on an emulated GPU beside one.
// It samples the heap, the resident memory, goroutines and threads, drops the first samples, and puts a line through the
// rest, along which nothing may rise by more than it is allowed.
func TestSoak(t *testing.T) {
	if os.Getenv("DAHL_SOAK") == "" {
		t.Skip("takes minutes; make soak sets DAHL_SOAK")
	}
	for _, c := range []struct {
		model, platform, devices string
		steps                    int
		policies                 []string
	}{
		{"dahl-cnn", "", "cpu:2", 10_000, []string{"heft", "eager"}},
		{"digits-cnn", "emulated", "cpu:1,gpu", 2000, []string{"heft", "dmda"}},
	} {
		for _, policy := range c.policies {
			for _, piece := range []int{c.steps, soakPiece} {
				t.Run(fmt.Sprintf("%s on %s, %s, runs of %d", c.model, c.devices, policy, piece), func(t *testing.T) {
					soak(t, soakTraining(t, c.model, c.platform, c.devices, policy), c.steps, piece)
				})
			}
		}
	}
}

// soakTraining is a training on devices of a platform; "": this machine.
func soakTraining(t *testing.T, model, file, devices, name string) *train.Workload {
	m, err := cli.LoadModel(model)
	if err != nil {
		t.Fatal(err)
	}
	d, err := train.OpenData(train.DefaultData(m), 0, 0)
	if err == nil {
		m, err = train.Fit(m, d.Train)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := cli.Machine(file, devices, false)
	if err == nil {
		p, err = p.Select(devices)
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := policy.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := train.New(m, d, p, train.Options{Batch: 32, Seed: 1, Policy: info, Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// soak runs all steps, piece by piece, and fails where anything grows meanwhile.
func soak(t *testing.T, w *train.Workload, steps, piece int) {
	samples, err := soakSamples(t, w, steps, piece)
	if err != nil {
		t.Fatal(err)
	}
	for q, name := range soakQuantities {
		first, last, growth := trend(samples, q)
		t.Logf("%s: %.0f after the warm-up, %.0f at the end, growth %+.0f of %.0f allowed", name, first, last, growth, soakAllowed[q])
		if growth > soakAllowed[q]+rounding {
			t.Errorf("%s grow", name)
		}
	}
}

// soakSamples runs all steps and returns what was sampled meanwhile.
func soakSamples(t *testing.T, w *train.Workload, steps, piece int) ([]soakSample, error) {
	r, err := w.Start()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	order := r.Samples(0, piece)
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return nil, err
	}
	defer status.Close()
	s := &sampler{status: status, text: make([]byte, 1<<14), samples: make([]soakSample, 0, maxSoakSamples),
		metrics: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/sched/goroutines:goroutines"}}}
	if piece == steps {
		stop := s.start()
		_, err = r.RunSteps(t.Context(), 0, piece, order, false)
		return s.samples, errors.Join(err, stop())
	}
	for done := 0; done < steps; done += piece {
		if _, err := r.RunSteps(t.Context(), 0, piece, order, true); err != nil {
			return nil, err
		}
		runtime.GC() // a schedule that nobody keeps is no growth
		if err := s.take(); err != nil {
			return nil, err
		}
	}
	return s.samples, nil
}

// soakQuantities is what is sampled; soakAllowed how much each may grow over a run.
// Go's runtime starts a thread now and then, for its own work or in place of one that
// waits in the system.
var (
	soakQuantities = [...]string{"heap, bytes", "resident, bytes", "goroutines", "threads"}
	soakAllowed    = [...]float64{soakMemoryAllowance, soakMemoryAllowance, 0, 2}
)

// soakSample is a value of each quantity at one moment.
type soakSample [len(soakQuantities)]float64

// sampler takes samples. Its memory is reserved beforehand, so that it is not what
// grows.
type sampler struct {
	status  *os.File
	text    []byte
	metrics []metrics.Sample
	samples []soakSample
}

// maxSoakSamples bounds a run to some hours.
const maxSoakSamples = 1 << 20

// start takes samples at intervals until stop is called.
func (s *sampler) start() (stop func() error) {
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		tick := time.Tick(soakInterval)
		for running := true; running && err == nil; {
			select {
			case <-end:
				running = false
			case <-tick:
				err = s.take()
			}
		}
		ended <- err
	}()
	return func() error {
		close(end)
		return <-ended
	}
}

func (s *sampler) take() error {
	metrics.Read(s.metrics)
	n, err := s.status.ReadAt(s.text, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the process's status: %w", err)
	}
	kib, threads := statusField(s.text[:n], "\nVmRSS:"), statusField(s.text[:n], "\nThreads:")
	if kib < 0 || threads < 0 {
		return errors.New("the process's status has no VmRSS or no Threads")
	}
	if len(s.samples) < maxSoakSamples {
		s.samples = append(s.samples, soakSample{float64(s.metrics[0].Value.Uint64()), float64(1024 * kib),
			float64(s.metrics[1].Value.Uint64()), float64(threads)})
	}
	return nil
}

// statusField is the number behind a key of /proc/PID/status, -1 for none.
func statusField(text []byte, key string) int {
	_, text, _ = bytes.Cut(text, []byte(key))
	text, _, _ = bytes.Cut(bytes.TrimLeft(text, " \t"), []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSuffix(text, []byte(" kB"))))
	if err != nil {
		return -1
	}
	return n
}

// trend puts a line through the samples of one quantity after warm-up, by least
// squares over their number, and returns where it begins and ends.
func trend(samples []soakSample, quantity int) (first, last, growth float64) {
	rest := samples[int(soakWarmup*float64(len(samples))):]
	if len(rest) < 2 {
		return math.NaN(), math.NaN(), math.Inf(1)
	}
	x, y := make([]float64, len(rest)), make([]float64, len(rest))
	for i, s := range rest {
		x[i], y[i] = float64(i), s[quantity]
	}
	first, slope := stat.LinearRegression(x, y, nil, false)
	growth = slope * x[len(x)-1]
	return first, first + growth, growth
}

// TestTrend: the first fifth is dropped, and the rest lies on 100 + 3·i, i from 20 to
// 99, so it begins at 160, ends at 397 and grows by 237; the other quantities stay.
func TestTrend(t *testing.T) {
	samples := make([]soakSample, 100)
	for i := range samples {
		samples[i] = soakSample{100 + 3*float64(i), 7, 5, 2}
		if i < 20 {
			samples[i] = soakSample{1e9, -4, 50, 1}
		}
	}
	for q, want := range [][3]float64{{160, 397, 237}, {7, 7, 0}, {5, 5, 0}, {2, 2, 0}} {
		first, last, growth := trend(samples, q)
		for k, got := range [3]float64{first, last, growth} {
			if math.Abs(got-want[k]) > 1e-9*math.Max(1, math.Abs(want[k])) {
				t.Errorf("quantity %d: %g to %g, growth %g, want %v", q, first, last, growth, want)
				break
			}
		}
	}
}

func TestStatusField(t *testing.T) {
	text := []byte("Name:\tdahl\nVmRSS:\t   12345 kB\nThreads:\t9\n")
	for key, want := range map[string]int{"\nVmRSS:": 12345, "\nThreads:": 9, "\nVmSwap:": -1} {
		if got := statusField(text, key); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}
