package train

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

// node is a core and a GPU, to which dispatching takes no time.
func node(t *testing.T) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("gpu"))
	p.Links[0].BandwidthBytesPerSec = 8e9
	must.Do(t, p.Complete())
	return p
}

// TestPredictTimedSteps: a chain of 3 calls on a GPU, each measured with 9 µs, of which being
// timed is 2: 27 µs in a recorded step and 21 in another. Of 2 epochs of 5 steps the first
// 2 are recorded: the run is 2·(2·27 + 3·21) = 234 µs. Where all are recorded it is
// 10·27 = 270, and simulated, without a record, 210.
func TestPredictTimedSteps(t *testing.T) {
	const us = time.Microsecond
	p := node(t)
	p.Devices[1].Timing = 2 * us
	p.Models = []platform.Model{{Op: "relu", Variant: "ref", Type: "float32", Device: "gpu", Shape: "7", MedianNs: 9000, P95Ns: 9000, Count: 5, Active: 1}}
	must.Do(t, p.Complete())
	b := dag.NewBuilder("chain")
	for i, name := range []string{"a", "b", "c"} {
		task := dag.Task{Name: name, Op: "relu", Type: dag.Float32, Shape: "7", Placement: &dag.Placement{Device: "gpu"}}
		if i > 0 {
			task.After = []dag.TaskID{dag.TaskID(i - 1)}
		}
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	for _, c := range []struct {
		words          string
		executed       bool
		record         int
		run, main, one time.Duration // of all, of a step of the schedule, of one in the mean after the first
		unrecorded     int
	}{
		{"a part", true, 2, 234 * us, 27 * us, 23 * us, 6}, // (234 − 27) us in 9 steps,
		{"all", true, 5, 270 * us, 27 * us, 27 * us, 0},
		{"simulated", false, 0, 210 * us, 21 * us, 21 * us, 0},
	} {
		w := &Workload{Options: Options{Epochs: 2, Record: c.record, OtherMachine: !c.executed}, Platform: p,
			Program: &dag.Program{Name: "chain", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 5}, {Steps: 5}}}}
		must.Do(t, w.Choose())
		o := must.Get(w.Predict(t.Context()))(t)
		if o.Run != c.run || plan.StepTime(o.Main) != c.main || o.Counted.PerStep() != c.one || o.Steps-o.Recorded != c.unrecorded {
			t.Errorf("%s recorded: run %v, step of the schedule %v, step %v, %d unrecorded; want %v, %v, %v, %d", c.words,
				o.Run, plan.StepTime(o.Main), o.Counted.PerStep(), o.Steps-o.Recorded, c.run, c.main, c.one, c.unrecorded)
		}
	}
}

// TestNewRefuses: what cannot be trained is the caller's error, before anything runs.
func TestNewRefuses(t *testing.T) {
	core, server := load(t, "emulated"), load(t, "server")
	m := must.Get(models.ByName("digits-cnn"))(t)
	d := must.Get(OpenData("synthetic:1x8x8:13:10", 0, 0))(t)
	for want, refused := range map[string]func() error{
		"batch 17: there are 13 training samples": func() error { return newError(m, d, core, Options{Batch: 17}) },
		`precision "fp8": want one of`:            func() error { return newError(m, d, core, Options{Precision: "fp8"}) },
		`variant "fast": no kernel has it`:        func() error { return newError(m, d, core, Options{Variant: "fast"}) },
		"cores of one memory are executed":        func() error { return newError(m, d, server, Options{}) },
		"is not this machine": func() error {
			w, err := New(m, d, server, Options{OtherMachine: true})
			if err != nil {
				t.Error(err)
				return nil
			}
			_, err = w.Train(t.Context())
			return err
		},
	} {
		if err := refused(); !errors.As(err, new(InputError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an InputError with %q", err, want)
		}
	}
}

func newError(m *nn.Model, d Data, p *platform.Platform, o Options) error {
	_, err := New(m, d, p, o)
	return err
}

// load reads a machine that ships with dahl.
func load(t testing.TB, name string) *platform.Platform {
	t.Helper()
	return must.Get(platform.Load("../platforms/" + name + ".toml"))(t)
}

// TestNewDefaults: a batch is the model's, or all samples where these are fewer.
func TestNewDefaults(t *testing.T) {
	m := must.Get(models.ByName("digits-cnn"))(t)
	for _, c := range []struct{ samples, batch, want int }{{13, 0, 13}, {997, 0, m.Defaults.Batch}, {13, 5, 5}} {
		d := must.Get(OpenData(fmt.Sprintf("synthetic:1x8x8:%d:10", c.samples), 0, 0))(t)
		w := must.Get(New(m, d, load(t, "emulated"), Options{Batch: c.batch, OtherMachine: true}))(t)
		if o := &w.Options; o.Batch != c.want || nn.BatchOf(w.Program.Graphs[0]) != c.want || o.Epochs != 1 || o.Type != dag.Float32 {
			t.Errorf("%d samples: batch %d, %d epochs, %v; want %d", c.samples, o.Batch, o.Epochs, o.Type, c.want)
		}
	}
}
