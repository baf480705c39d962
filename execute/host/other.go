//go:build !linux

package host

import (
	"sync"
	"time"
)

// allowedCPUs counts the CPUs: this system has no affinity mask to read.
func allowedCPUs() []int { return countedCPUs() }

// Pin does nothing: this system does not bind threads to CPUs.
func Pin(int) error { return nil }

// WakeInTime does nothing: this system says nothing about the timers of a thread.
func WakeInTime() {}

// adviseHugePages does nothing: the system decides.
func adviseHugePages([]byte) {}

// cpuTimes is nothing: this system's counts are not read.
func cpuTimes([]int) (busy, self time.Duration) { return 0, 0 }

// Parker lets one thread sleep until another wakes it. A wake-up that comes first
// is kept.
type Parker struct {
	once  sync.Once
	token chan struct{} // of one place
}

func (p *Parker) init() { p.once.Do(func() { p.token = make(chan struct{}, 1) }) }

// Park returns after a wake-up, and consumes it.
func (p *Parker) Park() {
	p.init()
	<-p.token
}

// ParkFor is Park for a limited time. It returns after a wake-up and consumes it, or returns
// after about d.
func (p *Parker) ParkFor(d time.Duration) {
	p.init()
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-p.token:
	case <-limit.C:
	}
}

// Wake ends the present park, or else the next one.
func (p *Parker) Wake() {
	p.init()
	select {
	case p.token <- struct{}{}:
	default:
	}
}
