package improve

import (
	"math"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// unrolled is how many steps of a long run are timed at most, to find what one adds.
const unrolled = 8

// evaluator estimates what plans are worth.
type evaluator struct {
	*model
	x         *point
	step      int32
	start     []int64 // by step and task
	end       []int64
	ends      [unrolled]int64     // by step: when all tasks so far have ended
	free      []int64             // by worker: when its last task ended
	domain    []domain            // by worker: the first worker of each stands for all
	repeated  int32               // steps that were as the one before, the last ones timed
	mixed     bool                // some device has tasks at several clocks
	in        []platform.MemoryID // by task
	transfers *transfers          // nil means all is in one memory
	busy      []busyUnits         // by device
	used      []bool              // by device, while joules are summed
}

func newEvaluator(m *model) *evaluator {
	steps := m.steps()
	e := &evaluator{model: m, start: make([]int64, int(steps)*m.tasks), end: make([]int64, int(steps)*m.tasks),
		free: make([]int64, len(m.workers)), domain: make([]domain, len(m.workers)), busy: make([]busyUnits, len(m.devices)), used: make([]bool, len(m.devices)), in: make([]platform.MemoryID, m.tasks)}
	for d := range e.busy {
		e.busy[d].tally, e.busy[d].running = make([]float64, len(m.devices[d].idle)), make([]int, len(m.devices[d].idle))
	}
	if m.data != nil {
		e.transfers = newTransfers(e, int(steps))
	}
	return e
}

func (m *model) steps() int32 {
	if m.steady {
		return unrolled
	}
	return 1
}

// worth estimates what a step takes by a plan, in nanoseconds, and, where the objective counts them, its joules.
func (e *evaluator) worth(x *point) (span, joules float64) {
	e.begin(x)
	steps := e.steps()
	e.repeated = 0
	for e.step = 0; e.step < steps; e.step++ {
		e.ends[e.step] = e.time()
		if e.isPeriodic() {
			break
		}
	}
	e.step = min(e.step, steps-1)
	span = float64(e.ends[e.step])
	if e.steady {
		if e.isStationary() {
			span = float64(e.ends[e.step] - e.ends[e.step-1])
		} else {
			half := e.step / 2
			span = float64(e.ends[e.step]-e.ends[half]) / float64(e.step-half)
		}
	}
	if e.timeOnly {
		return span, 0
	}
	return span, e.joules(int64(math.Round(span)))
}

// begin prepares for a point.
func (e *evaluator) begin(x *point) {
	e.x, e.mixed = x, false
	clear(e.free)
	for t, w := range x.worker {
		e.in[t] = e.workers[w].memory
	}
	if !e.manyClocks {
		return
	}
	for w := range e.domain {
		own := &e.domain[w]
		*own = domain{clock: e.devices[e.workers[w].device].AtClock, changes: own.changes[:0]}
	}
	for t, w := range x.worker {
		own := &e.domain[e.workers[w].domain]
		if own.tasks++; own.tasks == 1 {
			own.last = x.clock[t]
		}
		e.mixed = e.mixed || own.last != x.clock[t]
	}
}

// sortByStart sorts the sequence of the last timed point by starts, and reports whether that changed it.
func (e *evaluator) sortByStart(x *point) (changed bool) {
	start := e.start[e.step*int32(e.tasks):]
	for i, t := range x.sequence {
		k := i
		for ; k > 0 && start[x.sequence[k-1]] > start[t]; k-- {
			x.sequence[k] = x.sequence[k-1]
			x.at[x.sequence[k]] = int32(k)
			changed = true
		}
		x.sequence[k], x.at[t] = t, int32(k)
	}
	return changed
}

// isPeriodic reports whether the steps to come will follow each other as those have that were timed so far: as
// many were as the one before as a task may look back, and one more where the clocks of a step are found
// while the next one begins.
func (e *evaluator) isPeriodic() bool {
	if e.step == 0 || !e.isStationary() {
		e.repeated = 0
		return false
	}
	e.repeated++
	return e.repeated > e.reach || e.repeated == e.reach && !e.mixed
}

// isStationary reports whether everything in a step happened as much later as in the step before.
func (e *evaluator) isStationary() bool {
	n := int32(e.tasks)
	now, before := e.end[e.step*n:(e.step+1)*n], e.end[(e.step-1)*n:e.step*n]
	by := now[0] - before[0]
	for t := range now {
		if now[t]-before[t] != by {
			return false
		}
	}
	return true
}

// time finds when the tasks of a step start and end, in their sequence, and returns when the last ends.
func (e *evaluator) time() (last int64) {
	if e.step > 0 {
		last = e.ends[e.step-1]
	}
	if e.transfers != nil {
		e.transfers.begin()
	}
	for _, t := range e.x.sequence {
		w := e.x.worker[t]
		own := &e.workers[w]
		d := &e.devices[own.device]
		ready, byCPU := e.ready(t, own, d)
		from := max(ready, e.free[w])
		if d.clocks {
			from = e.turn(own.domain, d, e.x.clock[t], from)
		}
		end := e.run(t, int32(w), from, ready, byCPU)
		last = max(last, end)
		if e.transfers != nil {
			e.transfers.send(t, end)
		}
	}
	return last
}

// run lets a worker run a task from a time on, and returns when that ends.
func (e *evaluator) run(t, w int32, from, ready int64, byCPU bool) (end int64) {
	own := &e.workers[w]
	d := &e.devices[own.device]
	seen := d.toCPU
	if byCPU {
		seen = 0
	}
	start := int64(schedule.Learns(d.Device, time.Duration(from), time.Duration(ready), time.Duration(e.free[w]), time.Duration(seen))) + int64(d.Dispatch)
	c := &e.calls[e.slot[own.device]+int32(e.x.clock[t])][e.class[t]]
	end = start + c.takes
	if e.step == 0 {
		end = start + c.first
	}
	i := e.step*int32(e.tasks) + t
	e.start[i], e.end[i], e.free[w] = start, end, end
	if d.clocks {
		e.domain[own.domain].until = max(e.domain[own.domain].until, end)
	}
	return end
}

// ready is when all that a task waits for is there. byCPU: a processor has made it so, or the run has begun.
func (e *evaluator) ready(t int32, own *worker, d *device) (at int64, byCPU bool) {
	byCPU = true
	n := int32(e.tasks)
	base := e.step * n
	for _, w := range e.waits.of[e.waits.start[t]:e.waits.start[t+1]] {
		if w.back > e.step {
			continue
		}
		end := e.end[base-w.back*n+w.task]
		if end < at || end == at && byCPU {
			continue
		}
		at, byCPU = end, d.toCPU == 0 || e.devices[e.workers[e.x.worker[w.task]].device].toCPU > 0
	}
	if e.transfers != nil {
		if arrived := e.transfers.arrived(t); arrived > at {
			at, byCPU = arrived, false
		}
	}
	return at, byCPU
}
