package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRankSet adds and takes at random and compares with a sorted list, for bounds on
// both sides of those at which a level is added: 64 and 64².
func TestRankSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	for _, bound := range []int{1, 2, 63, 64, 65, 4095, 4096, 4097, 70_001} {
		s := newRankSet(bound)
		var list []int
		for range 3000 {
			if n := rng.IntN(bound); rng.IntN(3) > 0 {
				if at, ok := slices.BinarySearch(list, n); !ok {
					list = slices.Insert(list, at, n)
					s.add(n)
				}
			} else if len(list) > 0 {
				if got := s.least(); got != list[0] {
					t.Fatalf("bound %d: the least is %d, not %d", bound, got, list[0])
				}
				s.remove(list[0])
				list = list[1:]
			}
			if s.empty() != (len(list) == 0) {
				t.Fatalf("bound %d: empty with %d numbers: %v", bound, len(list), s.empty())
			}
		}
	}
}
