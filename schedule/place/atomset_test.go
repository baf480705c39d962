package place

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAtomSet compares a set with a map after random operations.
func TestAtomSet(t *testing.T) {
	const atoms = 11
	rng := rand.New(rand.NewPCG(1, 2))
	s, want := atomSet{at: make([]int32, atoms)}, map[int32]bool{}
	for range 2000 {
		some := make([]int32, rng.IntN(5))
		for i := range some {
			some[i] = rng.Int32N(atoms)
		}
		switch rng.IntN(9) {
		case 0:
			s.clear()
			clear(want)
		case 1, 2, 3, 4:
			s.add(some)
			for _, a := range some {
				want[a] = true
			}
		default:
			s.remove(some)
			for _, a := range some {
				delete(want, a)
			}
		}
		if got := slices.Sorted(slices.Values(s.atoms)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("the set is %v, want %v", got, want)
		}
		for a := range int32(atoms) {
			if s.has(a) != want[a] {
				t.Fatalf("has(%d) is %v", a, s.has(a))
			}
		}
	}
}
