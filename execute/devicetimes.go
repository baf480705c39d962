package execute

import (
	"cmp"
	"time"

	"dahl/execute/align"
	"dahl/execute/driver"
)

const (
	// rebasePeriod is how long times count from one event. A device may count milliseconds in a
	// float32, which resolves half a microsecond for 8 s.
	rebasePeriod = time.Second
	// marksAtOnce is how many marks are taken before the first task and after the last.
	marksAtOnce = 5
)

// deviceTimes reads the clock of a device during a run. A device only tells the time between two
// events, so one event, the base, is kept. It is replaced from time to time, since a device may
// tell long times less exactly.
//
// Times from one base are rounded alike, so they never contradict the order of the events. Times
// from two bases could, by as much as the rounding. So an event counts from the last base before
// it, even if it is read later. An event before a base never gets a time after it, nor one after
// a base a time before it.
type deviceTimes struct {
	device *device
	job    *job

	base, next     driver.EventID // next is the previous base, until it is issued again
	origin, before time.Duration  // of base and of the previous base, counted from the first one
	based          time.Duration  // when base was issued, on the run's clock
	replaced       bool           // there was a base before
	replacing      bool           // next has been issued
	marks          []align.Mark
}

// begin takes the first base and the first marks. The device's streams are idle.
func (c *deviceTimes) begin(d *device, j *job) error {
	*c = deviceTimes{device: d, job: j, base: d.bases[0], next: d.bases[1], marks: make([]align.Mark, 0, 2*marksAtOnce)}
	if err := cmp.Or(d.Driver.Record(d.lanes[0].stream, c.base), d.Await(c.base)); err != nil {
		return err
	}
	c.based = j.now()
	return c.mark()
}

// mark takes some marks. The device's streams are idle.
func (c *deviceTimes) mark() error {
	for range marksAtOnce {
		m := align.Mark{Before: c.job.now()}
		if err := c.device.Finish(c.device.lanes[0].stream); err != nil {
			return err
		}
		m.After = c.job.now()
		var err error
		if m.Device, err = c.timeOf(c.device.Mark); err != nil {
			return err
		}
		c.marks = append(c.marks, m)
	}
	return nil
}

// timeOf is the time of an event, counted from the first base.
func (c *deviceTimes) timeOf(e driver.EventID) (time.Duration, error) {
	if c.replacing { // if the event came after next, next is done
		if err := c.replace(); err != nil {
			return 0, err
		}
	}
	t, err := c.device.Driver.Elapsed(c.base, e)
	if err != nil || t >= 0 || !c.replaced || c.replacing {
		return c.origin + t, err
	}
	t, err = c.device.Driver.Elapsed(c.next, e)
	return c.before + t, err
}

// keepNear replaces the base when it is old.
func (c *deviceTimes) keepNear() error {
	if c.replacing {
		return c.replace()
	}
	now := c.job.now()
	if now-c.based < c.device.rebase {
		return nil
	}
	c.based, c.replacing = now, true
	return c.device.Driver.Record(c.device.lanes[0].stream, c.next)
}

// replace makes next the base if it is done.
func (c *deviceTimes) replace() error {
	done, err := c.device.Driver.Done(c.next)
	if !done || err != nil {
		return err
	}
	t, err := c.device.Driver.Elapsed(c.base, c.next)
	if err != nil {
		return err
	}
	c.before, c.origin = c.origin, c.origin+t
	c.base, c.next, c.replaced, c.replacing = c.next, c.base, true, false
	return nil
}

// align puts the device's clock on the clock of the run, by the notes on its lanes.
func (c *deviceTimes) align(d *device) *align.Clock {
	return align.New(c.marks, func(yield func(*align.Span) bool) {
		for _, l := range d.lanes {
			for i := range l.spans {
				if !yield(&l.spans[i].Span) {
					return
				}
			}
		}
	})
}

// deviceSpan is one task of a step as the device timed it.
type deviceSpan struct {
	align.Span
	task, step int32
}
