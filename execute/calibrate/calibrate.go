package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/energy/meter"
	"dahl/execute"
	"dahl/execute/hardware"
	"dahl/execute/host"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
	"dahl/platform"
	"dahl/stats"
)

// Options says what to measure, and for how long.
type Options struct {
	Platform *platform.Platform // this machine, at its first clocks; its numbers are replaced; nil means hardware.Detect
	Units    map[string]int     // for each device to measure, the most units; nil means all devices
	Variants []string           // nil means all variants, except the reference where there is another
	MaxTime  time.Duration      // about, for all devices together; zero means 10 s
	// Energy measures the joules of calls on a device by running them again and again. Of processors
	// one meter measures all together. Nil, or ok false, means that there is no meter.
	Energy func(ctx context.Context, device string, calls func() (int, error)) (e meter.CallEnergy, ok bool, err error)
	// Far also measures calls whose operands all caches have lost. It takes longer, since it has
	// to prepare operands of more than the third-level cache.
	Far bool
	// Resume skips calls for which Platform already has a measured model. If it has any model,
	// the machine's own numbers are skipped too.
	Resume   bool
	Progress func(done, total int, what string)
	// Save gets the platform after each model. An error ends the calibration.
	Save func(*platform.Platform) error
}

// Result is a platform and the quality of its measurements.
type Result struct {
	Platform *platform.Platform
	// RepeatSpread is how far two measurements of one kernel differ: the median over all models
	// of |first half / second half - 1|.
	RepeatSpread float64
	// Measured, Skipped and Unsteady count calls: measured ones, ones left out by Resume, and ones
	// without steady times.
	Measured, Skipped, Unsteady int
	// TooLarge counts calls that did not fit the memory of a device.
	TooLarge int
	// Refused lists the calls that the library of their variant refuses, and why.
	Refused []error
	// Devices are the results for devices with memories of their own, apart from their models.
	Devices []Device
	// Powers are the measured powers of processors.
	Powers []Power
}

const (
	defaultMaxTime = 10 * time.Second
	// unsteadySpread is the spread above which a call is measured again, up to maxTries times in
	// all. The steadiest try counts.
	unsteadySpread = 0.05
	maxTries       = 5
	// asideShare is the part of a call's time for which it is also measured warm, and far.
	asideShare = 0.2
)

