package execute

import (
	"cmp"
	"errors"
	"fmt"

	"dahl/dag"
	"dahl/execute/host"
	"dahl/platform"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// deviceArenas are the arenas of a device's memory, by layout.Arena.
type deviceArenas [layout.NumArenas]struct {
	at    deviceAddr
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

// backend is what this program knows of devices that one driver opens.
type backend struct {
	// open opens the driver of a device. A driver that reports finished work calls notify.
	open func(o *opener, dev *platform.Device, notify func()) (driver, error)
	// gpus lists the devices that this machine has; nil: they are no part of a machine.
	gpus func() ([]GPU, error)
	// library finds the file of a library of kernels; nil: there are no libraries.
	library func(name string) (file string, err error)
}

// backends are the drivers of devices, by platform.Kind.Driver.
var backends = map[string]backend{
	platform.CUDADriver:     cudaBackend,
	platform.EmulatedDriver: {open: openEmulated},
}

// eachBackend yields the backends in the order of the kinds that they open.
func eachBackend(yield func(platform.Kind, backend) bool) {
	for _, k := range platform.Kinds() {
		if b, ok := backends[k.Driver]; ok && !yield(k, b) {
			return
		}
	}
}

// oneUnit refuses devices of several units before it opens one.
func oneUnit(open func(p *platform.Platform, dev *platform.Device) (driver, error)) func(*opener, *platform.Device, func()) (driver, error) {
	return func(o *opener, dev *platform.Device, _ func()) (driver, error) {
		if dev.Count > 1 {
			return nil, fmt.Errorf("it has %d units at memory %q; each GPU has a memory of its own, write one device for each", dev.Count, o.platform.Memories[dev.Memory].Name)
		}
		return open(o.platform, dev)
	}
}

// opener opens the drivers of a platform's devices, and has what emulated devices share.
type opener struct {
	platform  *platform.Platform
	emulation map[string]Emulation
	space     emulatedSpace
	cores     []int // CPUs that no worker and no stream has
}

func newOpener(p *platform.Platform, emulation map[string]Emulation, workers int) *opener {
	free := host.CPUs()
	return &opener{platform: p, emulation: emulation, cores: free[min(workers, len(free)):]}
}

// open opens the driver of a device. A driver that reports finished work calls notify.
func (o *opener) open(dev *platform.Device, notify func()) (driver, error) {
	return backends[dev.Driver()].open(o, dev, notify)
}

// openDevices starts a device for every memory with lanes of its own.
func (r *Runner) openDevices() error {
	p := r.platform
	for name := range r.opt.Emulation {
		if d, ok := p.DeviceByName(name); !ok || !p.Devices[d].IsEmulated() {
			return fmt.Errorf("there are emulation options for %q, which is no emulated device of platform %q", name, p.Name)
		}
	}
	o := newOpener(p, r.opt.Emulation, r.cores())
	for _, w := range p.Workers {
		dev := &p.Devices[w.Device]
		m := dev.Memory
		if dev.IsProcessor() || r.devices[m] != nil {
			continue
		}
		d := &device{memory: m, name: dev.Name, work: make(chan func()), rebase: rebasePeriod}
		r.devices[m] = d
		r.ended.Go(d.main)
		err := d.do(func() (err error) {
			if d.driver, err = o.open(dev, d.poller.parker.Wake); err != nil {
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
	d.properties = d.driver.properties()
	for a := range d.arenas {
		for _, l := range r.layoutsOf(d.memory) {
			d.arenas[a].bytes = max(d.arenas[a].bytes, l.ArenaBytes[a])
		}
		if d.arenas[a].at, err = d.driver.reserve(d.arenas[a].bytes); err != nil {
			return err
		}
	}
	for _, b := range r.arenas {
		if err := d.driver.pin(host.WholePages(b)); err != nil {
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
	if d.mark, err = d.driver.newEvent(); err != nil {
		return err
	}
	return d.newEvents(d.bases[:])
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
		if err := d.do(func() error { return f(d) }); err != nil {
			return &deviceError{d.name, err}
		}
	}
	return nil
}

// closeDevices ends the work of the devices, gives them back and ends their goroutines.
func (r *Runner) closeDevices() (failed error) {
	for d := range r.eachDevice {
		if d.driver != nil {
			failed = errors.Join(failed, d.do(d.driver.close))
		}
		close(d.work)
	}
	r.devices = nil
	return failed
}

// deviceTask is a task on the lane of a device: a launch, or the parts of a copy. A point in the
// order of others has neither.
type deviceTask struct {
	launch launchID // -1: none
	copies []deviceCopy
	// later is what the steps after the first do, as in boundTask.
	later []deviceTask
}

// at is what a step does.
func (t *deviceTask) at(step int32) *deviceTask { return inStep(t, t.later, step) }

// bindDevices binds the tasks on the lanes of devices, and the moves before and after a run.
func (r *Runner) bindDevices(c *compiledGraph, laneOf []int32) error {
	c.issues = make([]deviceTask, len(c.graph.Tasks))
	c.batches, c.singles = make([]*batches, len(r.lanes)), make([]*batches, len(r.lanes))
	bound := func(moves []*place.Move) (list []*boundMove) {
		for _, m := range moves {
			list = append(list, &boundMove{Move: m, device: cmp.Or(r.devices[m.To], r.devices[m.From]), copies: r.copiesOf(c, m, -1, 0)})
		}
		return list
	}
	c.enter, c.leave = bound(c.placed.Enter), bound(c.placed.Leave)
	return r.onDevices(func(d *device) (err error) {
		b := deviceBinder{Runner: r, compiledGraph: c, device: d, pace: paceOf(r.platform)}
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
	pace   *platform.Platform // the platform that defines how fast an emulated device is
}

// issueOf binds what a lane does of a task in a step.
func (b *deviceBinder) issueOf(t dag.TaskID, lane, step int32) (is deviceTask, err error) {
	if m := b.placed.Move(t); m != nil {
		return deviceTask{launch: -1, copies: b.copiesOf(b.compiledGraph, m, t, step)}, nil
	}
	is.launch, err = b.bindTask(t, lane, step)
	return is, err
}

// bindTask binds a task on a worker's lane in a step; -1 for a point in the order of others.
func (b *deviceBinder) bindTask(t dag.TaskID, lane, step int32) (l launchID, err error) {
	if b.graph.Tasks[t].Op == "" {
		return -1, nil
	}
	if l, err = b.bindCall(t, lane, step); err != nil {
		err = fmt.Errorf("task %q: %w", b.graph.Tasks[t].Name, err)
	}
	return l, err
}

// bindCall binds the kernel call of a task on a worker's lane in a step.
func (b *deviceBinder) bindCall(t dag.TaskID, lane, step int32) (launchID, error) {
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
	call := &deviceCall{spec: spec, variant: v, params: k.Values(spec), least: leastTime(b.pace.AtClocks(clock), worker.Device, k, spec, v, cost), work: b.workspace(lane),
		worker: platform.WorkerID(lane), clock: clock, sleeps: sleeps}
	for _, a := range b.graph.Tasks[t].Accesses {
		call.args = append(call.args, deviceOperand{base: b.device.address(b.compiledGraph, a.Buffer, step), buffer: &b.graph.Buffers[a.Buffer], box: a.Box, mode: a.Mode})
	}
	return b.device.driver.bind(call)
}

// address is where a buffer of the device's memory lies in a step.
func (d *device) address(c *compiledGraph, b dag.BufferID, step int32) deviceAddr {
	l := c.layouts[d.memory]
	return d.arenas[l.Arena[b]].at + deviceAddr(offsetOf(l, c.graph, b, step))
}

// workspace is a lane's share of the scratch arena.
func (b *deviceBinder) workspace(lane int32) deviceAddr {
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
	share := scratch.bytes / workers &^ (deviceAlign - 1)
	return scratch.at + deviceAddr(index*share)
}
