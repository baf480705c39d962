//go:build cuda

package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/execute/driver"
)

// describe names the task that would not wait, and for which lane.
func (m mutation) describe(c *compiledGraph) string {
	w := &c.replay.waits[m.wait]
	return fmt.Sprintf("task %q of lane %d without its wait for %d tasks of lane %d", c.graph.Tasks[c.replay.lists[m.lane][m.item].task].Name, m.lane, w.need, w.worker)
}

// lateHost is a driver whose host sees the end of a batch only when nothing goes on without
// it. What the host has seen orders what it issues then, with or without a wait on the device,
// so a host that is slow to issue and quick to look hides that a wait is missing. It is for
// recorded runs with one core, lane 0.
type lateHost struct {
	driver.Driver
	device *device

	news  int // what was issued, and what was seen
	asked map[driver.EventID]int
}

func (h *lateHost) Record(s driver.StreamID, e driver.EventID) error {
	h.news++
	return h.Driver.Record(s, e)
}

// done asks the driver of a batch's end when the core waits, a whole turn of the issue loop
// has brought nothing, and it is that lane that holds up the others.
func (h *lateHost) Done(e driver.EventID) (bool, error) {
	i := slices.IndexFunc(h.device.lanes, func(l *deviceLane) bool { return l.ended < l.issued && l.ends[l.ended%inFlight] == e })
	if i < 0 {
		return h.Driver.Done(e) // a mark of the clock, before and after the batches
	}
	if !h.holdsUp(h.device.lanes[i]) {
		delete(h.asked, e)
		return false, nil
	}
	if last, ok := h.asked[e]; !ok || last != h.news {
		h.asked[e] = h.news
		return false, nil
	}
	done, err := h.Driver.Done(e)
	if done {
		h.news++
	}
	return done, err
}

// holdsUp reports whether the core waits for a lane or has ended, or the lane is full.
func (h *lateHost) holdsUp(l *deviceLane) bool {
	j := h.device.times.job
	core := &j.team.members[0]
	if core.count.Load() == int64(len(j.replay.lists[0])*j.steps) {
		return true
	}
	waits := core.waitsFor.Load()
	if waits == 0 || j.team.members[waits-1].count.Load() >= core.target.Load() || core.waitsFor.Load() != waits {
		return false // it goes on
	}
	return int(waits)-1 == l.id || l.issued-l.ended == inFlight
}

// TestCUDACheckerFindsEveryMissingWait takes away the waits between the streams of a device,
// one at a time, and runs some steps on the driver library of the tests, whose checker ends
// the run if the wait was needed, and does not if it was implied by others.
func TestCUDACheckerFindsEveryMissingWait(t *testing.T) {
	const steps = 5
	prog := testProgram(t)
	open := func() *Runner {
		r := newRunner(t, prog, how{Platform: cudaNode(t, 1, 1), Plans: spreadPlans(prog, 2, bySamples(2)), Options: Options{Hooks: testHooks(nil)}})
		d := r.devices[1]
		d.Driver = &lateHost{Driver: d.Driver, device: d, asked: map[driver.EventID]int{}}
		d.rebase = time.Hour // a base is seen when it is done
		return r
	}
	r := open()
	if !strings.HasPrefix(r.devices[1].Properties.Name, "Test device") {
		t.Skip("only the test driver checks the order")
	}
	local := r.devices[1].local
	all := mutations(r.graphs[0], func(lane int, w *wait) bool { return local[lane] >= 0 && local[w.worker] >= 0 })
	needed := 0
	for _, m := range all {
		r.Close()
		r = open()
		c := r.graphs[0]
		name := m.describe(c)
		c.replay.waits[m.wait].need = unlimited
		need := !ordered(c)
		_, err := r.Run(context.Background(), 0, steps, true)
		switch {
		case need && err == nil:
			t.Errorf("not found: %s", name)
		case !need && err != nil:
			t.Errorf("%s, which others imply: %v", name, err)
		}
		if need {
			needed++
		}
	}
	r.Close()
	t.Logf("%d waits within the device, %d of them needed", len(all), needed)
	if needed == 0 {
		t.Error("no wait is needed")
	}
}
