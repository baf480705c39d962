package execute

import (
	"sync/atomic"
	"time"
)

// taskTime is how long a lane has been in tasks. One goroutine adds, and any may read.
type taskTime struct{ ns atomic.Int64 }

func (t *taskTime) add(d time.Duration) { t.ns.Add(int64(d)) }

// Busy is how long the units of each device have been in tasks since the runner was made; of
// devices with a driver in the steps that were recorded. Unlike the other methods it may be called
// while the runner runs, but not while it is closed.
func (r *Runner) Busy() []time.Duration {
	byDevice := make([]time.Duration, len(r.platform.Devices))
	for _, w := range r.workers {
		byDevice[w.device] += time.Duration(w.busy.ns.Load())
	}
	for d := range r.eachDevice {
		for _, l := range d.lanes {
			if l.Worker >= 0 {
				byDevice[r.platform.Workers[l.Worker].Device] += time.Duration(l.busy.ns.Load())
			}
		}
	}
	return byDevice
}
