package execute

import (
	"math/rand/v2"
	"testing"
	"time"

	"dahl/execute/driver"
	"dahl/must"
)

// roundingDriver tells the time between events as CUDA does, in milliseconds in a float32,
// and its clock is made up. Everything that is issued is done at once.
type roundingDriver struct {
	driver.Driver
	events []time.Duration
	now    time.Duration
}

func (d *roundingDriver) NewEvent() (driver.EventID, error) {
	d.events = append(d.events, 0)
	return driver.EventID(len(d.events) - 1), nil
}

func (d *roundingDriver) Record(_ driver.StreamID, e driver.EventID) error {
	d.events[e] = d.now
	return nil
}

func (d *roundingDriver) Done(e driver.EventID) (bool, error) { return d.events[e] <= d.now, nil }

func (d *roundingDriver) Elapsed(from, to driver.EventID) (time.Duration, error) {
	ms := float32(float64(d.events[to]-d.events[from]) / float64(time.Millisecond))
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// TestDeviceTimesKeepTheOrder: a copy starts up to 20 ns after the one before it has ended,
// for 400 s of copies whose events are looked at some time later, in any order, while
// bases are replaced every second. The times as told never fall, and are the true ones to
// half a microsecond for each base so far.
func TestDeviceTimesKeepTheOrder(t *testing.T) {
	const pending = 7
	rng := rand.New(rand.NewPCG(5, 11))
	d := &roundingDriver{}
	dev := &device{Thread: &driver.Thread{Driver: d}, lanes: []*deviceLane{{}}, rebase: rebasePeriod}
	for range 3 {
		e, _ := d.NewEvent()
		if dev.Mark = e; e < 2 {
			dev.bases[e] = e
		}
	}
	c := &deviceTimes{device: dev, job: &job{base: time.Now()}, base: dev.bases[0], next: dev.bases[1]}
	type look struct {
		event       driver.EventID
		truth, told time.Duration
	}
	looks := make([]look, 80_000)

	for i := range looks {
		if i%pending == 0 && i > 0 {
			for _, k := range rng.Perm(pending) { // those of the group before, in any order
				l := &looks[i-pending+k]
				l.told = must.Get(c.timeOf(l.event))(t)
			}
		}
		if d.now += time.Duration(rng.Int64N(20)); i%2 == 0 {
			d.now += time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
		}
		if i%pending == 3 {
			c.job.base = time.Now().Add(-d.now) // the host's clock goes along
			must.Do(t, c.keepNear())
		}
		if i < pending {
			looks[i].event, _ = d.NewEvent()
		} else {
			looks[i].event = looks[i-pending].event
		}
		looks[i].truth = d.now
		must.Do(t, d.Record(0, looks[i].event))
	}
	if c.origin < 300*time.Second {
		t.Fatalf("the base is of %v: the test tests little", c.origin)
	}
	var latest time.Duration
	for i, l := range looks[:len(looks)-len(looks)%pending-pending] {
		if l.told < latest {
			t.Fatalf("event %d was at %v and is said to have been at %v, before one that was not after it, at %v", i, l.truth, l.told, latest)
		}
		latest = l.told
		if bases := 1 + l.truth/rebasePeriod; max(l.told-l.truth, l.truth-l.told) > bases*time.Microsecond/2 {
			t.Fatalf("event %d was at %v and is said to have been at %v", i, l.truth, l.told)
		}
	}
}
