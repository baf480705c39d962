package ready

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type number int

func (a number) Before(b number) bool { return a < b }

// TestHeap: numbers that come in at random come out in their order, with others pushed
// between.
func TestHeap(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var h Heap[number]
		var in []number
		for _, n := range rng.Perm(1 + rng.IntN(200)) {
			h.Push(number(n))
			in = append(in, number(n))
			if rng.IntN(3) == 0 {
				least := slices.Min(in)
				if got := h.Pop(); got != least {
					t.Fatalf("seed %d: %d comes out before %d", seed, got, least)
				}
				in = slices.DeleteFunc(in, func(x number) bool { return x == least })
			}
		}
		slices.Sort(in)
		for _, want := range in {
			if got := h.Pop(); got != want {
				t.Fatalf("seed %d: %d comes out before %d", seed, got, want)
			}
		}
	}
}
