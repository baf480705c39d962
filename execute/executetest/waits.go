package executetest

import "sync"

// CacheWaits lets the runtime have, before allocations are counted, what it makes when
// goroutines wait for a lock and keeps for the next: a worker that loses its core while it has
// the lock of a policy makes another one wait, which is no allocation of a step.
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
