package execute

import (
	"cmp"
	"errors"
	"fmt"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/execute/hardware"
	"dahl/execute/host"
	"dahl/platform"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// deviceArenas are the arenas of a device's memory, by layout.Arena.
type deviceArenas [layout.NumArenas]struct {
	at    driver.Address
	bytes int64
}

// layoutsOf returns the layouts of one memory, by graph.
func (r *Runner) layoutsOf(m platform.MemoryID) []*layout.Layout {
	layouts := make([]*layout.Layout, len(r.graphs))
	for i, c := range r.graphs {
		layouts[i] = c.layouts[m]
	}
	return layouts
}

// openDevices starts a device for every memory with lanes of its own.
func (r *Runner) openDevices() error {
	p := r.platform
	open := hardware.Drivers(p, r.cores())
	for _, w := range p.Workers {
		dev := &p.Devices[w.Device]
		m := dev.Memory
		if dev.IsProcessor() || r.devices[m] != nil || !r.part.mine(m) {
			continue
		}
		d := &device{Thread: driver.NewThread(r.ended.Go), memory: m, name: dev.Name, rebase: rebasePeriod}
		d.poller.parker = &d.Woken
		r.devices[m] = d
		err := d.Do(func() error {
			if err := d.Open(dev, open); err != nil {
				return err
			}
			return r.prepareDevice(d)
		})
		if err != nil {
			return &deviceError{d.name, err}
		}
	}
	return nil
}

// prepareDevice reserves an open device's arenas and makes its lanes.
func (r *Runner) prepareDevice(d *device) (err error) {
	for a := range d.arenas {
		for _, l := range r.layoutsOf(d.memory) {
			d.arenas[a].bytes = max(d.arenas[a].bytes, l.ArenaBytes[a])
		}
		if d.arenas[a].at, err = d.Driver.Reserve(d.arenas[a].bytes); err != nil {
			return err
		}
	}
	for _, b := range r.arenas {
		if err := d.Driver.Pin(host.WholePages(b)); err != nil {
			return err
		}
	}
	d.local = make([]int32, len(r.lanes))
	for id, lane := range r.lanes {
		d.local[id] = -1
		if lane.Memory != d.memory {
			continue
		}
		if err := d.addLane(id, lane); err != nil {
			return err
		}
	}
	return d.NewEvents(d.bases[:])
}

// eachDevice yields the devices in the order of their memories.
func (r *Runner) eachDevice(yield func(*device) bool) {
	for _, d := range r.devices {
		if d != nil && !yield(d) {
			return
		}
	}
}

// onDevices calls f for each device on its thread, up to the first error.
func (r *Runner) onDevices(f func(*device) error) error {
	for d := range r.eachDevice {
		if err := d.Do(func() error { return f(d) }); err != nil {
			return &deviceError{d.name, err}
		}
	}
	return nil
}

// closeDevices ends the work of the devices, gives them back and ends their goroutines.
func (r *Runner) closeDevices() (failed error) {
	for d := range r.eachDevice {
		failed = errors.Join(failed, d.Close())
	}
	r.devices = nil
	return failed
}

// deviceTask is a task on the lane of a device: a launch, or the parts of a copy. A point in the
// order of others has neither.
type deviceTask struct {
	launch driver.LaunchID // -1 means none
	copies []driver.Copy
	// later are the tasks of the steps after the first, as in boundTask.
	later []deviceTask
}

// at returns the task in a step.
func (t *deviceTask) at(step int32) *deviceTask { return inStep(t, t.later, step) }

// bindDevices binds the tasks on the lanes of devices, and the moves before and after a run.
func (r *Runner) bindDevices(c *compiledGraph, laneOf []int32) error {
	c.issues = make([]deviceTask, len(c.graph.Tasks))
	c.batches, c.singles = make([]*batches, len(r.lanes)), make([]*batches, len(r.lanes))
	bound := func(moves []*place.Move) (list []*boundMove) {
		for _, m := range moves {
			copies := r.copiesOf(c, m, -1, 0)
			list = append(list, &boundMove{Move: m, device: cmp.Or(r.devices[m.To], r.devices[m.From]), copies: copies, wired: r.wiredMove(m, copies)})
		}
		return list
	}
	c.enter, c.leave = bound(c.placed.Enter), bound(c.placed.Leave)
	r.bindWires(c)
	if err := r.bindStates(c); err != nil {
		return err
	}
	return r.onDevices(func(d *device) (err error) {
		b := deviceBinder{Runner: r, compiledGraph: c, device: d}
		for t, lane := range laneOf {
			if d.local[lane] < 0 {
				continue
			}
			id, to := dag.TaskID(t), &c.issues[t]
			if *to, err = b.issueOf(id, lane, 0); err != nil {
				return err
			}
			to.later = make([]deviceTask, turns(c.graph, id)-1)
			for i := range to.later {
				if to.later[i], err = b.issueOf(id, lane, int32(i)+1); err != nil {
					return err
				}
			}
		}
		for _, l := range d.lanes {
			c.batches[l.id], c.singles[l.id] = c.ahead.cut(l.id, false), c.replay.cut(l.id, true)
		}
		return d.captureBatches(c)
	})
}

// deviceBinder binds tasks of one graph on the thread of their device.
type deviceBinder struct {
	*Runner
	*compiledGraph
	device *device
}

// issueOf binds a task on a lane in a step.
func (b *deviceBinder) issueOf(t dag.TaskID, lane, step int32) (is deviceTask, err error) {
	if m := b.placed.Move(t); m != nil {
		return deviceTask{launch: -1, copies: b.copiesOf(b.compiledGraph, m, t, step)}, nil
	}
	if b.graph.Tasks[t].Op == "" {
		return deviceTask{launch: -1}, nil
	}
	if is.launch, err = b.bindCall(t, lane, step); err != nil {
		err = fmt.Errorf("task %q: %w", b.graph.Tasks[t].Name, err)
	}
	return is, err
}

// bindCall binds the kernel call of a task on a worker's lane in a step.
func (b *deviceBinder) bindCall(t dag.TaskID, lane, step int32) (driver.LaunchID, error) {
	k, spec, err := b.callOf(t)
	if err != nil {
		return 0, err
	}
	worker := &b.platform.Workers[lane]
	if k.Host {
		return 0, fmt.Errorf("%s is done by the caller on a cpu worker, and the plan puts it on %q", k.Op, worker.Name)
	}
	v, err := b.variantOf(b.originOf(t), worker.Device)
	if err != nil {
		return 0, err
	}
	if v == nil {
		return 0, fmt.Errorf("the plan puts it on worker %q, which has no cost for it or no kernel", worker.Name)
	}
	if err := v.Fits(spec); err != nil {
		return 0, err
	}
	cost, _ := b.costOf(t, worker.Device)
	clock, sleeps := b.problem.StatesOf(b.originOf(t), worker.Device)
	call := &driver.Call{Kernel: k, Spec: spec, Variant: v, Work: b.workspace(lane),
		Device: worker.Device, Cost: cost, Worker: platform.WorkerID(lane), Clock: clock, Sleeps: sleeps}
	for _, a := range b.graph.Tasks[t].Accesses {
		call.Args = append(call.Args, driver.Operand{Base: b.device.address(b.compiledGraph, a.Buffer, step), Buffer: &b.graph.Buffers[a.Buffer], Box: a.Box, Mode: a.Mode})
	}
	return b.device.Driver.Bind(call)
}

// address is where a buffer of the device's memory lies in a step.
func (d *device) address(c *compiledGraph, b dag.BufferID, step int32) driver.Address {
	l := c.layouts[d.memory]
	return d.arenas[l.Arena(b)].at + driver.Address(offsetOf(l, c.graph, b, step))
}

// workspace is a lane's share of the scratch arena.
func (b *deviceBinder) workspace(lane int32) driver.Address {
	workers, index := int64(0), int64(0)
	for _, l := range b.device.lanes {
		if l.id == int(lane) {
			index = workers
		}
		if l.Worker >= 0 {
			workers++
		}
	}
	scratch := b.device.arenas[layout.ScratchArena]
	share := scratch.bytes / workers &^ (driver.Align - 1)
	return scratch.at + driver.Address(index*share)
}
