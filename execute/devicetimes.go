package execute

import "time"

const (
	// rebasePeriod is how long times are counted from one event: a device may count in
	// milliseconds in a float32, which tells half a microsecond for 8 s.
	rebasePeriod = time.Second
	// marksAtOnce is how many marks are taken before the first task and after the last.
	marksAtOnce = 5
)

// deviceTimes reads the clock of a device during a run. A device only tells the time
// between two events, so one event, the base, is kept; it is replaced now and then,
// since the device may tell long times less exactly.
type deviceTimes struct {
	device *device
	job    *job

	base, next eventID
	origin     time.Duration // of base, from the first one
	based      time.Duration // when base was issued, on the run's clock
	replacing  bool          // next has been issued
	marks      []clockMark
}

// begin takes the first base and the first marks. The device's streams are idle.
func (c *deviceTimes) begin(d *device, j *job) error {
	*c = deviceTimes{device: d, job: j, base: d.bases[0], next: d.bases[1], marks: make([]clockMark, 0, 2*marksAtOnce)}
	if err := d.driver.record(d.lanes[0].stream, c.base); err != nil {
		return err
	}
	if err := d.await(c.base); err != nil {
		return err
	}
	c.based = j.now()
	return c.mark()
}

// mark takes some marks. The device's streams are idle.
func (c *deviceTimes) mark() error {
	for range marksAtOnce {
		m := clockMark{before: c.job.now()}
		if err := c.device.driver.record(c.device.lanes[0].stream, c.device.mark); err != nil {
			return err
		}
		if err := c.device.await(c.device.mark); err != nil {
			return err
		}
		m.after = c.job.now()
		var err error
		if m.device, err = c.of(c.device.mark); err != nil {
			return err
		}
		c.marks = append(c.marks, m)
	}
	return nil
}

// of is when an event was, from the first base.
func (c *deviceTimes) of(e eventID) (time.Duration, error) {
	t, err := c.device.driver.elapsed(c.base, e)
	return c.origin + t, err
}

// keepNear replaces the base when it is old.
func (c *deviceTimes) keepNear() error {
	if !c.replacing {
		now := c.job.now()
		if now-c.based < c.device.rebase {
			return nil
		}
		c.based, c.replacing = now, true
		return c.device.driver.record(c.device.lanes[0].stream, c.next)
	}
	done, err := c.device.driver.done(c.next)
	if !done || err != nil {
		return err
	}
	if c.origin, err = c.of(c.next); err != nil {
		return err
	}
	c.base, c.next, c.replacing = c.next, c.base, false
	return nil
}

// align is the device's clock on that of the run, from what was noted on its lanes.
func (c *deviceTimes) align(d *device) *alignedClock {
	var spans [][]deviceSpan
	for _, l := range d.lanes {
		spans = append(spans, l.spans)
	}
	return alignClock(c.marks, spans...)
}
