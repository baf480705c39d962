package place

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/platform"
)

// TestFarthest drops storages at random items of random graphs, and compares each one with a search of all that are
// in the memory.
func TestFarthest(t *testing.T) {
	victims := 0
	for seed := range uint64(100) {
		placed, rng := randomPlaced(t, seed)
		traffic := placed.Graphs[0].traffic
		for m := range placed.Platform.Memories {
			if platform.MemoryID(m) == traffic.host || traffic.moves == nil {
				continue
			}
			s := traffic.newSpill(traffic.items(), platform.MemoryID(m), 0, nil)
			r := &residents{spill: s, is: make([]bool, len(s.visits)), next: make([]int32, len(s.visits))}
			for i, here := range s.touched {
				for _, b := range here {
					r.enter(b)
				}
				for rng.IntN(3) == 0 {
					want, any := farthestOfAll(r, here)
					got, ok := r.farthest(int32(i))
					if ok != any || got != want {
						t.Fatalf("seed %d: item %d drops storage %d (%v), want %d (%v)", seed, i, got, ok, want, any)
					}
					if !ok {
						break
					}
					r.drop(got)
					victims++
				}
				for _, b := range here {
					r.next[b]++
					r.wait(b)
				}
			}
		}
	}
	if victims < 200 {
		t.Errorf("%d storages were dropped: the test tests little", victims)
	}
}

func farthestOfAll(r *residents, here []dag.BufferID) (victim dag.BufferID, ok bool) {
	for _, b := range r.used {
		if !r.is[b] || r.homes[b] != r.host || r.g.Versions(b) > 1 || slices.Contains(here, b) {
			continue
		}
		if !ok || r.again(b) > r.again(victim) {
			victim, ok = b, true
		}
	}
	return victim, ok
}
