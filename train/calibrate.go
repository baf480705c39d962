package train

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"dahl/dag"
	"dahl/execute/calibrate"
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

// Calibration says how the calls of one network are measured.
type Calibration struct {
	calibrate.Options // of whose MaxTime a part is spent in steps
	// AllUnits says that steps are measured on all units of a processor only, and not on one.
	AllUnits bool
}

// Calibrate measures the kernels of one training: first every variant by itself, to
// choose among them, then the chosen ones inside real steps, whose times predict best.
// The platform it returns has both.
func Calibrate(ctx context.Context, m *nn.Model, d Data, o Options, c Calibration) (*calibrate.Result, error) {
	all, err := lowered(m, d, c.Platform, o)
	if err != nil {
		return nil, err
	}
	sets, err := all.stepSets(&c)
	if err != nil {
		return nil, err
	}
	graphs := slices.Clone(all.Program.Graphs)
	for i := range sets {
		set := &sets[i]
		some, err := c.Platform.Select(set.list)
		if err != nil {
			return nil, err
		}
		w, err := lowered(all.Model, d, some, set.options)
		if err != nil {
			return nil, err
		}
		set.program, graphs = w.Program, append(graphs, w.Program.Graphs...)
	}
	alone := c.Options
	alone.MaxTime = time.Duration(float64(c.MaxTime) * (1 - 2*inSituShare))
	result, err := calibrate.Run(ctx, graphs, alone)
	if err != nil {
		return result, err
	}
	perSet := time.Duration(float64(c.MaxTime) * 2 * inSituShare / float64(max(2, len(sets))))
	for i := range sets {
		if err := c.measureSteps(ctx, all, result.Platform, &sets[i], perSet); err != nil {
			return result, err
		}
	}
	return result, result.Platform.Complete()
}

// measureSteps adds what calls take in the steps of a set of devices. A device that is too
// small for the steps keeps the times of its variants by themselves.
func (c *Calibration) measureSteps(ctx context.Context, all *Workload, p *platform.Platform, set *stepSet, budget time.Duration) error {
	selected, err := p.Select(set.list)
	if err != nil {
		return asInput(err)
	}
	s := &stepCalibration{Workload: Workload{Model: all.Model, Data: all.Data, Options: set.options}, device: set.device}
	s.Platform, err = Within(selected, s.Options.Precision, s.Options.Variant)
	if err != nil || c.Resume && knowsSteps(set.program, p, s.Platform) {
		return err
	}
	for run := range inSituRuns {
		if c.Progress != nil {
			c.Progress(run, inSituRuns, "steps on "+set.list)
		}
		err := s.run(ctx, budget/inSituRuns)
		if refused := (InputError{}); errors.As(err, &refused) && s.Platform.Spread() {
			warn("no steps on "+set.device+" are measured", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.putInto(p)
	if c.Save == nil {
		return nil
	}
	return c.Save(p)
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
	options      Options // with the tiles of all devices together, or none: then they are after the device's own caches
	program      *dag.Program
}

// stepSets lists the sets whose steps are measured. A processor is measured with one unit
// and with all, any other device with all its units. Each has its own tiles, and where
// they differ also the common tiles of all devices. Without units every device is
// measured. Stages are left out, since a set may lack their devices; their calls are the same wherever they run.
func (w *Workload) stepSets(c *Calibration) (sets []stepSet, err error) {
	options := w.Options
	if l := options.Lowering; l != nil && l.Stages != nil {
		alone := *l
		alone.Stages, alone.Order, alone.Stash = nil, "", false
		options.Lowering = &alone
	}
	for i := range w.Platform.Devices {
		d := &w.Platform.Devices[i]
		n := d.Count
		if c.Units != nil {
			n = min(n, c.Units[d.Name])
		}
		if n == 0 || d.PlacedOnly {
			continue
		}
		if d.IsProcessor() && n > 1 && !c.AllUnits {
			sets = append(sets, stepSet{device: d.Name, list: d.Name + ":1", options: options})
		}
		set := stepSet{device: d.Name, list: fmt.Sprintf("%s:%d", d.Name, n), options: options}
		alone, err := w.Platform.Select(set.list)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
		if grainOf(alone) != grainOf(w.Platform) && w.Options.Lowering == nil {
			set.options.Lowering = w.Lowering
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// stepCalibration takes each call's times from the steps of real trainings on one set of
// devices. The platform has all times so far.
type stepCalibration struct {
	Workload
	device string                // that is measured
	times  []calibrate.StepTimes // by graph of the program
}

// run plans with what is known, trains for about some time and learns from it.
func (s *stepCalibration) run(ctx context.Context, maxTime time.Duration) error {
	w, err := New(s.Model, s.Data, s.Platform, s.Options)
	if err != nil {
		return err
	}
	if s.times == nil {
		s.times = make([]calibrate.StepTimes, len(w.Program.Graphs))
	}
	err = w.Time(ctx, maxTime, func(t *Trainer, g, warmup, steps int) error {
		opt := calibrate.InSituOptions{Graph: g, Warmup: warmup, Steps: steps}
		err := calibrate.InSitu(ctx, t.Runner, opt, &s.times[g])
		if err == nil && g == 0 && w.Platform.Spread() {
			err = calibrate.Timing(ctx, t.Runner, opt, &s.times[g])
		}
		return err
	})
	if err == nil {
		s.putInto(s.Platform)
	}
	return err
}

// Bounds of the measured steps of one run, and the number of steps before them.
const minMeasuredSteps, maxMeasuredSteps, warmupSteps = 8, 400, 10

// Time compiles and allocates the program anew, and calls run with each of its graphs, the
// number of steps in about maxTime, and the number of steps that warm up. The samples of
// these steps are ready. The rarer graphs get less time than the first.
func (w *Workload) Time(ctx context.Context, maxTime time.Duration, run func(t *Trainer, graph, warmup, steps int) error) error {
	t, err := w.Start()
	if err != nil {
		return err
	}
	defer t.Close()
	runtime.GC() // not while the workers have the cores
	for i := range w.Program.Graphs {
		predicted, err := plan.Simulate(ctx, w.Decision, i, 2, simulate.Options{})
		if err != nil {
			return err
		}
		budget := maxTime / time.Duration(1+min(i, 1)*5)
		steps := int(max(minMeasuredSteps, min(maxMeasuredSteps, budget/max(1, plan.StepTime(predicted)))))
		if err := t.begin(ctx, i, steps, t.Samples(i, steps)); err != nil {
			return err
		}
		if err := run(t, i, min(steps, warmupSteps), steps); err != nil {
			return err
		}
	}
	return nil
}

// putInto writes what was learnt into a platform. A call that several graphs make has
// the time of the first: the training step; so has what lies between calls. What other
// devices did for this one, such as handing over its batches, is kept where it was
// measured before.
func (s *stepCalibration) putInto(p *platform.Platform) {
	before := slices.Clone(p.Models)
	for g := range slices.Backward(s.times) {
		for _, m := range s.times[g].Models() {
			if m.Device == s.device || !calibrate.KnowsSteps(before, m) {
				p.Models = calibrate.PutModel(p.Models, m)
			}
		}
	}
	if id, ok := p.DeviceByName(s.device); ok {
		s.times[0].PutInto(&p.Devices[id])
	}
}
