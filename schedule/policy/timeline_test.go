package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
)

// TestLane compares with the definition, a search through one list: the first place,
// from a time on, where a task fits. Durations of 0 to 9 in a span of 30,000 leave
// gaps of every length, and there are enough tasks to divide chunks many times.
func TestLane(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var l timeline
		var list []slotOf
		for n := range 4000 {
			ready, takes := time.Duration(rng.IntN(30_000)), time.Duration(rng.IntN(10))
			if seed%2 == 1 {
				ready /= 10 // crowded
			}
			if rng.IntN(5) == 0 {
				ready = 0
			}
			start, at := ready, 0
			for ; at < len(list); at++ {
				if list[at].end <= ready {
					continue
				}
				if start+takes <= list[at].start {
					break
				}
				start = max(start, list[at].end)
			}
			s := slotOf{start, start + takes, dag.TaskID(n)}
			got, place := l.gap(ready, takes)
			if got != start {
				t.Fatalf("seed %d: task %d of %d from %d starts at %d, not %d", seed, n, takes, ready, got, start)
			}
			list = slices.Insert(list, at, s)
			l.insert(place, s)
		}
		var all []slotOf
		for _, c := range l.chunks {
			all = append(all, c.slots...)
		}
		if !slices.Equal(all, list) {
			t.Errorf("seed %d: other slots, or in another order", seed)
		}
	}
}
