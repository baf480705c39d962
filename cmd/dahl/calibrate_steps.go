package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/nn"
	"dahl/plan"
	"dahl/platform"
	"dahl/simulate"
)

const (
	// inSituShare is the part of a calibration spent in real steps, for each number
	// of workers.
	inSituShare = 0.2
	// inSituRuns is how often the steps are measured, each time planned with what is
	// known by then, compiled and allocated anew: steps differ more from run to run
	// than within one.
	inSituRuns = 4
)

// calibrate measures what one training needs: every variant of its kernels by
// itself, which chooses among them, then the chosen ones inside real steps, which
// is what predicts best. The platform it returns has both.
func calibrate(ctx context.Context, o *options, m *nn.Model, p *platform.Platform, train, test *nn.Dataset, c calibration) (*execute.Calibration, error) {
	all := &workload{opts: o, executed: true, model: m, platform: p}
	if err := all.buildProgram(sampleCounts(train, test)); err != nil {
		return nil, err
	}
	sets, err := all.stepSets(c.units)
	if err != nil {
		return nil, err
	}
	graphs := all.program.Graphs
	for i := range sets {
		if err := sets[i].build(all, sampleCounts(train, test)); err != nil {
			return nil, err
		}
		graphs = append(slices.Clip(graphs), sets[i].program.Graphs...)
	}
	result, err := execute.Calibrate(ctx, graphs, execute.CalibrateOptions{
		Platform: p, Units: c.units, Variants: o.variants(), MaxTime: time.Duration(float64(c.time) * (1 - 2*inSituShare)),
		Far: c.far, Resume: c.resume, Energy: c.energy, Progress: c.progress, Save: c.save,
	})
	if err != nil {
		return result, err
	}
	perSet := time.Duration(float64(c.time) * 2 * inSituShare / float64(max(2, len(sets))))
	for i := range sets {
		if err := c.measureSteps(ctx, all, result.Platform, &sets[i], perSet, train, test); err != nil {
			return result, err
		}
	}
	return result, result.Platform.Complete()
}

