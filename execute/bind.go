package execute

import (
	"fmt"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
)

// boundTask is a task with its data bound: what a worker needs to run it.
type boundTask struct {
	// run is the kernel by device, since the variant may differ; nil where the
	// task cannot run. A host operation has a hook instead.
	run  []func(*kernels.Call)
	hook Hook
	call kernels.Call // without workspace, which is the worker's
}

// binder binds the tasks of one graph.
type binder struct {
	*compiledGraph
	opt    *Options
	arenas *arenas
	laneOf []int32 // by task; nil: all are the workers'

	scratchBytes int64 // the greatest workspace of one call so far
}

func (b *binder) bindAll() ([]boundTask, error) {
	tasks := make([]boundTask, len(b.graph.Tasks))
	for t := range tasks {
		if b.onDevice(dag.TaskID(t)) {
			continue
		}
		if err := b.bind(dag.TaskID(t), &tasks[t]); err != nil {
			return nil, fmt.Errorf("task %q: %w", b.graph.Tasks[t].Name, err)
		}
	}
	return tasks, nil
}

// onDevice reports whether a task runs on the lane of a device, where bindDevices binds
// it.
func (b *binder) onDevice(t dag.TaskID) bool {
	if b.laneOf == nil {
		return false
	}
	p, l := b.opt.Platform, int(b.laneOf[t])
	return l >= len(p.Workers) || p.Devices[p.Workers[l].Device].Kind != "cpu"
}

// costOf is what a task costs on a device: what its origin does.
func (c *compiledGraph) costOf(t dag.TaskID, d platform.DeviceID) (schedule.Cost, bool) {
	if c.placed != nil {
		t = c.placed.TaskOf[t]
	}
	return c.costs.Of(t, d)
}

func (b *binder) bind(t dag.TaskID, to *boundTask) error {
	task := &b.graph.Tasks[t]
	if task.Op == "" {
		return b.bindPoint(t, to)
	}
	k, spec, err := callOf(b.graph, t)
	if err != nil {
		return err
	}
	to.call.Params = paramsOf(k, spec)
	to.call.Args = make([]kernels.Arg, len(task.Accesses))
	for i, a := range task.Accesses {
		base := unsafe.Pointer(unsafe.SliceData(b.arenas.storage(b.layout, b.graph, a.Buffer)))
		to.call.Args[i] = kernels.Bind(base, &b.graph.Buffers[a.Buffer], a.Box, a.Mode)
	}
	if k.Host {
		to.hook = b.opt.Hooks[task.Op]
		if to.hook == nil {
			return fmt.Errorf("%s is done by the caller, and there is no hook for it", task.Op)
		}
		return nil
	}
	to.run = make([]func(*kernels.Call), len(b.opt.Platform.Devices))
	for d := range to.run {
		if b.opt.Platform.Devices[d].Kind != "cpu" {
			continue
		}
		v, err := b.variant(k, t, platform.DeviceID(d))
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		to.run[d] = v.Run(task.Type)
		if v.WorkspaceBytes != nil {
			b.scratchBytes = max(b.scratchBytes, v.WorkspaceBytes(spec))
		}
	}
	return nil
}

// callOf is the call that a task with an operation is.
func callOf(g *dag.Graph, t dag.TaskID) (*kernels.Kernel, *kernels.Spec, error) {
	task, spec := &g.Tasks[t], specOf(g, t)
	if err := kernels.Validate(spec); err != nil {
		return nil, nil, err
	}
	k, _ := operation(task.Op)
	for i, a := range task.Accesses {
		if a.Mode == dag.Reduce {
			return nil, nil, fmt.Errorf("%s: operand %s is reduced into; expand the graph first", task.Op, k.Operands[i].Name)
		}
	}
	return k, spec, nil
}

// specOf is what kernels are told of a task.
func specOf(g *dag.Graph, t dag.TaskID) *kernels.Spec {
	return kernels.SpecOf(&g.Tasks[t], func(id dag.BufferID) dag.Buffer { return g.Buffers[id] })
}

// paramsOf are the parameters of a call in the order of the kernel's.
func paramsOf(k *kernels.Kernel, spec *kernels.Spec) []float64 {
	params := make([]float64, len(k.Params))
	for i, name := range k.Params {
		params[i] = spec.Param(name)
	}
	return params
}

// bindPoint binds a task without an operation: a point in the order of others, at
// which nothing is done.
func (b *binder) bindPoint(t dag.TaskID, to *boundTask) error {
	to.run = make([]func(*kernels.Call), len(b.opt.Platform.Devices))
	for d := range to.run {
		if _, ok := b.costOf(t, platform.DeviceID(d)); ok {
			to.run[d] = doNothing
		}
	}
	return nil
}

func doNothing(*kernels.Call) {}

// variant chooses what runs a task on a device: the variant pinned by the
// options if the operation has it, else the costs', else the kernel's default.
// It is nil where the costs say that the task cannot run there.
func (b *binder) variant(k *kernels.Kernel, t dag.TaskID, d platform.DeviceID) (*kernels.Variant, error) {
	c, ok := b.costOf(t, d)
	if !ok {
		return nil, nil
	}
	device, real := &b.opt.Platform.Devices[d], b.graph.Tasks[t].Type
	if v, ok := k.VariantFor(device.Kind, real, b.opt.Variant); ok {
		if v.Kind == kernels.CPU && !v.RunsHere() {
			return nil, fmt.Errorf("this machine cannot run the %s variant of %s", v.Name, k.Op)
		}
		return v, nil
	}
	if c.Variant == "" {
		return k.DefaultFor(device.Kind), nil
	}
	v, ok := k.VariantFor(device.Kind, real, c.Variant)
	if !ok || v.Kind == kernels.CPU && !v.RunsHere() {
		return nil, fmt.Errorf("%s has no variant %q on this machine, which the plan or its model for device %q names",
			k.Op, c.Variant, device.Name)
	}
	return v, nil
}

