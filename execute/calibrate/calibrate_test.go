package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
	"dahl/platform"
	"dahl/schedule"
)

// TestCalibrateCoversTheGraph: every call of the graph on the whole machine has a
// model afterwards, alone and with all cores busy.
func TestCalibrateCoversTheGraph(t *testing.T) {
	g := layers(t)
	last := -1
	c, err := Run(context.Background(), []*dag.Graph{g}, Options{Platform: machine(t, 2), Variants: []string{"ref"}, MaxTime: 50 * time.Millisecond,
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
		if k, _ := kernels.KernelByName(task.Op); k.Host {
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
	if _, err := Run(ctx, []*dag.Graph{layers(t)}, Options{Platform: machine(t, 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
}

// TestCalibrateResumes: what a platform holds is not measured again, what it lacks is;
// after an interruption the calls measured so far are returned.
func TestCalibrateResumes(t *testing.T) {
	g := layers(t)
	opt := Options{Platform: machine(t, 1), Variants: []string{"ref"}, MaxTime: time.Millisecond}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	saved := 0
	opt.Save = func(p *platform.Platform) error {
		if saved++; len(p.Models) != saved {
			t.Errorf("%d models at save %d", len(p.Models), saved)
		}
		if saved == 3 {
			cancel()
		}
		return nil
	}
	part, err := Run(ctx, []*dag.Graph{g}, opt)
	if !errors.Is(err, context.Canceled) || part == nil || part.Measured != 3 || len(part.Platform.Models) != 3 {
		t.Fatalf("cancelled after 3 models: %+v, error %v", part, err)
	}
	before := slices.Clone(part.Platform.Models)
	opt.Platform, opt.Resume, opt.Save = part.Platform, true, nil
	rest, err := Run(context.Background(), []*dag.Graph{g}, opt)
	if err != nil {
		t.Fatal(err)
	}
	if rest.Skipped != 3 || rest.Measured == 0 || len(rest.Platform.Models) != 3+rest.Measured {
		t.Errorf("skipped %d, measured %d, %d models", rest.Skipped, rest.Measured, len(rest.Platform.Models))
	}
	if !slices.Equal(rest.Platform.Models[:3], before) {
		t.Error("models of the first run were measured again")
	}
	if rest.Platform.Devices[0].Dispatch != part.Platform.Devices[0].Dispatch {
		t.Error("the machine was measured again")
	}
}

// TestCalibrateSaveFails: the error of Save ends the calibration.
func TestCalibrateSaveFails(t *testing.T) {
	full := errors.New("disk full")
	_, err := Run(context.Background(), []*dag.Graph{layers(t)}, Options{Platform: machine(t, 1), Variants: []string{"ref"},
		MaxTime: time.Millisecond, Save: func(*platform.Platform) error { return full }})
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

// TestReferenceIsNotCalibrated where there is another variant, unless asked for.
func TestReferenceIsNotCalibrated(t *testing.T) {
	specs, err := specsOf([]*dag.Graph{layers(t)})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]string{}
	for _, p := range pointsOf(specs, nil, calls.GoCode, 0) {
		if !p.variant.RunsOn(calls.GoCode) {
			t.Errorf("%s: %s on a core", p.kernel.Op, p.variant.Name)
		}
		of[p.model.Op+p.model.Shape] = append(of[p.model.Op+p.model.Shape], p.variant.Name)
	}
	for call, names := range of {
		if slices.Contains(names, "ref") && len(names) > 1 {
			t.Errorf("%s: the reference beside %v", call, names)
		}
	}
	if len(of) != len(specs) {
		t.Errorf("%d of %d calls are measured", len(of), len(specs))
	}
	for _, p := range pointsOf(specs, nil, calls.CUDACode, 75) {
		if p.variant.Code != calls.CUDACode || p.variant.Capability > 75 {
			t.Errorf("%s: %s on a GPU of capability 7.5", p.kernel.Op, p.variant.Name)
		}
	}
}

// TestTooLargeForAVariant: calls whose operands a variant for GPUs cannot count are not
// measured with it. Rows of 2^31 elements are 1 more than an int32 holds.
func TestTooLargeForAVariant(t *testing.T) {
	dense := func(taps int) []*calls.Spec {
		s := &calls.Spec{Op: "dense", Type: dag.Float32}
		for i, shape := range [][]int{{3, 2}, {3, taps}, {2, taps}} {
			mode := dag.Read
			if i == 0 {
				mode = dag.Write
			}
			s.Operands = append(s.Operands, calls.OperandSpec{Type: s.Type, Mode: mode, Shape: shape})
		}
		return []*calls.Spec{s}
	}
	if points := pointsOf(dense(1<<31), nil, calls.CUDACode, 90); len(points) != 0 {
		t.Errorf("%d variants of a product of 2^31 taps are measured, the first is %s", len(points), points[0].variant.Name)
	}
	if len(pointsOf(dense(5), nil, calls.CUDACode, 90)) == 0 {
		t.Error("no variant of a product of 5 taps is measured")
	}
}

// TestRefusedCallsAreLeftOut: a call that a library refuses is told by name, and those after
// it are measured.
func TestRefusedCallsAreLeftOut(t *testing.T) {
	p := machine(t, 1)
	specs, err := specsOf([]*dag.Graph{layers(t)})
	if err != nil {
		t.Fatal(err)
	}
	points := pointsOf(specs, []string{"ref"}, calls.GoCode, 0)
	c := &calibrator{platform: copyOf(p), opt: Options{Platform: p}}
	refused := &points[1]
	err = c.measurePoints(&c.platform.Devices[0], points, func(pt *point, active int, _ time.Duration) (platform.Model, error) {
		if pt == refused {
			return platform.Model{}, fmt.Errorf("bind: %w", offload.ErrRefused)
		}
		m := pt.model
		m.Device, m.Active, m.MedianNs, m.Count = "cpu", active, 1, 1
		return m, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(points) - 1; c.result.Measured != n || len(c.platform.Models) != n {
		t.Errorf("%d calls were measured, want all %d but one", c.result.Measured, n)
	}
	told := c.result.Refused
	if len(told) != 1 || !errors.Is(told[0], offload.ErrRefused) || !strings.Contains(told[0].Error(), refused.model.Op+" ref of "+refused.model.Shape) {
		t.Errorf("refused: %v", told)
	}
}

// TestCalibrateInSitu: one model per distinct call, as often as the calls ran in the
// steady steps of both runs.
func TestCalibrateInSitu(t *testing.T) {
	var st StepTimes
	for range 2 {
		if err := InSitu(context.Background(), runner(t, machine(t, 2)), InSituOptions{Warmup: 2, Steps: 7}, &st); err != nil {
			t.Fatal(err)
		}
	}
	models := st.Models()
	count := 0
	for _, m := range models {
		count += m.Count
		if m.Active != 2 || m.MedianNs < 1 || m.StepNs < 1 || m.FirstNs <= 0 || !m.StepDistribution.Known() || m.Device != "cpu" {
			t.Errorf("model %+v", m)
		}
		if k, _ := kernels.KernelByName(m.Op); !k.Host && m.Variant != "ref" {
			t.Errorf("model %+v of a runner pinned to ref", m)
		}
	}
	if want := 2 * 7 * len(layers(t).Tasks); count != want {
		t.Errorf("models of %d calls, %d ran", count, want)
	}
	p := machine(t, 2)
	p.Models = models
	if err := p.Complete(); err != nil {
		t.Error(err)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestRunSpread: of runs of 9, 10, 11 and 90 ms the median is 10.5; the
// absolute deviations 1.5, 0.5, 0.5 and 79.5 have 1 as theirs, so that the spread is
// 1.4826·1/10.5. It is at most 1, and nothing is known from one run.
func TestRunSpread(t *testing.T) {
	ms := time.Millisecond
	st := StepTimes{runs: []time.Duration{9 * ms, 10 * ms, 11 * ms, 90 * ms}}
	if got, want := st.RunSpread(), 1.4826/10.5; math.Abs(got-want) > 1e-12 {
		t.Errorf("%g, want %g", got, want)
	}
	if got := (&StepTimes{runs: []time.Duration{1 * ms, 1 * ms, 90 * ms, 200 * ms}}).RunSpread(); got != 1 {
		t.Errorf("of wild runs: %g, want 1", got)
	}
	if got := (&StepTimes{runs: []time.Duration{ms}}).RunSpread(); got != 0 {
		t.Errorf("of one run: %g", got)
	}
}

// TestSummarise: of 1…20 ns the halves' medians are 5.5 and 15.5, in whole ns 5 and 15, so the
// spread is |5/15 - 1| = 2/3; the median is 10.5, in whole ns 10, as the mean is, and the 95th percentile the 19th. One call of 1 µs among 200 of 10 ns is beyond the
// 99th percentile and counts as one of 10 ns.
func TestSummarise(t *testing.T) {
	var times []time.Duration
	for i := range 20 {
		times = append(times, time.Duration(i+1))
	}
	want := sample{median: 10, p95: 19, mean: 10, count: 20, spread: 1 - float64(5)/15, distribution: platform.NewDistribution(times)}
	if got := summarise(times); got != want {
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

// TestPutModelReplaces: a model by itself keeps what was measured in steps, and the
// other way round.
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
	inStep := a
	inStep.MedianNs, inStep.StepNs, inStep.FirstNs = 100, 9, 30
	got = PutModel(PutModel(got, inStep), c)
	if want := c; len(got) != 2 || got[0].MedianNs != want.MedianNs || got[0].StepNs != 9 || got[0].FirstNs != 30 {
		t.Errorf("%+v", got)
	}
}

// TestGaps: worker 0 runs 100–200, then a task ready at 150 from 230 (dispatch, 30);
// worker 1 runs 0–100, then one ready at 200 from 250 (it waited 100 ns, less than the
// 500 after which it sleeps: hand-off, 50), then one ready at 1000 after its end at 300
// from 1200 (wake-up, 200). The first task of a worker tells nothing.
func TestGaps(t *testing.T) {
	var g gaps
	addGaps(&schedule.Schedule{Spans: []schedule.Span{
		{Worker: 1, Start: 0, End: 100},
		{Worker: 0, Start: 100, End: 200},
		{Worker: 0, Ready: 150, Start: 230, End: 240},
		{Worker: 1, Ready: 200, Start: 250, End: 300},
		{Worker: 1, Ready: 1000, Start: 1200, End: 1300},
	}}, 500, func(platform.WorkerID) *gaps { return &g })
	if !slices.Equal(g.dispatch, []time.Duration{30}) || !slices.Equal(g.handoff, []time.Duration{50}) || !slices.Equal(g.wake, []time.Duration{200}) {
		t.Errorf("%+v", g)
	}
}

// TestPutGaps: 50 gaps of each kind of 30, 80 and 2030 ns: a hand-off costs 50 more
// than dispatch and a wake-up 2000; with 49 nothing is said.
func TestPutGaps(t *testing.T) {
	fill := func(ns time.Duration, n int) []time.Duration { return slices.Repeat([]time.Duration{ns}, n) }
	st := StepTimes{spin: 700, gaps: map[string]*gaps{"": {}, "cpu": {fill(30, minGaps), fill(80, minGaps), fill(2030, minGaps)}}}
	d := platform.Device{Name: "cpu"}
	st.PutInto(&d)
	if d.Dispatch != 30 || d.Handoff != 50 || d.Wake != 2000 || d.WakeAfter != 700 {
		t.Errorf("%+v", d)
	}
	few := StepTimes{spin: 700, gaps: map[string]*gaps{"cpu": {fill(30, minGaps-1), fill(80, minGaps), fill(2030, minGaps)}}}
	d = platform.Device{Name: "cpu", Dispatch: 7}
	if few.PutInto(&d); d.Dispatch != 7 || d.Handoff != 0 || d.Wake != 0 {
		t.Errorf("%+v", d)
	}
}

// merge adds the contents of another collection.
func (st *StepTimes) merge(other *StepTimes) {
	for _, t := range other.calls {
		to := st.timesOf(t.model)
		to.first, to.steady = append(to.first, t.first...), append(to.steady, t.steady...)
		for _, r := range t.runs {
			to.runs = append(to.runs, runMean{len(st.runs) + r.run, r.mean})
		}
	}
	st.runs = append(st.runs, other.runs...)
	for device, g := range other.gaps {
		to := st.gapsOf(device)
		to.dispatch = append(to.dispatch, g.dispatch...)
		to.handoff = append(to.handoff, g.handoff...)
		to.wake = append(to.wake, g.wake...)
	}
	st.spin = max(st.spin, other.spin)
	st.timing = append(st.timing, other.timing...)
}

// TestStepTimesOfRuns: three runs in which a call took 10, 1000 and 12 ns on average, and
// a step as long: the one in the middle has 12. Of five runs with 14 and 9 ns more, the
// shortest and the longest are left out: (10 + 12 + 14)/3 = 12. A call that ran in the
// longest run alone has what it took there.
func TestStepTimesOfRuns(t *testing.T) {
	run := func(ns time.Duration) *StepTimes {
		return &StepTimes{calls: []*callTimes{{model: platform.Model{Op: "f"}, steady: []time.Duration{ns, ns}, runs: []runMean{{0, ns}}, first: []time.Duration{2 * ns}}},
			runs: []time.Duration{ns}, gaps: map[string]*gaps{"cpu": {dispatch: []time.Duration{1}}}}
	}
	var st StepTimes
	for i, ns := range []time.Duration{10, 1000, 12, 14, 9} {
		one := run(ns)
		if ns == 1000 {
			one.calls = append(one.calls, &callTimes{model: platform.Model{Op: "rare"}, steady: []time.Duration{77}, runs: []runMean{{0, 77}}})
		}
		st.merge(one)
		models := st.Models()
		if i != 2 && i != 4 {
			continue
		}
		if len(models) != 2 || models[0].StepNs != 12 || models[1].StepNs != 77 {
			t.Errorf("after %d runs: %+v", i+1, models)
		}
	}
	if m := st.Models()[0]; m.Count != 10 || m.FirstNs != 418 || len(st.runs) != 5 || len(st.gapsOf("cpu").dispatch) != 5 { // (20+2000+24+28+18)/5
		t.Errorf("%+v of %d runs, %d gaps", m, len(st.runs), len(st.gapsOf("cpu").dispatch))
	}
}