// measureSteps adds what calls take in the steps of a set of devices. A device on which the
// steps cannot run, because it is too small, keeps what was measured by itself.
func (c *calibration) measureSteps(ctx context.Context, all *workload, p *platform.Platform, set *stepSet, budget time.Duration, train, test *nn.Dataset) error {
	s, err := newStepCalibration(set.options(all), all.model, p, set, train, test)
	if err != nil || c.resume && knowsSteps(set.program, p, s.platform) {
		return err
	}
	for run := range inSituRuns {
		if c.progress != nil {
			c.progress(run, inSituRuns, "steps on "+set.list)
		}
		err := s.run(ctx, budget/inSituRuns)
		if refused := (badInput{}); errors.As(err, &refused) && s.platform.Spread() {
			warn("no steps on "+set.device+" are measured", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.putInto(p)
	if c.save == nil {
		return nil
	}
	return c.save(p)
}

// variants are those to be measured: the pinned one, or all.
func (o *options) variants() []string {
	if o.Variant == "" {
		return nil
	}
	return []string{o.Variant}
}

// knowsSteps reports whether a platform has a time inside steps for every call of a
// program on the devices of a selection.
func knowsSteps(prog *dag.Program, p, selected *platform.Platform) bool {
	type call struct{ op, elem, shape string }
	known := map[call]bool{}
	for i := range p.Models {
		m := &p.Models[i]
		id, ok := selected.DeviceByName(m.Device)
		if !ok || m.StepNs == 0 || m.Active != selected.Devices[id].Count {
			continue
		}
		if k, err := kernels.KernelByName(m.Op); selected.Devices[id].PlacedOnly && err == nil && !k.Host {
			continue
		}
		known[call{m.Op, m.Type, m.Shape}] = true
	}
	for _, g := range prog.Graphs {
		for t := range g.Tasks {
			if task := &g.Tasks[t]; !known[call{task.Op, task.Type.String(), task.Shape}] {
				return false
			}
		}
	}
	return true
}

// stepSet is the devices on which real steps are measured: some units of one, and of
// the others only what the program needs of the host.
type stepSet struct {
	device, list string
	// likeAll says that the tiles are those of all devices together. A device alone has
	// tiles after its own caches.
	likeAll bool
	program *dag.Program
}

// stepSets are the sets whose steps are measured: of a processor one unit and all, of
// others all, with their own tiles and, where these differ, with those of all devices
// together. Without units every device is measured.
func (w *workload) stepSets(units map[string]int) ([]stepSet, error) {
	var sets []stepSet
	for i := range w.platform.Devices {
		d := &w.platform.Devices[i]
		n := d.Count
		if units != nil {
			n = min(n, units[d.Name])
		}
		if n == 0 || d.PlacedOnly {
			continue
		}
		if d.Kind == "cpu" && n > 1 && w.opts.Workers == 0 {
			sets = append(sets, stepSet{device: d.Name, list: d.Name + ":1"})
		}
		set := stepSet{device: d.Name, list: fmt.Sprintf("%s:%d", d.Name, n)}
		alone, err := w.platform.Select(set.list)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
		if grainOf(alone) != grainOf(w.platform) && (w.opts.Lowering == "" || w.opts.adapt != nil) {
			set.likeAll = true
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// options are those of a workload on the set.
func (s *stepSet) options(all *workload) *options {
	o := *all.opts
	if s.likeAll {
		o.adapt = func(l *dag.Lowering, _ int) { *l = *all.lowering }
	}
	return &o
}

// build lowers the network for the set.
func (s *stepSet) build(all *workload, n samples) error {
	alone, err := all.platform.Select(s.list)
	if err != nil {
		return err
	}
	w := &workload{opts: s.options(all), executed: true, model: all.model, platform: alone}
	err = w.buildProgram(n)
	s.program = w.program
	return err
}

// withWorkers is the platform with another number of units of its processor. Fewer are as
// if --devices chose them: the others idle. More are made up.
func withWorkers(p *platform.Platform, n int) (*platform.Platform, error) {
	q := *p
	q.Devices, q.Models = slices.Clone(p.Devices), slices.Clone(p.Models)
	var cpus []*platform.Device
	var list []string
	for i := range q.Devices {
		d := &q.Devices[i]
		if d.Kind == "cpu" {
			cpus = append(cpus, d)
			list = append(list, fmt.Sprintf("%s:%d", d.Name, n))
		} else {
			list = append(list, d.Name)
		}
	}
	if len(cpus) != 1 {
		return nil, inputErrorf("--workers %d: platform %q has %d processors; choose units with --devices", n, p.Name, len(cpus))
	}
	if n <= cpus[0].Count {
		fewer, err := p.Select(strings.Join(list, ","))
		return fewer, asInput(err)
	}
	cpus[0].Count = n
	return &q, asInput(q.Complete())
}

// stepCalibration takes each call's times from the steps of real trainings on one
// set of devices.
type stepCalibration struct {
	opts        options
	model       *nn.Model
	device      string             // that is measured
	platform    *platform.Platform // of the set, with all that is known so far
	train, test *nn.Dataset
	times       []execute.StepTimes // by graph of the program
}

func newStepCalibration(o *options, m *nn.Model, p *platform.Platform, set *stepSet, train, test *nn.Dataset) (*stepCalibration, error) {
	s := &stepCalibration{opts: *o, model: m, device: set.device, train: train, test: test}
	selected, err := p.Select(set.list)
	if err != nil {
		return nil, asInput(err)
	}
	s.platform, err = o.within(selected)
	return s, err
}

// run plans with what is known, trains for about some time and learns from it.
func (s *stepCalibration) run(ctx context.Context, maxTime time.Duration) error {
	w, err := newWorkload(&s.opts, s.model, s.platform, sampleCounts(s.train, s.test))
	if err != nil {
		return err
	}
	t, err := newTrainer(w, s.train, s.test, nil)
	if err != nil {
		return err
	}
	defer t.runner.Close()
	if s.times == nil {
		s.times = make([]execute.StepTimes, len(w.program.Graphs))
	}
	runtime.GC() // not while the workers have the cores
	for g := range w.program.Graphs {
		// The rarer graphs of the program get less time.
		steps, err := t.prepare(ctx, g, maxTime/time.Duration(1+min(g, 1)*5))
		if err != nil {
			return err
		}
		opt := execute.InSituOptions{Graph: g, Warmup: min(steps, warmupSteps), Steps: steps}
		if err := execute.CalibrateInSitu(ctx, t.runner, opt, &s.times[g]); err != nil {
			return err
		}
		if g == 0 && w.platform.Spread() {
			if err := execute.CalibrateTiming(ctx, t.runner, opt, &s.times[g]); err != nil {
				return err
			}
		}
	}
	s.putInto(s.platform)
	return nil
}

// Bounds of the steps that are measured in one run, and those that warm it up.
const (
	minMeasuredSteps, maxMeasuredSteps = 8, 400
	warmupSteps                        = 10
)

// prepare chooses how many steps of a graph run for about some time and hands the
// feeder their samples.
func (t *trainer) prepare(ctx context.Context, graph int, budget time.Duration) (steps int, err error) {
	predicted, err := plan.Simulate(ctx, t.w.decision, graph, 2, simulate.Options{})
	if err != nil {
		return 0, err
	}
	steps = int(max(minMeasuredSteps, min(maxMeasuredSteps, budget/max(1, plan.StepTime(predicted)))))
	g := t.w.program.Graphs[graph]
	order := shuffled(t.train.Len(), batchOf(g)*steps, t.w.opts.Seed)
	if !isTraining(g) {
		order = cyclic(t.test.Len(), batchOf(g)*steps)
	}
	t.feeder.begin(order, batchOf(g), steps)
	return steps, nil
}

// putInto writes what was learnt into a platform. A call that several graphs make has
// the time of the first: the training step; so has what lies between calls. What other
// devices did for this one, such as handing over its batches, is kept where it was
// measured before.
func (s *stepCalibration) putInto(p *platform.Platform) {
	before := slices.Clone(p.Models)
	for g := range slices.Backward(s.times) {
		for _, m := range s.times[g].Models() {
			if m.Device == s.device || !execute.KnowsSteps(before, m) {
				p.Models = execute.PutModel(p.Models, m)
			}
		}
	}
	if id, ok := p.DeviceByName(s.device); ok {
		s.times[0].PutInto(&p.Devices[id])
	}
}

// shuffled is n indices that go round a data set, each time in a new order, as
// training does: loading gathers them from all over it.
func shuffled(size, n int, seed uint64) []int32 {
	order := make([]int32, 0, n+size)
	pass := make([]int32, size)
	for epoch := 0; len(order) < n; epoch++ {
		nn.Shuffle(pass, seed, epoch)
		order = append(order, pass...)
	}
	return order[:n]
}

// cyclic is n indices that go round a data set as it lies, as evaluation does.
func cyclic(size, n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i % size)
	}
	return order
}
