package host

import (
	"testing"
	"time"
)

// A wake-up is kept: a park after it returns at once, and several wake-ups before
// one park are one. Then two threads hand each other the turn 10,000 times; a lost
// wake-up would leave both asleep.
func TestParker(t *testing.T) {
	var p Parker
	p.Wake()
	p.Wake()
	p.Park()

	var ping, pong Parker
	const turns = 10_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range turns {
			ping.Park()
			pong.Wake()
		}
	}()
	for range turns {
		ping.Wake()
		pong.Park()
	}
	<-done
}

// A limited park ends after a wake-up that came before or comes meanwhile.
func TestParkFor(t *testing.T) {
	var p Parker
	p.Wake()
	p.ParkFor(time.Hour)
	go p.Wake()
	p.ParkFor(time.Hour)
}
