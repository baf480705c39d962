package execute

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/platform"
)

// CalibrateOptions says what to measure, and for how long.
type CalibrateOptions struct {
	Platform *platform.Platform // this machine, whose numbers are replaced; nil: Detect
	Variants []string           // nil: all that the kernels have, without the reference where there is another
	MaxTime  time.Duration      // about; 0: 10 s
	// Far adds what a call takes with operands that all caches have lost. It takes
	// longer, since operands of more than the third-level cache have to be prepared.
	Far bool
	// Resume skips what Platform already holds a measured model of, and the machine's
	// own numbers if it holds any model.
	Resume   bool
	Progress func(done, total int, what string)
	// Save gets the platform after each model; an error ends the calibration.
	Save func(*platform.Platform) error
}

// Calibration is a platform with what was measured.
type Calibration struct {
	Platform *platform.Platform
	// RepeatSpread is how far two measurements of one kernel lie apart: the median
	// over all models of |first half / second half - 1|.
	RepeatSpread float64
	// Calls that were measured, those that Resume skipped, and those whose times
	// never settled.
	Measured, Skipped, Unsteady int
}

const (
	defaultMaxTime = 10 * time.Second
	// unsteadySpread is the spread beyond which a call is measured again, up to
	// maxTries times in all; the steadiest try is kept.
	unsteadySpread = 0.05
	maxTries       = 5
	// asideShare is the part of a call's time for which it is measured warm, and far.
	asideShare = 0.2
)

// Calibrate measures the kernels that the graphs need, each by itself: every
// distinct operation, variant, type and shape, once on one core and once on all
// cores at the same time, beside the memory's bandwidth and the cost of
// dispatching a task. It covers every variant, so it is what chooses among them,
// and what a sweep over shapes needs.
//
// Operands cycle through twice the second-level cache, which is what a step
// leaves in it: neither always hot nor always cold. Calls whose operands fit that
// cache are measured with those of the call before, too, and on request with operands
// that all caches have lost: a simulator knows which of them a task meets. What precedes a task in a
// real step decides more exactly how warm its operands are; [CalibrateInSitu]
// takes the times from real steps instead and is what a prediction of this graph
// should use, for the variants the runner was compiled with.
//
// When ctx ends, Calibrate returns what it has measured so far with ctx's error.
func Calibrate(ctx context.Context, graphs []*dag.Graph, opt CalibrateOptions) (*Calibration, error) {
	p := opt.Platform
	if p == nil {
		var err error
		if p, err = Detect(); err != nil {
			return nil, err
		}
	}
	if spread, err := checkWorkers(p); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	} else if spread {
		return nil, fmt.Errorf("calibrate: platform %q has devices other than the cpu; only cpu workers are calibrated, name the devices to use", p.Name)
	}
	c := &calibrator{ctx: ctx, opt: opt, platform: copyOf(p)}
	points, err := pointsOf(graphs, opt.Variants)
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	if !opt.Resume || !slices.ContainsFunc(p.Models, func(m platform.Model) bool { return m.Count > 0 }) {
		if err := c.measureMachine(); err != nil {
			return nil, fmt.Errorf("calibrate: %w", err)
		}
	}
	err = c.measurePoints(points)
	if e := c.platform.Complete(); err == nil {
		err = e
	}
	c.result.Platform, c.result.RepeatSpread = c.platform, medianOf(c.spreads)
	if err != nil {
		return &c.result, fmt.Errorf("calibrate: %w", err)
	}
	return &c.result, nil
}

// copyOf is a platform whose devices, memories and models can be changed.
func copyOf(p *platform.Platform) *platform.Platform {
	q := *p
	q.Memories, q.Devices, q.Models = slices.Clone(p.Memories), slices.Clone(p.Devices), slices.Clone(p.Models)
	return &q
}

func medianOf(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// point is one thing to measure.
type point struct {
	kernel  *kernels.Kernel
	variant *kernels.Variant
	spec    *kernels.Spec
	model   platform.Model
}

// pointsOf lists the distinct calls of the graphs, sorted.
func pointsOf(graphs []*dag.Graph, variants []string) ([]point, error) {
	type identity struct {
		op, key string
		t       dag.DType
	}
	seen := map[identity]bool{}
	var points []point
	for _, g := range graphs {
		for t := range g.Tasks {
			task := &g.Tasks[t]
			spec := kernels.SpecOf(task, func(id dag.BufferID) dag.Buffer { return g.Buffers[id] })
			if err := kernels.Validate(spec); err != nil {
				return nil, fmt.Errorf("graph %q: task %q: %w", g.Name, task.Name, err)
			}
			id := identity{task.Op, spec.Key(), task.Type}
			k, _ := kernels.Lookup(task.Op)
			if seen[id] || k.Host {
				continue
			}
			seen[id] = true
			for v := range k.Variants {
				if k.Variants[v].RunsHere() && wanted(k, v, variants) {
					points = append(points, newPoint(k, &k.Variants[v], spec))
				}
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.model.Op, b.model.Op), cmp.Compare(a.model.Variant, b.model.Variant),
			cmp.Compare(a.model.Type, b.model.Type), cmp.Compare(a.model.Shape, b.model.Shape))
	})
	return points, nil
}

