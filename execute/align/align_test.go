package align

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// deviceRun is a made-up run of tasks whose true times are known.
type deviceRun struct {
	marks []Mark
	tasks []Span
	truth map[time.Duration]time.Duration // host time by device time
}

// newDeviceRun takes the clock of the device as a function of the host's. The host
// issues a task up to 40 µs before it starts, and sees its end up to 40 µs later; marks
// are 10 µs wide.
func newDeviceRun(rng *rand.Rand, tasks int, clock func(host time.Duration) time.Duration) *deviceRun {
	r := &deviceRun{truth: map[time.Duration]time.Duration{}}
	read := func(host time.Duration) time.Duration {
		d := clock(host)
		r.truth[d] = host
		return d
	}
	late := func() time.Duration { return time.Duration(rng.Int64N(int64(40 * time.Microsecond))) }
	mark := func(host time.Duration) {
		r.marks = append(r.marks, Mark{read(host), host - 5*time.Microsecond, host + 5*time.Microsecond})
	}
	now := time.Millisecond
	mark(now)
	for range tasks {
		start := now + late()
		end := start + 1 + late()
		r.tasks = append(r.tasks, Span{Start: read(start), End: read(end), Issued: start - late(), Seen: end + late()})
		now = end
	}
	mark(now + time.Millisecond)
	return r
}

// align puts the clock of the device on the host's.
func (r *deviceRun) align() *Clock {
	return New(r.marks, func(yield func(*Span) bool) {
		for i := range r.tasks {
			if !yield(&r.tasks[i]) {
				return
			}
		}
	})
}

// TestDeviceClock compares aligned times with the truth, for clocks that differ from the
// host's in offset and speed. Two marks of ±5 µs and bounds of the tasks leave an error of
// no more than 5 µs; what a slope of 1 in place of a drift adds is within that too, as
// the bounds exclude more.
func TestDeviceClock(t *testing.T) {
	for _, c := range []struct {
		name   string
		offset time.Duration
		drift  float64
	}{
		{"the same", 0, 0},
		{"ahead", 17 * time.Hour, 0},
		{"behind", -3 * time.Second, 0},
		{"gaining 2 %", time.Second, 0.02},
		{"losing 1 in 10,000", -time.Minute, -1e-4},
	} {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 23))
			r := newDeviceRun(rng, 1000, func(host time.Duration) time.Duration {
				return c.offset + host + time.Duration(float64(host)*c.drift)
			})
			clock := r.align()
			for device, host := range r.truth {
				if d := clock.At(device) - host; d < -5*time.Microsecond || d > 5*time.Microsecond {
					t.Fatalf("clock %s, seed %d: %v off at %v", c.name, seed, d, host)
				}
			}
			mustKeepBounds(t, clock, r)
		}
	}
}

// A clock that runs at half the speed now and then, and jumps, cannot be on a line: the
// bounds and the order hold all the same.
func TestUnevenDeviceClock(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 29))
		r := newDeviceRun(rng, 500, func(host time.Duration) time.Duration {
			slow := host / (300 * time.Microsecond) // periods, every other one slow
			lost := (slow+1)/2*150*time.Microsecond - slow%2*(300*time.Microsecond-host%(300*time.Microsecond))/2
			return host - lost + 5*(host/(7*time.Millisecond))*time.Millisecond
		})
		mustKeepBounds(t, r.align(), r)
	}
}

func mustKeepBounds(t *testing.T, clock *Clock, r *deviceRun) {
	t.Helper()
	var moments []time.Duration
	for i, s := range r.tasks {
		if start, end := clock.At(s.Start), clock.At(s.End); start < s.Issued || end > s.Seen || end < start {
			t.Fatalf("task %d from %v to %v; it was issued at %v and seen at %v", i, start, end, s.Issued, s.Seen)
		}
		moments = append(moments, s.Start, s.End)
	}
	slices.Sort(moments)
	for i := 1; i < len(moments); i++ {
		if clock.At(moments[i]) < clock.At(moments[i-1]) {
			t.Fatalf("%v of the device comes before %v", moments[i], moments[i-1])
		}
	}
}

// By hand: at 0 the host is between -1 and 1, at 100 between 103 and 105. A line of slope
// 1 would need an offset of at least 103 - 100 = 3 and at most 1. One of slope s has
// offsets from max(-1, 103 - 100s) to min(1, 105 - 100s): the most room, from -1 to 1, at
// s = 1.04, and 52 in the middle of the two marks.
func TestWidestSlope(t *testing.T) {
	c := New([]Mark{{0, -1, 1}, {100, 103, 105}}, func(func(*Span) bool) {})
	if c.slope < 1.04-1e-9 || c.slope > 1.04+1e-9 || c.At(50) != 52 {
		t.Errorf("slope %v, host time %d at 50; want 1.04 and 52", c.slope, c.At(50))
	}
}
