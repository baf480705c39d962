package execute

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/platform"
)

// TestCalibrateCoversTheGraph: every call of the graph on the whole machine has a
// model afterwards, alone and with all cores busy.
func TestCalibrateCoversTheGraph(t *testing.T) {
	g := trainGraph(t)
	last := -1
	c, err := Calibrate(context.Background(), []*dag.Graph{g}, CalibrateOptions{Platform: machine(t, 2), Variants: []string{"ref"}, MaxTime: 50 * time.Millisecond,
		Progress: func(done, total int, _ string) {
			if done <= last || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Platform.Check(); err != nil {
		t.Error(err)
	}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		if k, _ := kernels.Lookup(task.Op); k.Host {
			continue
		}
		e, ok := c.Platform.Estimate(platform.Query{Op: task.Op, Variant: "ref", Type: task.Type.String(), Shape: task.Shape, Flops: task.Flops, MovedBytes: task.MovedBytes})
		if !ok || e.Source != "measured" || e.Duration <= 0 {
			t.Errorf("%s %s: estimate %+v", task.Op, task.Shape, e)
		}
	}
	for _, m := range c.Platform.Models {
		if m.Active != 1 && m.Active != 2 || m.Variant != "ref" || m.P95Ns < m.MedianNs || m.Count < 1 {
			t.Errorf("model %+v", m)
		}
	}
	d, ram := c.Platform.Devices[0], c.Platform.Memories[0]
	if d.Dispatch <= 0 || d.FlopsPerSec["float32"] <= 0 || d.FlopsPerSec["float64"] <= 0 || ram.BandwidthBytesPerSec <= 0 {
		t.Errorf("device %+v, memory %+v", d, ram)
	}
	if c.RepeatSpread < 0 {
		t.Errorf("spread %g", c.RepeatSpread)
	}
}

func TestCalibrateStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Calibrate(ctx, []*dag.Graph{trainGraph(t)}, CalibrateOptions{Platform: machine(t, 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
}

// TestCalibrateInSitu: one model per distinct call, as often as the calls ran.
func TestCalibrateInSitu(t *testing.T) {
	prog := testProgram(t)
	r := newRunner(t, prog, Options{Platform: machine(t, 2), Hooks: testHooks(nil), Variant: "ref"})
	models, spread, err := CalibrateInSitu(context.Background(), r, InSituOptions{Warmup: 2, Steps: 7})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, m := range models {
		count += m.Count
		if m.Active != 2 || m.MedianNs < 1 || m.Device != "cpu" {
			t.Errorf("model %+v", m)
		}
		if k, _ := kernels.Lookup(m.Op); !k.Host && m.Variant != "ref" {
			t.Errorf("model %+v of a runner pinned to ref", m)
		}
	}
	if want := 7 * len(prog.Graphs[0].Tasks); count != want {
		t.Errorf("models of %d calls, %d ran", count, want)
	}
	if spread < 0 {
		t.Errorf("spread %g", spread)
	}
	p := machine(t, 2)
	p.Models = models
	if err := p.Complete(); err != nil {
		t.Error(err)
	}
}

// TestSummarise: of 1…20 ns the halves' medians are the 6th and the 16th, so the
// spread is |6/16 - 1| = 0.625; the median is the 11th, the 95th percentile the 20th,
// the mean 10.5, in whole ns 10. One call of 1 µs among 200 of 10 ns is beyond the
// 99th percentile and counts as one of 10 ns.
func TestSummarise(t *testing.T) {
	var times []time.Duration
	for i := range 20 {
		times = append(times, time.Duration(i+1))
	}
	if got, want := summarise(times), (sample{median: 11, p95: 20, mean: 10, count: 20, spread: 0.625}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	outlier := slices.Repeat([]time.Duration{10}, 200)
	outlier[7] = time.Microsecond
	if got := summarise(outlier).mean; got != 10 {
		t.Errorf("mean with one outlier in 200: %v, want 10ns", got)
	}
	if got := summarise(nil); got != (sample{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestPutModelReplaces(t *testing.T) {
	a := platform.Model{Op: "add", Shape: "2;2", Active: 1, MedianNs: 5}
	b := a
	b.Active = 2
	c := a
	c.MedianNs = 7
	got := PutModel(PutModel(PutModel(nil, a), b), c)
	if len(got) != 2 || got[0] != c || got[1] != b {
		t.Errorf("%+v", got)
	}
}