// wanted reports whether a variant is to be measured. The reference is not unless it is
// asked for or there is nothing else: it is there to compare with, and slow.
func wanted(k *kernels.Kernel, variant int, names []string) bool {
	if names != nil {
		return slices.Contains(names, k.Variants[variant].Name)
	}
	return variant > 0 || len(k.Variants) == 1
}

func newPoint(k *kernels.Kernel, v *kernels.Variant, s *kernels.Spec) point {
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
	ctx      context.Context
	opt      CalibrateOptions
	platform *platform.Platform
	deadline time.Time // after which nothing is measured again
	spreads  []float64
	result   Calibration
}

// activeCounts is how many cores are busy while a kernel is measured.
func (c *calibrator) activeCounts() []int {
	if n := c.platform.Devices[0].Count; n > 1 {
		return []int{1, n}
	}
	return []int{1}
}

// call is a point with a number of busy cores.
type call struct {
	*point
	active int
}

// missing lists the calls to be measured.
func (c *calibrator) missing(points []point) []call {
	var calls []call
	for i := range points {
		for _, active := range c.activeCounts() {
			m := points[i].model
			m.Device, m.Active = c.platform.Devices[0].Name, active
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

func (c *calibrator) measurePoints(points []point) error {
	calls := c.missing(points)
	if len(calls) == 0 {
		return nil
	}
	total := cmp.Or(c.opt.MaxTime, defaultMaxTime)
	c.deadline = time.Now().Add(total)
	// Half of the time is for measuring each call once, the rest for preparing
	// operands and for measuring unsteady calls again.
	budget := total / time.Duration(2*len(calls))
	for i, call := range calls {
		if c.opt.Progress != nil {
			c.opt.Progress(i, len(calls), call.model.Op+" "+call.model.Variant+" "+call.model.Shape)
		}
		m, err := c.measureCall(call.point, call.active, budget)
		if err != nil {
			return err
		}
		c.put(m)
		c.result.Measured++
		if m.Unsteady {
			c.result.Unsteady++
		}
		if c.opt.Save != nil {
			if err := c.opt.Save(c.platform); err != nil {
				return err
			}
		}
	}
	if c.opt.Progress != nil {
		c.opt.Progress(len(calls), len(calls), "")
	}
	return nil
}

// measureCall measures one call with a number of cores busy with the same one, again
// while its times do not settle or others use the cores.
func (c *calibrator) measureCall(pt *point, active int, budget time.Duration) (platform.Model, error) {
	params := make([]float64, len(pt.kernel.Params))
	for i, name := range pt.kernel.Params {
		params[i] = pt.spec.Param(name)
	}
	benches := make([]*bench, active)
	times := make([][]time.Duration, active)
	l2, farBytes := c.platform.Devices[0].L2Bytes, c.farBytes(pt.spec)
	var best sample
	steady := false
	for try := range maxTries {
		load := StartLoad()
		onCores(active,
			func(w int) {
				if benches[w] == nil {
					benches[w] = newBench(pt.variant, pt.spec, params, 2*l2, farBytes)
				}
			},
			func(w int) { times[w] = benches[w].measure(c.ctx, budget, benches[w].near) })
		if err := c.ctx.Err(); err != nil {
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
	m.Device, m.Active = c.platform.Devices[0].Name, active
	m.MedianNs, m.P95Ns, m.Count = float64(max(best.median, 1)), float64(best.p95), best.count
	m.Distribution, m.Unsteady = best.distribution, !steady
	aside := func(sets int) float64 {
		onCores(active, func(int) {}, func(w int) {
			times[w] = benches[w].measure(c.ctx, time.Duration(asideShare*float64(budget)), sets)
		})
		return float64(max(1, median(slices.Concat(times...))))
	}
	if pt.spec.Bytes() <= l2 {
		m.WarmNs = aside(1)
	}
	if farBytes > 0 {
		m.FarNs = aside(len(benches[0].calls))
	}
	return m, c.ctx.Err()
}

// farBytes is how many bytes of operands exceed all caches, 0 where that is not to be
// measured: calls too small to reach so many are not found in memory either.
func (c *calibrator) farBytes(s *kernels.Spec) int64 {
	d := &c.platform.Devices[0]
	if !c.opt.Far || d.L3Bytes == 0 || s.Bytes()*maxSets < 3*d.L3Bytes/2 {
		return 0
	}
	return 3 * d.L3Bytes / 2
}

// put adds a model, or replaces the one of the same call.
func (c *calibrator) put(m platform.Model) { c.platform.Models = PutModel(c.platform.Models, m) }

// sameCall reports whether two models are of the same call on the same device, clock
// and number of busy units.
func sameCall(a, b *platform.Model) bool {
	return a.Op == b.Op && a.Variant == b.Variant && a.Type == b.Type && a.Device == b.Device &&
		a.Clock == b.Clock && a.Shape == b.Shape && a.Active == b.Active
}

// PutModel replaces the model of the same call, or appends it. What was measured by
// itself and what was measured in real steps are kept when the other is replaced.
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
