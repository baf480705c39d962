package execute

import (
	"sync/atomic"
	"time"
)

// taskTime is how long a lane has been in tasks. One goroutine adds, and any may read what is published:
// once a step, since an atomic write costs as much as a small task.
type taskTime struct {
	sum       time.Duration
	step      int32 // of the last task
	published atomic.Int64
}

func (t *taskTime) add(step int32, d time.Duration) {
	if step != t.step {
		t.step = step
		t.publish()
	}
	t.sum += d
}

func (t *taskTime) publish() { t.published.Store(int64(t.sum)) }

// Busy is how long the units of each device have been in tasks of whole steps since the runner was made; of
// devices with a driver in the steps that were recorded. Unlike the other methods it may be called
// while the runner runs, but not while it is closed.
func (r *Runner) Busy() []time.Duration {
	byDevice := make([]time.Duration, len(r.platform.Devices))
	for _, w := range r.workers {
		byDevice[w.device] += time.Duration(w.busy.published.Load())
	}
	for d := range r.eachDevice {
		for _, l := range d.lanes {
			if l.Worker >= 0 {
				byDevice[r.platform.Workers[l.Worker].Device] += time.Duration(l.busy.published.Load())
			}
		}
	}
	return byDevice
}
