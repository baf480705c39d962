package platform

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFewSets compares sets with maps, on platforms whose sets are a word of bits and on others.
func TestFewSets(t *testing.T) {
	for _, memories := range []int{5, 63, 64, 1000} {
		p, rng := &Platform{Memories: make([]Memory, memories)}, rand.New(rand.NewPCG(uint64(memories), 1))
		const n = 4
		sets, want := p.NewFewSets(n), [n]map[MemoryID]bool{{}, {}, {}, {}}
		for range 20_000 {
			i, m := int32(rng.IntN(n)), MemoryID(rng.IntN(min(memories, 12)*memories/min(memories, 12)))
			switch rng.IntN(12) {
			case 0:
				sets.Clear(i)
				clear(want[i])
			case 1:
				sets.Only(i, m)
				want[i] = map[MemoryID]bool{m: true}
			case 2, 3:
				sets.Remove(i, m)
				delete(want[i], m)
			default:
				sets.Add(i, m)
				want[i][m] = true
			}
			got, is := sets.AppendTo(nil, i), slices.Sorted(maps.Keys(want[i]))
			before, _ := slices.BinarySearch(is, m)
			if !slices.Equal(got, is) || sets.Count(i) != len(is) || sets.CountBefore(i, m) != before || sets.Has(i, m) != want[i][m] || sets.IsEverywhere(i) {
				t.Fatalf("%d memories: %v, want %v", memories, got, is)
			}
		}
		sets.Everywhere(0)
		if !sets.Has(0, MemoryID(memories-1)) || !sets.IsEverywhere(0) || sets.IsEverywhere(1) {
			t.Errorf("%d memories: not everywhere", memories)
		}
		sets.Only(0, 3)
		if got := sets.AppendTo(nil, 0); !slices.Equal(got, []MemoryID{3}) {
			t.Errorf("%d memories: %v, want only 3", memories, got)
		}
	}
}
