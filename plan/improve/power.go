package improve

import (
	"slices"

	"dahl/platform"
)

// joules returns the joules of the last timed step, for a step of some length.
func (e *evaluator) joules(span int64) float64 {
	seconds := float64(span) / 1e9
	sum := float64(e.rest * seconds)
	base := e.step * int32(e.tasks)
	used := e.used
	clear(used)
	for d := range e.busy {
		e.busy[d].events = e.busy[d].events[:0]
	}
	for t := range int32(e.tasks) {
		own := &e.workers[e.x.worker[t]]
		c := &e.calls[e.slot[own.device]+int32(e.x.clock[t])][e.class[t]]
		sum += c.joules
		used[own.device] = true
		if d := &e.devices[own.device]; c.shared && d.shares {
			e.busy[own.device].add(e.start[base+t], e.end[base+t], span, e.x.clock[t])
		}
	}
	if e.transfers != nil {
		sum += e.transfers.joules
	}
	for i := range e.devices {
		if d := &e.devices[i]; d.MayBeOff && !used[i] && !e.reached(d.Memory) {
			sum += float64(d.OffWatts * seconds)
		} else {
			sum += e.idleJoules(int32(i), span) + e.busy[i].joules(d.first)
		}
	}
	return sum
}

// reached reports whether something moves to a memory or from it.
func (e *evaluator) reached(m platform.MemoryID) bool {
	return e.transfers != nil && !e.platform.IsHost(m) && e.transfers.reached.Has(m)
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

// add notes that a unit is busy. Times are modulo the length of the step, since earlier and later steps then happen at the same time.
func (b *busyUnits) add(from, to, span int64, clock platform.ClockID) {
	if from == to || span <= 0 {
		return
	}
	at := int64(clock) << clockShift
	from = max(from, to-span) // the length of a step that is a mean may be less
	from, to = from%span, from%span+(to-from)
	b.events = append(b.events, from<<timeShift|at|begins)
	if to > span {
		b.events = append(b.events, span<<timeShift|at, 0<<timeShift|at|begins)
		to -= span
	}
	b.events = append(b.events, to<<timeShift|at)
}

// joules shares what the first unit draws at each moment among all busy ones: each draws the part of its own
// clock.
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
