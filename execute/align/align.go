package align

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
	"time"
)

// Span is one task as the device timed it and as the host saw it.
type Span struct {
	Start, End   time.Duration // on the device's clock
	Issued, Seen time.Duration // on the run's clock: just before the task, and just after
}

// Mark is a moment of the device between two moments of the host.
type Mark struct{ Device, Before, After time.Duration }

// bound says that the host's time at a moment of the device is at least, or at most, host.
type bound struct{ device, host time.Duration }

// maxDrift is how much the clocks may differ in speed.
const maxDrift = 0.05

// Clock gives the host's time as a function of the device's.
type Clock struct {
	lower, upper []bound // by device time; host times never fall
	origin       time.Duration
	slope        float64
	offset       float64 // of the host, nanoseconds, at origin
}

// New takes the bounds from marks and from tasks of a device.
func New(marks []Mark, tasks iter.Seq[*Span]) *Clock {
	c := &Clock{slope: 1}
	for _, m := range marks {
		c.lower = append(c.lower, bound{m.Device, m.Before})
		c.upper = append(c.upper, bound{m.Device, m.After})
	}
	for s := range tasks {
		c.lower = append(c.lower, bound{s.Start, s.Issued})
		c.upper = append(c.upper, bound{s.End, s.Seen})
	}
	if len(c.lower) == 0 {
		return c
	}
	byDevice := func(a, b bound) int { return cmp.Compare(a.device, b.device) }
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
func (c *Clock) room(slope float64) (least, most float64) {
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
func (c *Clock) widest(from, to float64) float64 {
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

// At is the time of the run at a moment of the device.
func (c *Clock) At(device time.Duration) time.Duration {
	t := time.Duration(math.Round(c.offset + c.slope*float64(device-c.origin)))
	if k := sort.Search(len(c.lower), func(i int) bool { return c.lower[i].device > device }); k > 0 {
		t = max(t, c.lower[k-1].host)
	}
	if k := sort.Search(len(c.upper), func(i int) bool { return c.upper[i].device >= device }); k < len(c.upper) {
		t = min(t, c.upper[k].host)
	}
	return t
}
