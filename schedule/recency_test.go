package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRecency compares the ring with a slice over random puts and removals.
func TestRecency(t *testing.T) {
	const bound = 13
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		list, want := newRecency(bound), []int32{}
		for range 200 {
			n := int32(r.IntN(bound))
			at := slices.Index(want, n)
			switch {
			case at >= 0 || r.IntN(4) == 0:
				list.remove(n)
				if at >= 0 {
					want = slices.Delete(want, at, at+1)
				}
			case r.IntN(2) == 0:
				list.putFirst(n)
				want = slices.Insert(want, 0, n)
			default:
				list.putLast(n)
				want = append(want, n)
			}
			first, ok := list.first()
			if ok != (len(want) > 0) || ok && first != want[0] {
				t.Fatalf("seed %d: first is %d, %v; want that of %v", seed, first, ok, want)
			}
			if last, ok := list.last(); ok != (len(want) > 0) || ok && last != want[len(want)-1] {
				t.Fatalf("seed %d: last is %d, %v; want that of %v", seed, last, ok, want)
			}
		}
		var got []int32
		for n, ok := list.first(); ok; n, ok = list.after(n) {
			got = append(got, n)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}
