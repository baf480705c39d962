package execute

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// A device's events carry the device's own clock. Only two facts are known of that clock: it never runs
// backwards, and it runs evenly. The host's observations put the events on the clock of the run. A task
// started after the host had issued it, and had ended before the host saw its end. A mark recorded
// between two looks at the host's clock gives both bounds at once; two marks are taken before the first
// task and after the last.
//
// The host's time is then a line over the device's time that keeps all bounds (A. Duda et al.,
// Estimating global time in distributed systems, ICDCS 1987). The drift of a short run is too
// small to be measured, so the slope is 1 if a line of slope 1 keeps the bounds. Otherwise it is
// the slope with the most room between the bounds. The line lies in the middle of that room. A
// run of a minute with bounds of 10 µs shows a drift of a millionth.
//
// If the clock does not run evenly, some bounds stay broken and are then enforced. At a moment d
// of the device, two values hold the line between them: the latest lower bound of the moments
// until d, and the earliest upper bound of the moments from d on. All three never fall with d. So
// the order of the device's events stays as it was. A task never seems to start before its
// predecessors on the host had ended, nor to end after its successors there started. The check of
// a schedule therefore holds by construction and not by luck.

// deviceSpan is one task as the device timed it and as the host saw it.
type deviceSpan struct {
	task, step   int32
	start, end   time.Duration // on the device's clock
	issued, seen time.Duration // on the run's clock: just before the task, and just after
}

// clockBound says that the host's time at a moment of the device is at least, or at most, host.
type clockBound struct{ device, host time.Duration }

// clockMark is a moment of the device between two moments of the host.
type clockMark struct{ device, before, after time.Duration }

// maxDrift is how much the clocks may differ in speed.
const maxDrift = 0.05

// alignedClock gives the host's time as a function of the device's.
type alignedClock struct {
	lower, upper []clockBound // by device time; host times never fall
	origin       time.Duration
	slope        float64
	offset       float64 // of the host, nanoseconds, at origin
}

// alignClock takes the bounds from marks and from the tasks of all lanes of a device.
func alignClock(marks []clockMark, lanes ...[]deviceSpan) *alignedClock {
	c := &alignedClock{slope: 1}
	for _, m := range marks {
		c.lower = append(c.lower, clockBound{m.device, m.before})
		c.upper = append(c.upper, clockBound{m.device, m.after})
	}
	for _, spans := range lanes {
		for i := range spans {
			c.lower = append(c.lower, clockBound{spans[i].start, spans[i].issued})
			c.upper = append(c.upper, clockBound{spans[i].end, spans[i].seen})
		}
	}
	if len(c.lower) == 0 {
		return c
	}
	byDevice := func(a, b clockBound) int { return cmp.Compare(a.device, b.device) }
	slices.SortFunc(c.lower, byDevice)
	slices.SortFunc(c.upper, byDevice)
	for i := 1; i < len(c.lower); i++ {
		c.lower[i].host = max(c.lower[i].host, c.lower[i-1].host)
	}
	for i := len(c.upper) - 2; i >= 0; i-- {
		c.upper[i].host = min(c.upper[i].host, c.upper[i+1].host)
	}
	c.origin = c.lower[0].device
	least, most := c.room(1)
	if most < least {
		c.slope = c.widest(1-maxDrift, 1+maxDrift)
		least, most = c.room(c.slope)
	}
	c.offset = (least + most) / 2
	return c
}

// room is the least and the greatest offset of a line with a slope. The least exceeds the
// greatest where no such line keeps all bounds.
func (c *alignedClock) room(slope float64) (least, most float64) {
	least, most = math.Inf(-1), math.Inf(1)
	for _, b := range c.lower {
		least = max(least, float64(b.host)-slope*float64(b.device-c.origin))
	}
	for _, b := range c.upper {
		most = min(most, float64(b.host)-slope*float64(b.device-c.origin))
	}
	return least, most
}

// widest is the slope with the most room. The room is a minimum of linear functions of the slope
// less a maximum of others. So it is concave, and a search that keeps dividing the interval finds
// its peak.
func (c *alignedClock) widest(from, to float64) float64 {
	width := func(slope float64) float64 {
		least, most := c.room(slope)
		return most - least
	}
	for to-from > 1e-12 {
		third := (to - from) / 3
		if width(from+third) < width(to-third) {
			from += third
		} else {
			to -= third
		}
	}
	return (from + to) / 2
}

// at is the time of the run at a moment of the device.
func (c *alignedClock) at(device time.Duration) time.Duration {
	t := time.Duration(math.Round(c.offset + c.slope*float64(device-c.origin)))
	if k := sort.Search(len(c.lower), func(i int) bool { return c.lower[i].device > device }); k > 0 {
		t = max(t, c.lower[k-1].host)
	}
	if k := sort.Search(len(c.upper), func(i int) bool { return c.upper[i].device >= device }); k < len(c.upper) {
		t = min(t, c.upper[k].host)
	}
	return t
}
