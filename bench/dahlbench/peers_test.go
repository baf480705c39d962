package main

import (
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
	"dahl/train/peer"
)

// Five steps of 20, 40, 10, 30 and 50 ms per step of 64 samples: the median is
// 30 ms, so 64/0.03 = 2133.3 samples/s; slowest minus fastest is 40 ms, 4/3 of it.
func TestContestantRate(t *testing.T) {
	c := contestant{}
	for _, ms := range []int{20, 40, 10, 30, 50} {
		c.took = append(c.took, time.Duration(ms)*time.Millisecond)
	}
	if got := c.rate(64); math.Abs(got-64/0.03) > 1e-6 {
		t.Errorf("rate %v samples/s, want %v", got, 64/0.03)
	}
	if got := spread(c.took); math.Abs(got-4.0/3) > 1e-9 {
		t.Errorf("spread %v, want 4/3", got)
	}
}

// A repetition of 90 ms at 10 ms per step is 9 steps after 9/8 = 1 of warm-up.
func TestContestantRepeat(t *testing.T) {
	var calls [][2]int
	c := contestant{run: func(warmup, steps int) (time.Duration, error) {
		calls = append(calls, [2]int{warmup, steps})
		return time.Duration(steps) * 10 * time.Millisecond, nil
	}}
	must.Do(t, c.repeat(90*time.Millisecond))
	if len(calls) != 2 || calls[1] != [2]int{1, 9} {
		t.Errorf("runs of {warm-up, steps} %v; want a short one and {1, 9}", calls)
	}
}

// Two contestants, two repetitions each. The second interval is disturbed, so b's
// first repetition of 7 ms gives way to one of 8 ms; the loads that count are 0.01,
// 0.03, 0.05 and 0.03, 0.03 on average. With the machine always busy, the four
// spare repetitions are used up and the last of each counts.
func TestAlternate(t *testing.T) {
	threads := runtime.NumCPU()
	next := 0
	run := func(int, int) (time.Duration, error) {
		next++
		return time.Duration(3*(5+next)) * time.Millisecond, nil
	}
	contestants := func() []*contestant {
		next = 0
		return []*contestant{{run: run, step: 1}, {run: run, step: 1}}
	}
	// A repetition of a nanosecond is 3 steps.
	loads := []float64{0.01, 0.5, 0.03, 0.05, 0.03}
	interval := 0
	of := func(cores float64) func() host.Load {
		return func() host.Load {
			return host.Load{Others: time.Duration(cores * float64(time.Second)), Window: time.Second}
		}
	}
	load := func() func() host.Load {
		interval++
		return of(loads[interval-1])
	}
	two := contestants()
	others, err := newWatch(load, threads, 4).alternate(two, 2, time.Nanosecond)
	if err != nil || math.Abs(others-0.03) > 1e-9 {
		t.Errorf("load of others %v, %v; want 0.03", others, err)
	}
	a, b := two[0].took, two[1].took
	if len(a) != 2 || len(b) != 2 || a[0] != 6*time.Millisecond || b[0] != 8*time.Millisecond {
		t.Errorf("repetitions %v and %v; want 6, 9 and 8, 10 ms", a, b)
	}
	two = contestants()
	if _, err := newWatch(func() func() host.Load { return of(1) }, threads, 4).alternate(two, 2, time.Nanosecond); err != nil || next != 8 {
		t.Errorf("%d repetitions on a busy machine, %v; want 4 and 4 spare ones", next, err)
	}
}

// A setting that does not run is left out with its reason; the losses of one that does
// decide whether it is the same network, and without any there is no row.
func TestSameNetwork(t *testing.T) {
	twin := func(label string, losses ...float64) *contestant {
		return &contestant{label: label, losses: func(int) ([]float64, error) {
			if len(losses) == 0 {
				return nil, errors.New(label + " is out of memory")
			}
			return losses, nil
		}}
	}
	ours, broken := twin("dahl", 2, 1), twin("compiled")
	row := peerRow{}
	same := func(label string, want, got []float64) (float64, error) {
		return peer.LossError(label, want, got, []float64{1e-3, 1e-3})
	}
	// Off by 1e-4 of 2, and by 2e-4 of 1.
	var failed []error
	note := func(err error) { failed = append(failed, err) }
	ran, err := sameNetwork(&row, same, ours, []*contestant{twin("eager", 2.0002, 1), broken, twin("tuned", 2, 1.0002)}, note)
	if err != nil || len(ran) != 2 || ran[1].label != "tuned" || len(failed) != 1 || math.Abs(row.LossError-2e-4) > 1e-9 {
		t.Errorf("%d settings ran, failed: %v, loss error %v, %v", len(ran), failed, row.LossError, err)
	}
	if _, err := sameNetwork(&row, same, ours, []*contestant{broken, twin("eager", 2.1, 1)}, note); err == nil {
		t.Error("losses of 2 and 2.1 pass as the same network")
	}
	if _, err := sameNetwork(&row, same, ours, []*contestant{broken}, note); err == nil || len(failed) != 3 {
		t.Errorf("a row without a setting: failed %v, %v", failed, err)
	}
}

