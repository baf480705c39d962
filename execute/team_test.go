package execute

import (
	"sync"
	"testing"
	"time"
)

// TestNoWakeUpIsLost lets each member wait for the next round of the one before
// it in a ring, with and without spinning. A lost wake-up would hang the test.
func TestNoWakeUpIsLost(t *testing.T) {
	const members, rounds = 5, 3000
	for _, spin := range []time.Duration{0, spinLimit} {
		team := newTeam(members, spin)
		var done sync.WaitGroup
		for i := range members {
			done.Go(func() {
				before := (i + members - 1) % members
				for round := int64(1); round <= rounds; round++ {
					need := round
					if i == 0 {
						need-- // the first one starts every round
					}
					if !team.await(i, before, need) {
						t.Errorf("member %d is stopped in round %d", i, round)
						return
					}
					team.publish(i, round)
				}
			})
		}
		done.Wait()
		if n := team.parked.Load(); n != 0 {
			t.Errorf("%d members are parked after the end", n)
		}
	}
}

func TestStopEndsWaits(t *testing.T) {
	for _, spin := range []time.Duration{0, spinLimit} {
		team := newTeam(3, spin)
		var done sync.WaitGroup
		for i := range 2 {
			done.Go(func() {
				if team.await(i, 2, 1) {
					t.Errorf("member %d did not notice the stop", i)
				}
			})
		}
		team.stop()
		done.Wait()
		if team.await(0, 2, 1) {
			t.Error("a wait after the stop succeeds")
		}
	}
}