// NameAsked writes the variant asked for by name into costs that leave it open, where
// the operation has it for the device, so that plans and manifests record it.
func NameAsked(g *dag.Graph, p *platform.Platform, c *schedule.Costs, asked string) {
	nameVariants(g, p, c, func(k *kernels.Kernel, device string, t dag.DType) *kernels.Variant {
		v, _ := k.VariantFor(device, t, asked)
		return v
	})
}

// NameVariants writes into costs that leave the variant open what the executor runs
// there on this machine, so that plans and manifests record it: the variant asked for by
// name where the operation has it for the device, else its default. It is for what will
// be executed here; a prediction does not depend on who makes it.
func NameVariants(g *dag.Graph, p *platform.Platform, c *schedule.Costs, asked string) {
	nameVariants(g, p, c, func(k *kernels.Kernel, device string, t dag.DType) *kernels.Variant {
		if v, ok := k.VariantFor(device, t, asked); ok {
			return v
		}
		return k.DefaultFor(device)
	})
}

// nameVariants names what choose gives for a kind of device; nil: nothing.
func nameVariants(g *dag.Graph, p *platform.Platform, c *schedule.Costs, choose func(k *kernels.Kernel, device string, t dag.DType) *kernels.Variant) {
	for t := range g.Tasks {
		k, ok := operation(g.Tasks[t].Op)
		if !ok || k.Host {
			continue
		}
		for d := range p.Devices {
			cost := &c.ByClass[c.Class[t]][d]
			if cost.Duration < 0 || cost.Variant != "" {
				continue
			}
			if v := choose(k, p.Devices[d].Kind, g.Tasks[t].Type); v != nil {
				cost.Variant = v.Name
			}
		}
	}
}

// ScratchBytes returns, for each graph of a program, the scratch arena that a
// number of CPU workers need: one piece each, as large as the greatest workspace of
// the variants that run: the one asked for by name ([Options].Variant) where the operation
// has it, else those that the costs choose. Where they leave it open, and without costs
// (nil, or a nil entry), it is the greatest of all variants, so that the size does not depend
// on the machine that asks. Tasks without a kernel need none.
func ScratchBytes(prog *dag.Program, costs []*schedule.Costs, asked string, workers int) []int64 {
	total := make([]int64, len(prog.Graphs))
	for i, g := range prog.Graphs {
		total[i] = roundUp(greatestScratch(g, entry(costs, i), asked, "cpu")) * int64(workers)
	}
	return total
}

// ScratchByMemory is ScratchBytes on several memories: for each graph, what the scratch
// arena of each memory needs, a piece for each worker that computes there.
func ScratchByMemory(prog *dag.Program, p *platform.Platform, costs []*schedule.Costs, asked string) [][]int64 {
	workers := make([]int64, len(p.Memories))
	kinds := make([]string, len(p.Memories))
	for _, w := range p.Workers {
		d := &p.Devices[w.Device]
		workers[d.Memory]++
		kinds[d.Memory] = d.Kind
	}
	total := make([][]int64, len(prog.Graphs))
	for i, g := range prog.Graphs {
		total[i] = make([]int64, len(p.Memories))
		for m := range p.Memories {
			align := int64(alignBytes)
			if kinds[m] != "cpu" {
				align = deviceAlign
			}
			total[i][m] = roundUpTo(greatestScratch(g, entry(costs, i), asked, kinds[m]), align) * workers[m]
		}
	}
	return total
}

// greatestScratch is the greatest workspace of a call of the graph on a kind of devices.
func greatestScratch(g *dag.Graph, costs *schedule.Costs, asked, kind string) (bytes int64) {
	for t := range g.Tasks {
		bytes = max(bytes, taskScratch(g, dag.TaskID(t), costs, asked, kind))
	}
	return bytes
}

// taskScratch is the greatest workspace of the variants that may run a task on a kind of
// devices.
func taskScratch(g *dag.Graph, t dag.TaskID, costs *schedule.Costs, asked, kind string) (bytes int64) {
	task := &g.Tasks[t]
	k, ok := operation(task.Op)
	if !ok {
		return 0
	}
	only, pinned := k.VariantFor(kind, task.Type, asked)
	var spec *kernels.Spec
	for i := range k.Variants {
		v := &k.Variants[i]
		may := v == only || !pinned && v.RunsOn(kind) && mayChoose(costs, t, v)
		if !may || v.WorkspaceBytes == nil {
			continue
		}
		if spec == nil {
			spec = specOf(g, t)
			if kernels.Validate(spec) != nil {
				return 0 // New says what is wrong
			}
		}
		if v.Fits(spec) != nil {
			continue // likewise
		}
		bytes = max(bytes, v.WorkspaceBytes(spec))
	}
	return bytes
}

// mayChoose reports whether the costs choose a variant for a task on some device. Where they
// leave it open, it is none of a library.
func mayChoose(costs *schedule.Costs, t dag.TaskID, v *kernels.Variant) bool {
	if costs == nil {
		return true
	}
	for _, c := range costs.ByClass[costs.Class[t]] {
		if c.Duration >= 0 && (c.Variant == v.Name || c.Variant == "" && v.Library == "") {
			return true
		}
	}
	return false
}
