//go:build !linux

package execute

import (
	"sync"
	"time"
)

// allowedCPUs counts the CPUs: this system has no affinity mask to read.
func allowedCPUs() []int { return countedCPUs() }

// pinThread does nothing: this system does not bind threads to CPUs.
func pinThread(int) error { return nil }

// adviseHugePages does nothing: the system decides.
func adviseHugePages([]byte) {}

// cpuTimes is nothing: this system's counts are not read.
func cpuTimes([]int) (busy, self time.Duration) { return 0, 0 }

// parker lets one thread sleep until another wakes it. A wake-up that comes first
// is kept.
type parker struct {
	once  sync.Once
	token chan struct{} // of one place
}

func (p *parker) init() { p.once.Do(func() { p.token = make(chan struct{}, 1) }) }

// park returns after a wake-up, and consumes it.
func (p *parker) park() {
	p.init()
	<-p.token
}

// parkFor is park for a limited time. It returns after a wake-up and consumes it, or returns
// after about d.
func (p *parker) parkFor(d time.Duration) {
	p.init()
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-p.token:
	case <-limit.C:
	}
}

// wake ends the present park, or else the next one.
func (p *parker) wake() {
	p.init()
	select {
	case p.token <- struct{}{}:
	default:
	}
}
