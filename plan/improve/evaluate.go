package improve

import (
	"math"
	"slices"

	"dahl/platform"
)

// unrolled is how many steps of a long run are timed at most, to find what one adds.
const unrolled = 8

// evaluator estimates what plans are worth.
type evaluator struct {
	*model
	x      *point
	step   int32
	start  []int64 // by step and task
	end    []int64
	free   []int64 // by worker: when its last task ended
	domain []domain
	copies *copies // nil: all is in one memory
	period int64   // of a steady step; of a lone step its makespan
	busy   []busyUnits
}

// domain is the units whose clock changes together.
type domain struct {
	clock          int32
	settled, until int64   // when its last change was over; when all its tasks so far have ended
	changed        int64   // the begin of the clock in force
	first          int64   // in this step: the begin of the first task, -1 if there was none
	joules         float64 // in this step, of an idle unit at clocks before the one in force
	switchJ        float64 // in this step
}

func newEvaluator(m *model) *evaluator {
	steps := 1
	if m.steady {
		steps = unrolled
	}
	e := &evaluator{model: m, start: make([]int64, steps*m.tasks), end: make([]int64, steps*m.tasks), free: make([]int64, len(m.workers)), domain: make([]domain, len(m.workers)), busy: make([]busyUnits, len(m.devices))}
	for d := range e.busy {
		e.busy[d].tally = make([]float64, len(m.devices[d].idle))
		e.busy[d].running = make([]int, len(m.devices[d].idle))
	}
	if m.spread != nil {
		e.copies = newCopies(e, steps)
	}
	return e
}

// worth estimates what a step takes by a plan, in nanoseconds, and draws.
func (e *evaluator) worth(x *point) (span, joules float64) {
	e.x = x
	clear(e.free)
	for w := range e.domain {
		clock := e.devices[e.workers[w].device].atClock
		e.domain[w] = domain{clock: clock}
	}
	steps := int32(1)
	if e.steady {
		steps = unrolled
	}
	last, slope := int64(0), 0.0
	ends := [unrolled]int64{}
	for e.step = 0; e.step < steps; e.step++ {
		ends[e.step] = e.time()
		last = ends[e.step]
		if e.step > 0 && e.settled() {
			slope = float64(last - ends[e.step-1])
			break
		}
	}
	if !e.steady {
		slope = float64(last)
	}
	if e.step == steps {
		e.step--
		if e.steady {
			slope = float64(last-ends[steps/2-1]) / float64(steps-steps/2)
		}
	}
	return slope, e.joules(int64(math.Round(slope)))
}

// sortByStart puts the sequence of the point that was timed last into the order in which its tasks start.
func (e *evaluator) sortByStart(x *point) {
	start := e.start[e.step*int32(e.tasks):]
	for i, t := range x.sequence {
		k := i
		for ; k > 0 && start[x.sequence[k-1]] > start[t]; k-- {
			x.sequence[k] = x.sequence[k-1]
			x.at[x.sequence[k]] = int32(k)
		}
		x.sequence[k], x.at[t] = t, int32(k)
	}
}

// settled reports whether everything in a step happened as much later as in the step before.
func (e *evaluator) settled() bool {
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
	base := e.step * int32(e.tasks)
	for w := range e.domain {
		e.domain[w].first, e.domain[w].joules, e.domain[w].switchJ = -1, 0, 0
	}
	if e.copies != nil {
		e.copies.begin()
	}
	for _, t := range e.x.sequence {
		w := e.x.worker[t]
		own := &e.workers[w]
		d := &e.devices[own.device]
		ready, byCPU := e.ready(t, own, d)
		start := max(ready, e.free[w])
		clock := e.x.clock[t]
		if d.clocks {
			start = e.turn(own.domain, d, clock, start)
		}
		start = learns(d, start, ready, e.free[w], byCPU) + d.dispatch
		c := &e.calls[e.slot[own.device]+clock][e.class[t]]
		takes := c.takes
		if e.step == 0 {
			takes = c.first
		}
		end := start + takes
		e.start[base+t], e.end[base+t] = start, end
		e.free[w] = end
		last = max(last, end)
		if d.clocks {
			e.domain[own.domain].until = max(e.domain[own.domain].until, end)
		}
		if e.copies != nil {
			e.copies.send(t, end)
		}
	}
	return last
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
	if e.copies != nil {
		if arrived := e.copies.arrived(t, own.memory); arrived > at {
			at, byCPU = arrived, false
		}
	}
	return at, byCPU
}

// learns is when a worker begins with a task for which all else is ready at a time.
func learns(d *device, now, ready, free int64, byCPU bool) int64 {
	waited := ready - free
	switch {
	case d.toCPU > 0 && !byCPU:
		seen := ready + d.toCPU
		if d.wake > 0 && seen-free >= d.wakeAfter {
			seen += max(0, d.wake-d.handoff)
		}
		return max(now, seen)
	case waited <= 0:
		return now
	case d.wake > 0 && waited >= d.wakeAfter:
		return now + d.wake
	}
	return now + d.handoff
}

