package execute

import (
	"fmt"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// boundTask is a task with its data bound: what a worker needs to run it.
type boundTask struct {
	// run is the kernel by device, since the variant may differ; nil where the task cannot run. A
	// host operation has a hook instead.
	run  []func(*calls.Call)
	hook Hook
	call calls.Call // without workspace, which belongs to the worker
	// later are the calls of the steps after the first, up to the one before call is made again: where
	// there are several copies of an operand, steps use them in turn.
	later []calls.Call
}

// inStep returns the binding of a step: first, or a later one.
func inStep[T any](first *T, later []T, step int32) *T {
	if len(later) > 0 {
		if turn := int(step) % (1 + len(later)); turn > 0 {
			return &later[turn-1]
		}
	}
	return first
}

// turns is after how many steps a task works on the same copies of its operands again: the least
// common multiple of their numbers.
func turns(g *dag.Graph, t dag.TaskID) int32 {
	all := int32(1)
	for _, a := range g.Tasks[t].Accesses {
		all = leastCommonMultiple(all, g.Versions(a.Buffer))
	}
	return all
}

func leastCommonMultiple(a, b int32) int32 {
	multiple := a
	for multiple%b != 0 {
		multiple += a
	}
	return multiple
}

// bindTasks binds the tasks that cpu workers run, and returns the greatest workspace of a call.
// bindDevices binds the tasks on other lanes; laneOf is nil where no task has a lane.
func (r *Runner) bindTasks(c *compiledGraph, laneOf []int32) (scratchBytes int64, err error) {
	c.tasks = make([]boundTask, len(c.graph.Tasks))
	for t := range c.tasks {
		if laneOf != nil && !r.isCore(int(laneOf[t])) {
			continue
		}
		bytes, err := r.bind(c, dag.TaskID(t))
		if err != nil {
			return 0, fmt.Errorf("task %q: %w", c.graph.Tasks[t].Name, err)
		}
		scratchBytes = max(scratchBytes, bytes)
	}
	return scratchBytes, nil
}

// isCore reports whether a lane belongs to a cpu worker of this process.
func (r *Runner) isCore(lane int) bool {
	p := r.platform
	return lane < len(p.Workers) && p.Devices[p.Workers[lane].Device].IsProcessor() && r.part.mine(p.MemoryOf(platform.WorkerID(lane)))
}

// originOf is the task of the program's graph that a task of the running graph does.
func (c *compiledGraph) originOf(t dag.TaskID) dag.TaskID {
	if c.placed != nil {
		return c.placed.TaskOf(t)
	}
	return t
}

// costOf is the cost on a device of a task's origin.
func (c *compiledGraph) costOf(t dag.TaskID, d platform.DeviceID) (schedule.Cost, bool) {
	return c.problem.Costs.Of(c.originOf(t), d)
}

// bind binds a task on all devices of cores that may run it. A task without an operation is a
// point in the order of others and does nothing.
func (r *Runner) bind(c *compiledGraph, t dag.TaskID) (scratchBytes int64, err error) {
	task, to := &c.graph.Tasks[t], &c.tasks[t]
	to.run = make([]func(*calls.Call), len(r.platform.Devices))
	if task.Op == "" {
		for d := range to.run {
			if _, ok := c.costOf(t, platform.DeviceID(d)); ok {
				to.run[d] = doNothing
			}
		}
		return 0, nil
	}
	k, spec, err := c.callOf(t)
	if err != nil {
		return 0, err
	}
	to.call = r.callIn(c, t, k.Values(spec), 0)
	for step := int32(1); step < turns(c.graph, t); step++ {
		to.later = append(to.later, r.callIn(c, t, to.call.Params, step))
	}
	if k.Host {
		if to.hook = r.opt.Hooks[task.Op]; to.hook == nil {
			err = fmt.Errorf("%s is done by the caller, and there is no hook for it", task.Op)
		}
		return 0, err
	}
	for d := range to.run {
		if !r.platform.Devices[d].IsProcessor() {
			continue
		}
		v, err := c.variantOf(c.originOf(t), platform.DeviceID(d))
		if err != nil {
			return 0, err
		}
		if v == nil {
			continue
		}
		to.run[d] = v.Run(task.Type)
		if v.WorkspaceBytes != nil {
			scratchBytes = max(scratchBytes, v.WorkspaceBytes(spec))
		}
	}
	return scratchBytes, nil
}

// callIn is the call of a task in a step.
func (r *Runner) callIn(c *compiledGraph, t dag.TaskID, params []float64, step int32) calls.Call {
	call := calls.Call{Params: params}
	for _, a := range c.graph.Tasks[t].Accesses {
		base := unsafe.Pointer(unsafe.SliceData(r.arenas.storage(c.layout, c.graph, a.Buffer, step)))
		call.Args = append(call.Args, calls.Bind(base, &c.graph.Buffers[a.Buffer], a.Box, a.Mode))
	}
	return call
}

// callOf is the kernel call of a task with an operation.
func (c *compiledGraph) callOf(t dag.TaskID) (*kernels.Kernel, *calls.Spec, error) {
	task, spec := &c.graph.Tasks[t], specOf(c.graph, t)
	if err := c.kernels.Validate(spec); err != nil {
		return nil, nil, err
	}
	k, _ := c.kernels.Lookup(task.Op)
	for i, a := range task.Accesses {
		if a.Mode == dag.Reduce {
			return nil, nil, fmt.Errorf("%s: operand %s is reduced into; expand the graph first", task.Op, k.Operands[i].Name)
		}
	}
	return k, spec, nil
}

// specOf describes a task for package kernels.
func specOf(g *dag.Graph, t dag.TaskID) *calls.Spec {
	return calls.SpecOf(&g.Tasks[t], func(id dag.BufferID) dag.Buffer { return g.Buffers[id] })
}

func doNothing(*calls.Call) {}

// variantOf is the variant that runs a task of the origin, of a known operation on a device: the one named by its
// cost, else the operation's default. It is nil where the task cannot run.
func (c *compiledGraph) variantOf(t dag.TaskID, d platform.DeviceID) (*calls.Variant, error) {
	p := c.problem
	cost, ok := p.Costs.Of(t, d)
	if !ok {
		return nil, nil
	}
	task, device := &p.Graph.Tasks[t], &p.Platform.Devices[d]
	k, _ := c.kernels.Lookup(task.Op)
	if cost.Variant == "" {
		return k.DefaultFor(device.Code()), nil
	}
	v, ok := k.VariantFor(device.Code(), task.Type, cost.Variant)
	if !ok || v.RunsOn(calls.GoCode) && !v.RunsHere() {
		return nil, fmt.Errorf("%s has no variant %q on this machine, which the plan, its model for device %q or the options name",
			k.Op, cost.Variant, device.Name)
	}
	return v, nil
}

// Model names the call of a task of a graph on a device. It has no times.
func (r *Runner) Model(graph int, t dag.TaskID, id platform.DeviceID) platform.Model {
	c := r.graphs[graph]
	task, device := &c.origin.Tasks[t], &c.problem.Platform.Devices[id]
	m := platform.Model{Op: task.Op, Type: task.Type.String(), Device: device.Name, Shape: task.Shape, Active: device.Count,
		Flops: task.Flops, MovedBytes: task.MovedBytes}
	if k, ok := c.kernels.Lookup(task.Op); ok && !k.Host {
		// The variant was found once already, when the task was bound.
		if v, err := c.variantOf(t, id); err == nil && v != nil {
			m.Variant = v.Name
			if v.WorkspaceBytes != nil {
				m.WorkspaceBytes = v.WorkspaceBytes(specOf(c.origin, t))
			}
		}
	}
	return m
}