// dahl's side trains and evaluates without a warm-up, as the windows of joules want it.
func TestOurSideWithoutWarmup(t *testing.T) {
	s := must.Get(newOurSide(t.Context(), &peersOptions{}, "digits-cnn", 7, peerUnit{Device: platform.CPU, Threads: 1, Precision: precisionFloat32}))(t)
	defer s.Close()
	for _, mode := range []string{peer.ModeTrain, peer.ModeInfer} {
		if took, err := s.contestant(mode).run(0, 2); err != nil || took <= 0 {
			t.Errorf("%s: two steps took %v, %v", mode, took, err)
		}
	}
}

// Of each program the fastest so many go on: of five, the first three are two of one program and one of another.
func TestBestOf(t *testing.T) {
	var sorted []*contestant
	for _, program := range []string{"jax", "jax", "pytorch", "jax", "pytorch"} {
		sorted = append(sorted, &contestant{program: program, label: strconv.Itoa(len(sorted))})
	}
	for n, want := range map[int]string{1: "02", 2: "0124"} {
		got := ""
		for _, c := range bestOf(sorted, n) {
			got += c.label
		}
		if got != want {
			t.Errorf("the best %d of each are %s, want %s", n, got, want)
		}
	}
}

func TestPeerReport(t *testing.T) {
	cores, gpu := peerUnit{Device: platform.CPU, Threads: 2, Precision: precisionFloat32}, peerUnit{Device: platform.CUDA, Threads: 1, Precision: calls.TF32Precision}
	r := peerReport{LeftOut: []string{"lenet5: compiled"}, Rows: []peerRow{
		{Model: "mlp", Batch: 64, peerUnit: cores, Mode: peer.ModeTrain, Ours: 75000, Finalists: []finalist{{Program: "pytorch", Setting: "tuned: contiguous", SamplesPerS: 50000}}},
		{Model: "mlp", Batch: 64, peerUnit: gpu, Mode: peer.ModeTrain, Ours: 960000, Finalists: []finalist{
			{Program: "jax", Setting: "default: contiguous", SamplesPerS: 640000}, {Program: "pytorch", Setting: "default: contiguous", SamplesPerS: 320000}}},
		{Model: "mlp", Batch: 64, peerUnit: cores, Mode: peer.ModeInfer, Ours: 90000, Finalists: []finalist{{Program: "pytorch", Setting: "tuned: contiguous, frozen", SamplesPerS: 90000}}},
	}}
	r.note(peer.Program{Name: "pytorch"}, peer.Setting{Name: "tuned", Doc: "bound"}, peer.Versions{Program: "PyTorch 2", Library: "oneDNN 3", Capability: "AVX2"})
	r.note(peer.Program{Name: "pytorch"}, peer.Setting{Name: "tuned", Doc: "bound"}, peer.Versions{Program: "PyTorch 2", Library: "oneDNN 3", Capability: "AVX2"})
	r.note(peer.Program{Name: "jax"}, peer.Setting{Name: "default"}, peer.Versions{Program: "JAX 1"})
	var b strings.Builder
	_ = r.print(&b)
	training, inference, ok := strings.Cut(b.String(), "## Inference")
	if !ok || !strings.Contains(inference, "frozen") {
		t.Errorf("the report:\n%s", b.String())
	}
	for _, want := range []string{
		" beside PyTorch 2 with oneDNN 3, JAX 1.\n",
		"- tuned: bound (its kernels are for AVX2)\n\n",
		"| mlp | 64 | 2 cores | 75000 | 0 % | 50000 | 0 % | tuned: contiguous | 1.50 | – | – | – | – | 0 | 0.00 cores |",
		"| mlp | 64 | GPU, tf32 | 960000 | 0 % | 320000 | 0 % | default: contiguous | 3.00 | 640000 | 0 % | default: contiguous | 1.50 |",
		"## Left out\n\n- lenet5: compiled",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %s:\n%s", want, training)
		}
	}
	b.Reset()
	_ = (&peerReport{Rows: r.Rows[:1]}).print(&b)
	if strings.Contains(b.String(), "GPU") || strings.Contains(b.String(), "## Inference") || strings.Contains(b.String(), "Left out") {
		t.Errorf("tables of what was not measured:\n%s", b.String())
	}
}

// Steps of 5 and 3 ms against 4 and 4 ms: the better of two counts.
func TestSearch(t *testing.T) {
	steps := func(label string, ms ...int) *contestant {
		return &contestant{label: label, step: 1, run: func(_, steps int) (time.Duration, error) {
			step := time.Duration(ms[0]) * time.Millisecond
			ms = ms[1:]
			return time.Duration(steps) * step, nil
		}}
	}
	quiet := func() func() host.Load { return func() host.Load { return host.Load{} } }
	all := []*contestant{steps("steady", 4, 4), steps("once fast", 5, 3)}
	must.Do(t, newWatch(quiet, runtime.NumCPU(), 0).search(all, time.Nanosecond))
	if all[0].label != "once fast" || all[0].step != 3*time.Millisecond || all[1].step != 4*time.Millisecond {
		t.Errorf("first %q with %v, then %q with %v; want once fast with 3ms, steady with 4ms", all[0].label, all[0].step, all[1].label, all[1].step)
	}
}
