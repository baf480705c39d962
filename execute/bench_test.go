package execute

import (
	"runtime"
	"sync"
	"testing"

	"dahl/execute/host"
)

// BenchmarkHandOff is the time from a worker's publishing of a count until the other
// one, on a core of its own, goes on: half of a round trip.
func BenchmarkHandOff(b *testing.B) {
	cpus := host.CPUs()
	if len(cpus) < 2 || runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one core")
	}
	team := newTeam(2, spinLimit)
	var done sync.WaitGroup
	for self := range 2 {
		done.Go(func() {
			runtime.LockOSThread() // not unlocked: the thread ends with its CPU
			if err := host.Pin(cpus[self]); err != nil {
				b.Error(err)
			}
			for round := range int64(b.N) {
				team.await(self, 1-self, round+int64(self))
				team.publish(self, round+1)
			}
		})
	}
	done.Wait()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/hand-off")
}