// turn brings a domain to a clock, and returns when a task that could start at a time can start at it.
func (e *evaluator) turn(id int32, d *device, clock int32, at int64) int64 {
	own := &e.domain[id]
	at = max(at, own.settled)
	if own.clock != clock {
		at = max(at, own.until)
		e.mark(own, d, at+d.switchNs)
		own.clock, own.settled = clock, at+d.switchNs
		own.switchJ += d.switchJ
		at = own.settled
	} else if own.first < 0 {
		e.mark(own, d, at)
	}
	return at
}

// mark adds up what idle units drew until a time, from the first task of the step on.
func (e *evaluator) mark(own *domain, d *device, at int64) {
	if own.first < 0 {
		own.first = at
	} else {
		own.joules += float64(d.idle[own.clock] * float64(at-own.changed) / 1e9)
	}
	own.changed = at
}

// joules is what the step drew that was timed last, where it takes so long.
func (e *evaluator) joules(span int64) float64 {
	seconds := float64(span) / 1e9
	sum := float64(e.rest * seconds)
	base := e.step * int32(e.tasks)
	used := uint64(0)
	for d := range e.busy {
		e.busy[d].events = e.busy[d].events[:0]
	}
	for t := range int32(e.tasks) {
		own := &e.workers[e.x.worker[t]]
		c := &e.calls[e.slot[own.device]+e.x.clock[t]][e.class[t]]
		sum += c.joules
		used |= 1 << own.device
		if d := &e.devices[own.device]; c.shared && d.shares {
			e.busy[own.device].add(e.start[base+t], e.end[base+t], span, e.x.clock[t])
		}
	}
	if e.copies != nil {
		sum += e.copies.joules
	}
	for i := range e.devices {
		if d := &e.devices[i]; d.mayBeOff && used&(1<<i) == 0 && !e.reached(d.memory) {
			sum += float64(d.offWatts * seconds)
		} else {
			sum += float64(e.idleJoules(int32(i), seconds)) + e.busy[i].joules(d.first)
		}
	}
	return sum
}

// reached reports whether something moves to a memory or from it.
func (e *evaluator) reached(m platform.MemoryID) bool {
	return e.copies != nil && m != e.platform.HostMemory() && e.copies.reached&(1<<m) != 0
}

// idleJoules is what the units of a device draw in a step beside what their calls add.
func (e *evaluator) idleJoules(id int32, seconds float64) (sum float64) {
	d := &e.devices[id]
	if !d.clocks {
		return float64(d.count * d.idle[0] * seconds)
	}
	for w := range e.workers {
		own := &e.domain[w]
		if e.workers[w].device != id || int(e.workers[w].domain) != w {
			continue
		}
		units := 1.0
		if !e.platform.Devices[id].UnitClocks {
			units = d.count
		}
		if own.first < 0 {
			sum += float64(units * d.idle[own.clock] * seconds)
			continue
		}
		// From the last change to the first task of the next step, or of the run and to its end.
		left := seconds - float64(own.changed-own.first)/1e9
		watts := d.idle[own.clock]
		if !e.steady {
			left -= float64(own.first) / 1e9
			sum += float64(units * d.idle[d.atClock] * float64(own.first) / 1e9)
		}
		sum += float64(units*(own.joules+float64(watts*left))) + own.switchJ
	}
	return sum
}

// busyUnits adds up what the first busy unit of a device draws beyond the others.
type busyUnits struct {
	events  []int64 // times, each with a clock and whether a unit begins
	running []int   // by clock: units
	tally   []float64
}

const (
	begins     = 1
	clockShift = 1
	timeShift  = 9
)

// add notes that a unit is busy. Times are those of the step modulo its length, since what the steps before and after
// do then happens at the same time.
func (b *busyUnits) add(from, to, span int64, clock int32) {
	if from == to || span <= 0 {
		return
	}
	at := int64(clock) << clockShift
	if from < to-span {
		from = to - span // never: a unit is busy for no more than a step
	}
	from, to = from%span, from%span+(to-from)
	b.events = append(b.events, from<<timeShift|at|begins)
	if to > span {
		b.events = append(b.events, span<<timeShift|at, 0<<timeShift|at|begins)
		to -= span
	}
	b.events = append(b.events, to<<timeShift|at)
}

// joules shares what the first unit draws at each moment among all busy ones: each draws the part of its own clock.
func (b *busyUnits) joules(first []float64) (sum float64) {
	slices.Sort(b.events)
	clear(b.tally)
	busy, now := 0, int64(0)
	for _, event := range b.events {
		at, clock := event>>timeShift, int(event>>clockShift)&(1<<(timeShift-clockShift)-1)
		if at > now && busy > 0 {
			for c, n := range b.running {
				if n > 0 {
					b.tally[c] += float64(float64(at-now) * float64(n) / float64(busy))
				}
			}
		}
		now = at
		if event&begins != 0 {
			busy, b.running[clock] = busy+1, b.running[clock]+1
		} else {
			busy, b.running[clock] = busy-1, b.running[clock]-1
		}
	}
	for c, ns := range b.tally {
		sum += float64(first[c] * ns / 1e9)
	}
	return sum
}