// Run measures the kernels of the graphs, each by itself: every distinct operation,
// variant, type and shape, on one unit of a device and on all at the same time. It also measures
// the memory's bandwidth and the cost of dispatching a task, and copies and first use for devices
// with memories of their own (device.go). It covers every variant, so use it to choose
// among variants or to predict other shapes.
//
// Operands cycle through twice the second-level cache, so they are neither always hot nor always cold.
// A call with operands in that cache is measured a second time, with the operands of the previous call.
// On request it is measured with operands in no cache, too. A simulator knows which of these a task
// meets. In a real step the tasks before decide how warm operands are. [InSitu] takes the times from
// real steps, so use it to predict this graph with the variants of its runner.
//
// When ctx ends, Run returns the measurements so far with ctx's error.
func Run(ctx context.Context, graphs []*dag.Graph, opt Options) (*Result, error) {
	p := opt.Platform
	if p == nil {
		var err error
		if p, err = hardware.Detect(); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(execute.CheckWorkers(p), execute.CheckClocks(p, p.ClocksUsed())); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	c := &calibrator{ctx: ctx, opt: opt, platform: copyOf(p)}
	specs, err := specsOf(graphs)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	err = cmp.Or(c.measureAll(specs), c.platform.Complete())
	c.result.Platform, c.result.RepeatSpread = c.platform, stats.Median(c.spreads)
	if err != nil {
		return &c.result, fmt.Errorf("calibrate: %w", err)
	}
	return &c.result, nil
}

// copyOf copies a platform so that its devices, memories and models can be changed.
func copyOf(p *platform.Platform) *platform.Platform {
	q := *p
	q.Memories, q.Devices, q.Links, q.Models = slices.Clone(p.Memories), slices.Clone(p.Devices), slices.Clone(p.Links), slices.Clone(p.Models)
	return &q
}

// measureAll measures one device after the other, each for an equal part of the time.
func (c *calibrator) measureAll(specs []*calls.Spec) error {
	var cores, others []platform.DeviceID
	for d := range c.platform.Devices {
		switch dev := &c.platform.Devices[d]; {
		case c.units(dev) == 0:
		case dev.IsProcessor():
			cores = append(cores, platform.DeviceID(d))
		default:
			others = append(others, platform.DeviceID(d))
		}
	}
	c.perDevice = cmp.Or(c.opt.MaxTime, defaultMaxTime) / time.Duration(max(1, len(cores)+len(others)))
	for _, d := range cores {
		if err := c.measureCores(d, specs); err != nil {
			return err
		}
	}
	return c.measureDevices(others, specs)
}

// units is how many units of a device are measured at once. Zero means that it is not measured.
func (c *calibrator) units(d *platform.Device) int {
	if c.opt.Units == nil {
		return d.Count
	}
	return min(d.Count, c.opt.Units[d.Name])
}

// measureCores measures the units of a processor.
func (c *calibrator) measureCores(id platform.DeviceID, specs []*calls.Spec) error {
	c.cpu = &c.platform.Devices[id]
	c.cores = c.units(c.cpu)
	if !c.knows(c.cpu) {
		if err := c.measureMachine(); err != nil {
			return err
		}
	}
	if err := c.measurePower(); err != nil {
		return fmt.Errorf("measure the power of %q: %w", c.cpu.Name, err)
	}
	points := pointsOf(specs, c.opt.Variants, c.cpu.Code(), 0)
	return c.measurePoints(c.cpu, points, c.measureCall)
}

// knows reports whether a device is already measured and need not be measured again.
func (c *calibrator) knows(d *platform.Device) bool {
	return c.opt.Resume && slices.ContainsFunc(c.platform.Models, func(m platform.Model) bool { return m.Count > 0 && m.Device == d.Name })
}

// point is one thing to measure.
type point struct {
	kernel  *kernels.Kernel
	variant *calls.Variant
	spec    *calls.Spec
	model   platform.Model
}

// specsOf lists the distinct calls of the graphs.
func specsOf(graphs []*dag.Graph) ([]*calls.Spec, error) {
	type identity struct {
		op, key string
		t       dag.DType
	}
	seen := map[identity]bool{}
	var specs []*calls.Spec
	for _, g := range graphs {
		for t := range g.Tasks {
			task := &g.Tasks[t]
			spec := calls.SpecOf(task, func(b dag.BufferID) dag.Buffer { return g.Buffers[b] })
			if err := kernels.Validate(spec); err != nil {
				return nil, fmt.Errorf("graph %q: task %q: %w", g.Name, task.Name, err)
			}
			id := identity{task.Op, spec.Key(), task.Type}
			if seen[id] {
				continue
			}
			seen[id] = true
			if k, _ := kernels.KernelByName(task.Op); !k.Host {
				specs = append(specs, spec)
			}
		}
	}
	return specs, nil
}

// pointsOf lists the variants of calls that a device of a code and capability runs,
// sorted. It leaves out variants of libraries that are not installed. It also leaves out calls
// whose element count is too small for their operands: asking such a call for its workspace would
// panic.
func pointsOf(specs []*calls.Spec, variants []string, code string, capability int) []point {
	var points []point
	for _, spec := range specs {
		k, _ := kernels.KernelByName(spec.Op)
		var run []*calls.Variant
		for i := range k.Variants {
			v := &k.Variants[i]
			runs := v.RunsOn(code) && v.For(spec.Type) && v.Capability <= capability && (code != calls.GoCode || v.RunsHere())
			named := variants == nil || slices.Contains(variants, v.Name)
			if runs && named && v.Fits(spec) == nil && (v.Library == "" || installed(v.Library)) {
				run = append(run, v)
			}
		}
		// The reference is slow and only there to compare with, so it is measured only on request or where there is nothing else.
		if variants == nil && len(run) > 1 && run[0] == &k.Variants[0] {
			run = run[1:]
		}
		for _, v := range run {
			points = append(points, newPoint(k, v, spec))
		}
	}
	slices.SortFunc(points, func(a, b point) int { return compareCalls(&a.model, &b.model) })
	return points
}

// installed reports whether a library of kernels can be loaded.
func installed(library string) bool {
	_, err := hardware.LibraryFile(library)
	return err == nil
}

func newPoint(k *kernels.Kernel, v *calls.Variant, s *calls.Spec) point {
	p := point{kernel: k, variant: v, spec: s}
	p.model = platform.Model{Op: k.Op, Variant: v.Name, Type: s.Type.String(), Shape: s.Key()}
	p.model.Flops, p.model.MovedBytes = k.Work(s)
	if v.WorkspaceBytes != nil {
		p.model.WorkspaceBytes = v.WorkspaceBytes(s)
	}
	return p
}

// calibrator is one calibration in progress.
type calibrator struct {
	ctx       context.Context
	opt       Options
	platform  *platform.Platform
	cpu       *platform.Device // the processor that is measured
	cores     int              // number of its cores
	perDevice time.Duration
	deadline  time.Time // nothing is measured again after this time
	spreads   []float64
	result    Result
}

// call is a point with a number of busy units.
type call struct {
	*point
	active int
}

// missing lists the calls of a device to be measured, with one busy unit and with all.
func (c *calibrator) missing(d *platform.Device, points []point) []call {
	var calls []call
	for i := range points {
		for _, active := range slices.Compact([]int{1, c.units(d)}) {
			m := points[i].model
			m.Device, m.Active = d.Name, active
			k := slices.IndexFunc(c.platform.Models, func(o platform.Model) bool { return sameCall(&o, &m) && o.Distribution.Known() })
			if c.opt.Resume && k >= 0 {
				c.result.Skipped++
				continue
			}
			calls = append(calls, call{&points[i], active})
		}
	}
	return calls
}

// errTooLarge says that a device does not hold the operands of a call.
var errTooLarge = errors.New("the operands do not fit")

// measurePoints measures the missing calls of a device.
func (c *calibrator) measurePoints(d *platform.Device, points []point, measure func(*point, int, time.Duration) (platform.Model, error)) error {
	calls := c.missing(d, points)
	if len(calls) == 0 {
		return nil
	}
	c.deadline = time.Now().Add(c.perDevice)
	// Half of the time is for measuring each call once, the rest for preparing
	// operands and for measuring unsteady calls again.
	budget := c.perDevice / time.Duration(2*len(calls))
	for i, call := range calls {
		c.progress(i, len(calls), d.Name+" "+call.model.Op+" "+call.model.Variant+" "+call.model.Shape)
		m, err := measure(call.point, call.active, budget)
		if errors.Is(err, errTooLarge) {
			c.result.TooLarge++
			continue
		}
		if errors.Is(err, offload.ErrRefused) {
			c.result.Refused = append(c.result.Refused, fmt.Errorf("%s %s of %s on %s: %w", call.model.Op, call.model.Variant, call.model.Shape, d.Name, err))
			continue
		}
		if err != nil {
			return err
		}
		c.platform.Models = PutModel(c.platform.Models, m)
		c.result.Measured++
		if m.Unsteady {
			c.result.Unsteady++
		}
		if err := c.save(); err != nil {
			return err
		}
	}
	c.progress(len(calls), len(calls), "")
	return nil
}

func (c *calibrator) save() error {
	if c.opt.Save == nil {
		return nil
	}
	return c.opt.Save(c.platform)
}

// measureCall measures one call while active cores run it. It repeats the measurement while times
// do not settle or other processes use the cores.
func (c *calibrator) measureCall(pt *point, active int, budget time.Duration) (platform.Model, error) {
	params := pt.kernel.Values(pt.spec)
	benches := make([]*bench, active)
	times := make([][]time.Duration, active)
	l2, farBytes := c.cpu.L2Bytes, c.farBytes(pt.spec, active)
	m, err := c.steadiest(pt, c.cpu, active, func() ([][]time.Duration, error) {
		onCores(active,
			func(w int) {
				if benches[w] == nil {
					benches[w] = newBench(pt.variant, pt.spec, params, 2*l2, farBytes)
				}
			},
			func(w int) { times[w] = benches[w].measure(c.ctx, budget, benches[w].nearSets) })
		return times, c.ctx.Err()
	})
	if err != nil {
		return m, err
	}
	aside := func(sets int) float64 {
		onCores(active, func(int) {}, func(w int) {
			times[w] = benches[w].measure(c.ctx, time.Duration(asideShare*float64(budget)), sets)
		})
		return float64(max(1, stats.Median(slices.Concat(times...))))
	}
	if pt.spec.Bytes() <= l2 {
		m.WarmNs = aside(1)
	}
	if farBytes > 0 {
		m.FarNs = aside(len(benches[0].calls))
	}
	return m, c.ctx.Err()
}

// steadiest measures a call on each of some units and makes a model of the steadiest try. It repeats
// while times do not settle or other processes use the cores.
func (c *calibrator) steadiest(pt *point, d *platform.Device, active int, measure func() ([][]time.Duration, error)) (platform.Model, error) {
	var best sample
	steady := false
	for try := range maxTries {
		load := host.StartLoad()
		times, err := measure()
		if err != nil {
			return platform.Model{}, err
		}
		s := summarise(slices.Concat(times...))
		s.spread = summarise(times[0]).spread
		quiet := !load.Load().Disturbed(0)
		if settled := quiet && s.spread <= unsteadySpread; try == 0 || settled || s.spread < best.spread {
			best, steady = s, settled
		}
		if steady || time.Now().After(c.deadline) {
			break
		}
	}
	c.spreads = append(c.spreads, best.spread)
	m := pt.model
	m.Device, m.Active = d.Name, active
	m.MedianNs, m.P95Ns, m.Count = float64(max(best.median, 1)), float64(best.p95), best.count
	m.Distribution, m.Unsteady = best.distribution, !steady
	return m, nil
}

// farBytes is how many bytes of operands a unit needs so that all active units together exceed all
// caches; the units share the last cache. Zero means that far operands are not measured: the operands
// of a small call never leave the caches.
func (c *calibrator) farBytes(s *calls.Spec, active int) int64 {
	d := c.cpu
	if !c.opt.Far || d.L3Bytes == 0 || s.Bytes()*maxSets < 3*d.L3Bytes/2 {
		return 0
	}
	return 3 * d.L3Bytes / 2 / int64(active)
}

// compareCalls orders models by their calls, devices, numbers of busy units and clocks.
func compareCalls(a, b *platform.Model) int {
	return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Shape, b.Shape),
		cmp.Compare(a.Device, b.Device), cmp.Compare(a.Active, b.Active), cmp.Compare(a.Clock, b.Clock))
}

// sameCall reports whether two models are equal in all of these.
func sameCall(a, b *platform.Model) bool { return compareCalls(a, b) == 0 }

// KnowsSteps reports whether models have a time in steps for the call of model m.
func KnowsSteps(models []platform.Model, m platform.Model) bool {
	return slices.ContainsFunc(models, func(o platform.Model) bool { return sameCall(&o, &m) && o.StepNs > 0 })
}

// PutModel replaces the model of the same call, or appends it. A measurement of the call by
// itself keeps the one in real steps, and the other way round.
func PutModel(models []platform.Model, m platform.Model) []platform.Model {
	for i := range models {
		o := &models[i]
		if !sameCall(o, &m) {
			continue
		}
		if m.StepNs > 0 {
			o.StepNs, o.FirstNs, o.StepDistribution = m.StepNs, m.FirstNs, m.StepDistribution
		} else {
			m.StepNs, m.FirstNs, m.StepDistribution = o.StepNs, o.FirstNs, o.StepDistribution
			*o = m
		}
		return models
	}
	return append(models, m)
}
