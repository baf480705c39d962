package improve

import "dahl/platform"

// domain is the units whose clock changes together.
type domain struct {
	clock            platform.ClockID
	settledAt, until int64 // when its last change was over; when all its tasks so far have ended
	changes          []changed
	tasks            int              // of a step
	last             platform.ClockID // the clock of one of them
}

type changed struct {
	at    int64
	clock platform.ClockID
}

// turn is when a task at a clock can start that else could at a time.
func (e *evaluator) turn(id int32, d *device, clock platform.ClockID, at int64) int64 {
	own := &e.domain[id]
	at = max(at, own.settledAt)
	if own.clock != clock {
		at = max(at, own.until) + int64(d.Switch.Takes)
		own.clock, own.settledAt = clock, at
		own.changes = append(own.changes, changed{at, clock})
	}
	return at
}

// idleJoules returns the joules of a device's units in a step without their calls.
func (e *evaluator) idleJoules(id int32, span int64) (sum float64) {
	d, seconds := &e.devices[id], float64(span)/1e9
	if !d.clocks {
		return float64(d.count * d.idle[0] * seconds)
	}
	// The step is looked at while the next one begins, if there is one.
	from, to := int64(0), span
	if e.steady {
		to = e.ends[max(0, e.step-1)]
		from = to - span
	}
	units := d.count
	if d.UnitClocks {
		units = 1
	}
	for w := range e.workers {
		own := &e.domain[w]
		if e.workers[w].device != id || int(e.workers[w].domain) != w {
			continue
		}
		if e.steady && !e.mixed && own.tasks > 0 {
			sum += float64(units * d.idle[own.last] * seconds)
			continue
		}
		clock, at := d.AtClock, from
		for _, c := range own.changes {
			if c.at > to {
				break
			}
			if c.at > from {
				sum += float64(units*d.idle[clock]*float64(c.at-at)/1e9) + d.Switch.Joules
				at = c.at
			}
			clock = c.clock
		}
		sum += float64(units * d.idle[clock] * float64(to-at) / 1e9)
	}
	return sum
}
