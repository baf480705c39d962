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
	"dahl/schedule"
)

// InSituOptions says which steps to measure.
type InSituOptions struct {
	Graph  int // of the runner's program
	Warmup int // steps before; 0: 5
	Steps  int // 0: 50
}

const (
	defaultWarmup = 5
	defaultSteps  = 50
)

// CalibrateInSitu runs real steps of a runner's graph and takes from them what
// each of its calls costs: the times are those of tasks among their neighbours,
// with caches, memory traffic and busy cores as they are in this program with
// this number of workers. The runner must be ready to run: parameters, data and
// hooks in place; its parameters are trained on by the steps.
//
// Use it to predict the graph it ran, on as many workers. It measures the
// variants that the runner was compiled with and no others; to choose among
// variants, or for other shapes, use [Calibrate]. The spread is as in
// [Calibration].
func CalibrateInSitu(ctx context.Context, r *Runner, opt InSituOptions) (models []platform.Model, spread float64, err error) {
	if _, err := r.Run(ctx, opt.Graph, cmp.Or(opt.Warmup, defaultWarmup), false); err != nil {
		return nil, 0, fmt.Errorf("calibrate in situ: warm-up: %w", err)
	}
	s, err := r.Run(ctx, opt.Graph, cmp.Or(opt.Steps, defaultSteps), true)
	if err != nil {
		return nil, 0, fmt.Errorf("calibrate in situ: %w", err)
	}
	models, spread = r.modelsOf(opt.Graph, s)
	return models, spread, nil
}

// modelsOf groups the spans of a run by call and takes the quantiles.
func (r *Runner) modelsOf(graph int, s *schedule.Schedule) ([]platform.Model, float64) {
	c := r.graphs[graph]
	type identity struct {
		class  string
		device platform.DeviceID
	}
	first := map[identity]schedule.Span{}
	times := map[identity][]time.Duration{}
	var calls []identity
	for _, sp := range s.Spans {
		task := &c.graph.Tasks[sp.Task]
		id := identity{task.Op + " " + task.Type.String() + " " + task.Shape, r.opt.Platform.Workers[sp.Worker].Device}
		if _, ok := first[id]; !ok {
			first[id] = sp
			calls = append(calls, id)
		}
		times[id] = append(times[id], sp.End-sp.Start)
	}
	slices.SortFunc(calls, func(a, b identity) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.device, b.device))
	})
	var models []platform.Model
	var spreads []float64
	for _, id := range calls {
		sum := summarise(times[id])
		spreads = append(spreads, sum.spread)
		models = append(models, c.modelOf(first[id], &r.opt, sum))
	}
	return models, medianOf(spreads)
}

// modelOf names the call of a span; sum is its times.
func (c *compiledGraph) modelOf(sp schedule.Span, opt *Options, sum sample) platform.Model {
	task := &c.graph.Tasks[sp.Task]
	device := opt.Platform.Workers[sp.Worker].Device
	m := platform.Model{Op: task.Op, Type: task.Type.String(), Device: opt.Platform.Devices[device].Name,
		Shape: task.Shape, Active: len(opt.Platform.Workers),
		MedianNs: float64(max(sum.median, 1)), P95Ns: float64(sum.p95), Count: sum.count,
		StepNs: float64(max(sum.mean, 1)),
		Flops:  task.Flops, MovedBytes: task.MovedBytes}
	k, _ := kernels.Lookup(task.Op)
	if k.Host {
		return m
	}
	b := binder{opt: opt, graph: c.graph, costs: c.costs}
	// The variant has been found once, when the task was bound.
	if v, err := b.variant(k, sp.Task, device); err == nil && v != nil {
		m.Variant = v.Name
		if v.WorkspaceBytes != nil {
			m.WorkspaceBytes = v.WorkspaceBytes(kernels.SpecOf(task, func(id dag.BufferID) dag.Buffer { return c.graph.Buffers[id] }))
		}
	}
	return m
}
