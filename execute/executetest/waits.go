// Package executetest holds helpers for tests that count the allocations of steady steps, in
// packages execute and conformance. Only tests import it. It knows nothing of dahl.
package executetest

import "sync"

// CacheWaits makes the runtime allocate, before allocations are counted, the records that it
// needs when goroutines wait for a lock and then keeps. A worker may lose its core while it has the
// lock of a policy. Another worker then waits, and its record is no allocation of a step.
func CacheWaits() {
	const waits = 1000 // more than the caches of some processors hold
	var mu sync.Mutex
	var done sync.WaitGroup
	all, ready := sync.NewCond(&mu), 0
	for range waits {
		done.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			if ready++; ready == waits {
				all.Broadcast()
			}
			for ready < waits {
				all.Wait()
			}
		})
	}
	done.Wait()
}
