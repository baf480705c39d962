package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/files"
	"dahl/nn/layers"
	"dahl/nn/npz"
	"dahl/train"
	"dahl/train/metrics"
)

// smallWork is a training of 2 epochs of 13 samples in batches of 5, the last of 3 samples, and its
// losses by dahl.
func smallWork(t *testing.T) (*train.Workload, []float64) {
	t.Helper()
	m := must.Get(nn.New("small", []int{1, 8, 8}, layers.Conv2D{Filters: 3, Kernel: 3}, layers.Flatten{}, layers.Dense{Outputs: 10}))(t)
	w := workload(t, m, "digits", 13, train.Options{Batch: 5, Epochs: 2, Seed: 7, Shuffle: true})
	run := must.Get(w.Train(t.Context()))(t)
	var losses []float64
	for _, s := range run.Steps[:3] {
		losses = append(losses, s.Loss)
	}
	return w, losses
}

// jobOf is a training by the worker of the tests.
func jobOf(t *testing.T, w *train.Workload) Job {
	t.Helper()
	program := must.Get(ProgramByName("pytorch"))(t)
	self := must.Get(os.Executable())(t)
	return Job{Workload: w, Program: program, Python: self, Setting: Label(program.onCPU[0], Contiguous),
		Meters: func() Meters { return meter.Record(nil) }}
}

// idle counts 2 J more when it is stopped.
type idle struct {
	Meters
	counter string
	t       *testing.T
}

func (i idle) Stop() ([]meter.Reading, error) {
	if err := raise(i.counter, 2); err != nil {
		i.t.Error(err)
	}
	return i.Meters.Stop()
}

// The window holds two epochs of 3 J and two tests of 1 J, 8 J, and not the 100 J of getting ready. The
// window before, in which 2 J are counted, is what the machine draws idle. Each of the four requests takes
// 0.25 s and half as many CPU seconds.
func TestRunCountsItsWindow(t *testing.T) {
	w, losses := smallWork(t)
	root, counter := powercap(t)
	fake{Losses: losses, Counter: counter}.set(t)
	j := jobOf(t, w)
	windows := 0
	j.Idle, j.Meters = time.Millisecond, func() Meters {
		rapl := must.Get(meter.OpenRAPL(root))(t)
		var m Meters = meter.Record([]meter.Metered{{Of: energy.ProcessorsMeter, Meter: rapl}})
		if windows++; windows == 2 { // after the one that asks whether there are meters
			m = idle{m, counter, t}
		}
		return m
	}
	r := must.Get(run(t.Context(), j))(t)
	if joules, off := r.Energy.Joules(); math.Abs(joules-8) > 1e-9 || off <= 0 || r.Energy.Unavailable != "" {
		t.Errorf("%v ± %v J, %q; want 8 J", joules, off, r.Energy.Unavailable)
	}
	over, before := r.Energy.Readings[0], r.Energy.Idle[0]
	want := 8 - 2/before.Seconds*over.Seconds
	if above, ok := r.Energy.AboveIdle(); !ok || math.Abs(above-want) > 1e-6*math.Abs(want) || before.Joules != 2 {
		t.Errorf("%v J above idle, %v; want %v", above, ok, want)
	}
	if r.Seconds != 1 || r.CPUSeconds != 0.5 || r.PeakBytes != 7<<20 || math.Abs(r.CPUShare()-0.5/float64(r.Threads)) > 1e-12 {
		t.Errorf("%v s, %v CPU s, %v bytes, busy %v; want 1 s, 0.5 s, 7 MiB", r.Seconds, r.CPUSeconds, r.PeakBytes, r.CPUShare())
	}
	mean := (5*losses[0] + 5*losses[1] + 3*losses[2]) / 13
	if len(r.Epochs) != 2 || math.Abs(r.Epochs[1].Loss-mean) > 1e-12 || r.Epochs[1].TestAccuracy != 11.0/float64(w.Data.Test.Len()) || r.Epochs[1].SamplesPerSec() != 52 {
		t.Errorf("epochs %+v; want a loss of %v and 13 samples in 0.25 s", r.Epochs, mean)
	}
	if len(r.Steps) != 6 || r.Steps[5].Samples != 3 || r.Steps[5].Step != 6 || r.LossError > 1e-6 || r.Versions.Program != "Fake 1.2" {
		t.Errorf("steps %+v, losses differ by %v, %+v", r.Steps, r.LossError, r.Versions)
	}
}

