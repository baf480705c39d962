package schedule

import (
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Pace models the starts and durations of tasks, for a world without a clock of its own.
// It adds to the duration of a task:
//
//   - Dispatch. It precedes every kernel.
//
//   - Hand-off. A worker that was idle when its task became ready learns of it from another worker. That takes
//     Device.Handoff more. If it had waited for WakeAfter, it sleeps and takes Wake instead.
//     A worker of a processor learns of the end of a device's task or transfer no sooner than the host has seen it
//     (Device.HandoffToCPU), whether it waited or not. The count of another processor is there at once for a worker
//     that looks later.
//
//   - First step. A task takes the time measured in the first step of a run, if that is more: it
//     touches memory for the first time.
//
//   - Neighbours, for a call measured by itself and not in steps. With b of the n units of its
//     device busy when it starts, a call whose operands are in no cache takes
//
//     cold(b) = alone + (all − alone)·(b − 1)/(n − 1)
//
//     If the part f of its bytes is still in the second-level cache of the same worker, it takes
//     cold(b)·(1 − f·(1 − warm/all)). Bytes are in the cache as long as the worker has touched
//     no more other bytes since than the cache holds (least recently used, [Mattson, Gecsei,
//     Slutz, Traiger, IBM Systems Journal 9(2), 1970]).
//
// A worker waits from the end of its previous task, or from the start of the run. The event that
// it waits for happens on another worker or in another memory, since its own tasks have ended
// when it begins to wait.
type Pace struct {
	p      *Problem
	taskOf func(dag.TaskID) dag.TaskID // the task with costs behind a task of the placed graph
	free   []time.Duration             // by worker: when its task ends or ended
	caches *caches                     // nil where no cost depends on them
	from   *handoffs                   // nil where processors learn of all ends in the same way
}

// NewPace prepares a run of a problem's own tasks.
func NewPace(p *Problem) *Pace {
	return newPace(p, p.Graph.Body(), newHandoffs(p, p.Graph.Links, p.Orders()), func(t dag.TaskID) dag.TaskID { return t })
}

func newPace(p *Problem, body *dag.Body, from *handoffs, taskOf func(dag.TaskID) dag.TaskID) *Pace {
	c := &Pace{p: p, taskOf: taskOf, free: make([]time.Duration, len(p.Platform.Workers)), from: from}
	for _, row := range p.Costs.ByClass {
		for d := range row {
			if row[d].byCaches() {
				c.caches = newCaches(p, body)
				return c
			}
		}
	}
	return c
}

// Begin gives a worker an instance that became ready at some time. It returns when the kernel
// starts and how long it takes.
func (c *Pace) Begin(i dag.Instance, w platform.WorkerID, now, ready time.Duration) (start, takes time.Duration) {
	d := c.p.Platform.Workers[w].Device
	device := &c.p.Platform.Devices[d]
	start = Learns(device, now, ready, c.free[w], c.from.seen(i, device, ready)) + device.Dispatch
	c.from.begin(i, w)
	var second, third float64
	if c.caches != nil {
		second, third = c.caches.touch(i, w)
	}
	cost := c.p.Costs.At(c.p.Costs.Class[c.taskOf(i.Task)], d)
	takes = cost.Duration
	if cost.byCaches() {
		takes = c.takes(cost, second, third, c.busyBeside(w, d, start))
	}
	if i.Step == 0 {
		takes = max(takes, cost.First)
	}
	return start, takes
}

// Learns is the time at which a worker of a device learns of a ready instance. It is free since some time, and is
// given the instance now.
// seen is the time that the host takes to see the event behind the instance, if the worker has to wait for it.
// Else seen is 0. A worker that sleeps meanwhile wakes when the host has seen it; waking adds Wake − Handoff.
func Learns(d *platform.Device, now, ready, free, seen time.Duration) time.Duration {
	asleep := d.Wake > 0 && ready+seen-free >= d.WakeAfter
	switch {
	case seen > 0 && asleep:
		return max(now, ready+seen+max(0, d.Wake-d.Handoff))
	case seen > 0:
		return max(now, ready+seen)
	case ready <= free:
		return now
	case asleep:
		return now + d.Wake
	}
	return now + d.Handoff
}

// End notes when the task that a worker began will end.
func (c *Pace) End(w platform.WorkerID, at time.Duration) {
	c.free[w] = at
	c.from.end(w, at)
}

// takes is the time of a call. second and third are the parts of its bytes in the second- and
// third-level cache, busy is the part of the other units that are busy.
func (c *Pace) takes(cost *Cost, second, third, busy float64) time.Duration {
	at := func(alone, all time.Duration) float64 { return float64(alone) + float64(float64(all-alone)*busy) }
	ns := float64(second*at(cost.Alone.Warm, cost.Busy.Warm)) + float64(third*at(cost.Alone.Near, cost.Busy.Near)) +
		float64((1-second-third)*at(cost.Alone.Far, cost.Busy.Far))
	return max(time.Duration(ns), cost.Least())
}

// busyBeside is the part of the other units of a device that run at a time.
func (c *Pace) busyBeside(w platform.WorkerID, d platform.DeviceID, at time.Duration) float64 {
	n := 0
	for other, free := range c.free {
		if platform.WorkerID(other) != w && c.p.Platform.Workers[other].Device == d && free > at {
			n++
		}
	}
	return float64(n) / float64(max(1, c.p.Platform.Devices[d].Count-1))
}

// caches knows how recently the bytes of every atom were touched.
type caches struct {
	p        *Problem
	body     *dag.Body
	byWorker []int64 // bytes touched so far
	byDevice []int64 // bytes touched by all workers of the device
	last     []touch // by atom, and by version of its storage

	now                    platform.WorkerID // who touches
	step                   int32             // of whose task
	all, inSecond, inThird int64             // of its task's bytes: all, and those found in caches
}

// touch is the last use of an atom: by whom, and the counts right after it.
type touch struct {
	worker             platform.WorkerID // -1: never touched
	byWorker, byDevice int64
}

func newCaches(p *Problem, body *dag.Body) *caches {
	c := &caches{p: p, body: body, byWorker: make([]int64, len(p.Platform.Workers)), byDevice: make([]int64, len(p.Platform.Devices)), last: make([]touch, body.Atoms*int(slices.Max(append([]int32{1}, body.Versions...))))}
	for i := range c.last {
		c.last[i].worker = -1
	}
	return c
}

// touch notes that a worker touches the operands of a task. It returns the parts of their bytes
// that its second level and its device's third level had. A task without operands finds
// everything in the second level.
func (c *caches) touch(i dag.Instance, w platform.WorkerID) (second, third float64) {
	c.now, c.step, c.all, c.inSecond, c.inThird = w, i.Step, 0, 0, 0
	c.body.Each(i.Task, c.find)
	c.byWorker[w] += c.all
	c.byDevice[c.p.Platform.Workers[w].Device] += c.all
	c.body.Each(i.Task, c.leave)
	if c.all == 0 {
		return 1, 0
	}
	return float64(c.inSecond) / float64(c.all), float64(c.inThird) / float64(c.all)
}

// turn is the offset of an atom's number for the version of its storage in the step.
func (c *caches) turn(storage dag.BufferID) int32 {
	if c.body.Versions == nil {
		return 0
	}
	return int32(c.body.Atoms) * (c.step % c.body.Versions[storage])
}

// find counts the bytes of an access that caches have.
func (c *caches) find(storage dag.BufferID, _ dag.Mode, atoms []int32, shift int32) {
	p, w := c.p.Platform, c.now
	shift += c.turn(storage)
	d := p.Workers[w].Device
	for _, atom := range atoms {
		bytes := c.p.Graph.AtomBytes(dag.AtomID(atom))
		c.all += bytes
		switch last := &c.last[atom+shift]; {
		case last.worker == w && c.byWorker[w]-last.byWorker <= p.Devices[d].L2Bytes:
			c.inSecond += bytes
		case last.worker >= 0 && p.Workers[last.worker].Device == d && c.byDevice[d]-last.byDevice <= p.Devices[d].L3Bytes:
			c.inThird += bytes
		}
	}
}

// leave notes that the atoms of an access were touched now.
func (c *caches) leave(storage dag.BufferID, _ dag.Mode, atoms []int32, shift int32) {
	shift += c.turn(storage)
	for _, atom := range atoms {
		c.last[atom+shift] = touch{c.now, c.byWorker[c.now], c.byDevice[c.p.Platform.Workers[c.now].Device]}
	}
}
