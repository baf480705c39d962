//go:build !linux

package execute

import "sync"

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

// wake ends the present park, or else the next one.
func (p *parker) wake() {
	p.init()
	select {
	case p.token <- struct{}{}:
	default:
	}
}