// Without a meter the times remain, and the energy says why there is none.
func TestRunWithoutMeters(t *testing.T) {
	w, losses := smallWork(t)
	fake{Losses: losses}.set(t)
	r := must.Get(run(t.Context(), jobOf(t, w)))(t)
	if r.Energy.Readings != nil || r.Energy.Unavailable == "" || r.Seconds != 1 {
		t.Errorf("%+v, %v s", r.Energy, r.Seconds)
	}
}

// A meter that stands still is none: there are no joules, and the energy says why.
func TestRunWithStuckMeter(t *testing.T) {
	w, losses := smallWork(t)
	root, _ := powercap(t)
	fake{Losses: losses}.set(t)
	j := jobOf(t, w)
	j.Meters = func() Meters {
		rapl := must.Get(meter.OpenRAPL(root))(t)
		return meter.Record([]meter.Metered{{Of: energy.ProcessorsMeter, Meter: rapl}})
	}
	r := must.Get(run(t.Context(), j))(t)
	if e := r.Energy; e.Readings != nil || len(e.Meters) != 1 || e.Meters[0].Status != meter.Stuck || !strings.HasPrefix(e.Unavailable, "RAPL package-0 of processors stuck: it shows 1.7e-05 J") {
		t.Errorf("%+v", e)
	}
}

// What goes wrong in a process is told with its last words. A program that is not there is told apart.
func TestRunErrors(t *testing.T) {
	w, losses := smallWork(t)
	for _, c := range []struct {
		trouble, want string
		missing       bool
	}{
		{"missing", "No module named 'fake'; name an interpreter that has it with --python", true},
		{"no Python", "the worker ended", true},
		{"another network", "step 2: the loss is", false},
		{"fewer steps", "2 losses of 3 steps", false},
		{"dies", "epoch: the worker ended: MemoryError: no more", false},
	} {
		t.Run(c.trouble, func(t *testing.T) {
			fake{Losses: losses, Trouble: c.trouble}.set(t)
			_, err := run(t.Context(), jobOf(t, w))
			var missing *MissingError
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &missing) != c.missing {
				t.Errorf("%v; want %q, missing %v", err, c.want, c.missing)
			}
		})
	}
	j := jobOf(t, w)
	j.Python = "nope/python"
	var missing *MissingError
	if _, err := run(t.Context(), j); !errors.As(err, &missing) || !strings.Contains(err.Error(), "nope/python") {
		t.Errorf("an interpreter that is not there: %v", err)
	}
	j.Setting = "nope"
	var input train.InputError
	if _, err := run(t.Context(), j); !errors.As(err, &input) || !strings.Contains(err.Error(), "tuned: channels_last") {
		t.Errorf("a setting that is not there: %v", err)
	}
}

// The end of the context ends the process, and what was done until then is there.
func TestRunInterrupted(t *testing.T) {
	w, losses := smallWork(t)
	fake{Losses: losses, Trouble: "hangs"}.set(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	j := jobOf(t, w)
	j.OnEpoch = func(metrics.Epoch) { interrupt() }
	r, err := run(ctx, j)
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Epochs) != 1 {
		t.Errorf("%+v, %v; want an epoch and the interruption", r, err)
	}
}

