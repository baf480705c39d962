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
	Variants []string           // nil: all that the kernels have
	MaxTime  time.Duration      // about; 0: 10 s
	Progress func(done, total int, what string)
}

// Calibration is a platform with what was measured.
type Calibration struct {
	Platform *platform.Platform
	// RepeatSpread is how far two measurements of one kernel lie apart: the median
	// over all models of |first half / second half - 1|.
	RepeatSpread float64
}

const (
	defaultMaxTime = 10 * time.Second
	// unsteadySpread is the spread beyond which a model is measured again, up to
	// maxTries times in all; the steadiest one is kept.
	unsteadySpread = 0.05
	maxTries       = 3
)

// Calibrate measures the kernels that the graphs need, each by itself: every
// distinct operation, variant, type and shape, once on one core and once on all
// cores at the same time, beside the memory's bandwidth and the cost of
// dispatching a task. It covers every variant, so it is what chooses among them,
// and what a sweep over shapes needs.
//
// Operands cycle through twice the second-level cache, which is what a step
// leaves in it: neither always hot nor always cold. What precedes a task in a
// real step decides more exactly how warm its operands are; [CalibrateInSitu]
// takes the times from real steps instead and is what a prediction of this graph
// should use, for the variants the runner was compiled with.
func Calibrate(ctx context.Context, graphs []*dag.Graph, opt CalibrateOptions) (*Calibration, error) {
	p := opt.Platform
	if p == nil {
		var err error
		if p, err = Detect(); err != nil {
			return nil, err
		}
	}
	if err := checkWorkers(p); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	c := &calibrator{ctx: ctx, opt: opt, platform: copyOf(p)}
	points, err := pointsOf(graphs, opt.Variants)
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	c.measureMachine()
	if err := c.measurePoints(points); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	if err := c.platform.Complete(); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	return &Calibration{Platform: c.platform, RepeatSpread: medianOf(c.spreads)}, nil
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
				if k.Variants[v].Level.Supported() && (variants == nil || slices.Contains(variants, k.Variants[v].Name)) {
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
}

// activeCounts is how many cores are busy while a kernel is measured.
func (c *calibrator) activeCounts() []int {
	if n := c.platform.Devices[0].Count; n > 1 {
		return []int{1, n}
	}
	return []int{1}
}

func (c *calibrator) measurePoints(points []point) error {
	if len(points) == 0 {
		return nil
	}
	total := cmp.Or(c.opt.MaxTime, defaultMaxTime)
	c.deadline = time.Now().Add(total)
	// Half of the time is for measuring each point once, the rest for preparing
	// operands and for measuring unsteady points again.
	budget := total / time.Duration(2*len(points)*len(c.activeCounts()))
	for i := range points {
		if c.opt.Progress != nil {
			c.opt.Progress(i, len(points), points[i].model.Op+" "+points[i].model.Variant+" "+points[i].model.Shape)
		}
		for _, active := range c.activeCounts() {
			m, err := c.measurePoint(&points[i], active, budget)
			if err != nil {
				return err
			}
			c.put(m)
		}
	}
	if c.opt.Progress != nil {
		c.opt.Progress(len(points), len(points), "")
	}
	return nil
}

// measurePoint measures one call with a number of cores busy with the same one,
// again while it is unsteady.
func (c *calibrator) measurePoint(pt *point, active int, budget time.Duration) (platform.Model, error) {
	params := make([]float64, len(pt.kernel.Params))
	for i, name := range pt.kernel.Params {
		params[i] = pt.spec.Param(name)
	}
	benches := make([]*bench, active)
	times := make([][]time.Duration, active)
	cycle := 2 * c.platform.Devices[0].L2Bytes
	var best sample
	for try := range maxTries {
		onCores(active,
			func(w int) {
				if benches[w] == nil {
					benches[w] = newBench(pt.variant, pt.spec, params, cycle)
				}
			},
			func(w int) { times[w] = benches[w].measure(c.ctx, budget) })
		if err := c.ctx.Err(); err != nil {
			return platform.Model{}, err
		}
		s := summarise(slices.Concat(times...))
		s.spread = summarise(times[0]).spread
		if try == 0 || s.spread < best.spread {
			best = s
		}
		if best.spread <= unsteadySpread || time.Now().After(c.deadline) {
			break
		}
	}
	c.spreads = append(c.spreads, best.spread)
	m := pt.model
	m.Device, m.Active = c.platform.Devices[0].Name, active
	m.MedianNs, m.P95Ns, m.Count = float64(max(best.median, 1)), float64(best.p95), best.count
	return m, nil
}

// put adds a model, or replaces the one of the same call.
func (c *calibrator) put(m platform.Model) { c.platform.Models = PutModel(c.platform.Models, m) }

// PutModel replaces the model of the same call on the same device, clock and
// number of busy units, or appends it. One from real steps gives an existing model
// its StepNs alone: what the call takes by itself is kept.
func PutModel(models []platform.Model, m platform.Model) []platform.Model {
	for i := range models {
		o := &models[i]
		if o.Op == m.Op && o.Variant == m.Variant && o.Type == m.Type && o.Device == m.Device &&
			o.Clock == m.Clock && o.Shape == m.Shape && o.Active == m.Active {
			if m.StepNs > 0 {
				o.StepNs = m.StepNs
			} else {
				*o = m
			}
			return models
		}
	}
	return append(models, m)
}
