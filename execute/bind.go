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
	// run is the kernel by device, since the variant may differ; nil where the task cannot run. A
	// host operation has a hook instead.
	run  []func(*kernels.Call)
	hook Hook
	call kernels.Call // without workspace, which belongs to the worker
}

// binder binds the tasks of one graph.
type binder struct {
	*compiledGraph
	platform *platform.Platform
	hooks    map[string]Hook
	arenas   *arenas
	laneOf   []int32 // by task; nil: workers run all tasks

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

// onDevice reports whether a task runs on the lane of a device. bindDevices binds such tasks.
func (b *binder) onDevice(t dag.TaskID) bool {
	if b.laneOf == nil {
		return false
	}
	p, l := b.platform, int(b.laneOf[t])
	return l >= len(p.Workers) || !p.Devices[p.Workers[l].Device].IsProcessor()
}

// costOf is the cost on a device of a task's origin.
func (c *compiledGraph) costOf(t dag.TaskID, d platform.DeviceID) (schedule.Cost, bool) {
	if c.placed != nil {
		t = c.placed.TaskOf(t)
	}
	return c.problem.Costs.Of(t, d)
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
		to.hook = b.hooks[task.Op]
		if to.hook == nil {
			return fmt.Errorf("%s is done by the caller, and there is no hook for it", task.Op)
		}
		return nil
	}
	to.run = make([]func(*kernels.Call), len(b.platform.Devices))
	for d := range to.run {
		if !b.platform.Devices[d].IsProcessor() {
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

// callOf is the kernel call of a task with an operation.
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

// specOf describes a task for package kernels.
func specOf(g *dag.Graph, t dag.TaskID) *kernels.Spec {
	return kernels.SpecOf(&g.Tasks[t], func(id dag.BufferID) dag.Buffer { return g.Buffers[id] })
}

// paramsOf are the parameters of a call, in the order of the kernel.
func paramsOf(k *kernels.Kernel, spec *kernels.Spec) []float64 {
	params := make([]float64, len(k.Params))
	for i, name := range k.Params {
		params[i] = spec.Param(name)
	}
	return params
}

// bindPoint binds a task without an operation. It is a point in the order of others and does
// nothing.
func (b *binder) bindPoint(t dag.TaskID, to *boundTask) error {
	to.run = make([]func(*kernels.Call), len(b.platform.Devices))
	for d := range to.run {
		if _, ok := b.costOf(t, platform.DeviceID(d)); ok {
			to.run[d] = doNothing
		}
	}
	return nil
}

func doNothing(*kernels.Call) {}

// variant is the variant that runs a task on a device: the one named by its cost, else the
// kernel's default. It is nil where the task cannot run.
func (b *binder) variant(k *kernels.Kernel, t dag.TaskID, d platform.DeviceID) (*kernels.Variant, error) {
	c, ok := b.costOf(t, d)
	if !ok {
		return nil, nil
	}
	device := &b.platform.Devices[d]
	if c.Variant == "" {
		return k.DefaultFor(device.Kind), nil
	}
	v, ok := k.VariantFor(device.Kind, b.graph.Tasks[t].Type, c.Variant)
	if !ok || v.Kind == kernels.CPU && !v.RunsHere() {
		return nil, fmt.Errorf("%s has no variant %q on this machine, which the plan, its model for device %q or the options name",
			k.Op, c.Variant, device.Name)
	}
	return v, nil
}