// The best setting is one that keeps memory, with channels last: 6 times as fast as the default.
func TestRunSearches(t *testing.T) {
	w, losses := smallWork(t)
	fake{Losses: losses}.set(t)
	j := jobOf(t, w)
	j.Setting = Best
	r := must.Get(run(t.Context(), j))(t)
	if r.Setting != "tuned" || r.Format != ChannelsLast || len(r.Searched) != 2*len(j.Program.Settings("cpu", r.Threads)) {
		t.Errorf("%s, %s of %+v", r.Setting, r.Format, r.Searched)
	}
	last := r.Searched[len(r.Searched)-1]
	if ratio := r.Searched[0].SamplesPerS / last.SamplesPerS; math.Abs(ratio-6) > 1e-6 {
		t.Errorf("%+v is %v times as fast as %+v, want 6", r.Searched[0], ratio, last)
	}
}

// What is written for a worker are the weights, and the samples in the order of each epoch.
func TestExport(t *testing.T) {
	w, _ := smallWork(t)
	twin := must.Get(Describe(w))(t)
	must.Do(t, twin.Export(t.TempDir(), []npz.Array{npz.NewArray("fc1.bias", dag.Float32, []int{2}, []float64{3, 5})}, w, 0))
	read := func(path string) map[string]npz.Array {
		all := must.Get(npz.Read(path, func(*npz.Array) error { return nil }))(t)
		byName := map[string]npz.Array{}
		for _, a := range all {
			byName[a.Name] = a
		}
		return byName
	}
	bias := read(twin.Weights)["fc1.bias"]
	if got := bias.Float64s(); !slices.Equal(got, []float64{3, 5}) {
		t.Errorf("weights %v", got)
	}
	arrays := read(twin.Data)
	order, samples, labels := arrays["order"], arrays["samples"], arrays["labels"]
	for epoch := range 2 {
		want := make([]int32, 13)
		data.Shuffle(want, 7, epoch)
		for i, at := range order.Float64s()[13*epoch:][:13] {
			if at != float64(want[i]) {
				t.Fatalf("epoch %d begins with %v, want %v", epoch, order.Float64s()[13*epoch:][:13], want)
			}
		}
	}
	if !slices.Equal(samples.Data, w.Data.Train.Samples) || !slices.Equal(samples.Shape, []int{13, 1, 8, 8}) || labels.Float64s()[12] != float64(w.Data.Train.Labels[12]) {
		t.Errorf("samples of shape %v, labels %v", samples.Shape, labels.Float64s())
	}
	if test := arrays["test_samples"]; test.Shape[0] != w.Data.Test.Len() {
		t.Errorf("test samples of shape %v, want %d", test.Shape, w.Data.Test.Len())
	}
}

// Tokens are written as they are, with a label for each position, and a layer says whose parameters it has.
func TestExportTokens(t *testing.T) {
	m := must.Get(files.ParseModel(fmt.Appendf(nil, everyTokens, trainings["tokens"]), "tokens"))(t)
	w := workload(t, m, "tokens:7:13:11", 0, train.Options{Batch: 5, Epochs: 1})
	twin := must.Get(Describe(w))(t)
	if last := twin.Layers[len(twin.Layers)-1]; twin.Divisor != 0 || !maps.Equal(last.Shared, map[string]string{"weight": "wte.weight"}) {
		t.Errorf("divisor %v, shared %v; want no divisor, and the table of the first layer", twin.Divisor, last.Shared)
	}
	must.Do(t, twin.Export(t.TempDir(), nil, w, 0))
	of := w.Data.Train
	for _, a := range must.Get(npz.Read(twin.Data, func(*npz.Array) error { return nil }))(t) {
		want := map[string][]byte{"samples": of.Samples, "labels": bytesOf(of.Labels)}[a.Name]
		if want != nil && (a.Type != dag.Int32 || !slices.Equal(a.Shape, []int{13, 7}) || !slices.Equal(a.Data, want)) {
			t.Errorf("%s of type %v and shape %v; want 13 of 7 positions, as they lie", a.Name, a.Type, a.Shape)
		}
	}
}

// run trains by another program.
func run(ctx context.Context, j Job) (*Result, error) {
	t, err := Prepare(ctx, j)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return &t.Result, t.Run(ctx)
}
