package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBalance compares with all cuts of short chains, in places of unlike speeds.
func TestBalance(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 41))
	for range 200 {
		n, places := 1+rng.IntN(7), 1+rng.IntN(3)
		times := make([][]float64, n)
		for i := range times {
			for range places {
				times[i] = append(times[i], float64(rng.IntN(10)))
			}
		}
		longest := func(firsts []int) (most float64) {
			for k, first := range firsts {
				sum, end := 0.0, append(slices.Clone(firsts[1:]), n)[k]
				for _, of := range times[first:end] {
					sum += of[k%places]
				}
				most = max(most, sum)
			}
			return most
		}
		parts := 1 + rng.IntN(n)
		least := -1.0
		for cuts := range 1 << (n - 1) { // bit i: a part begins with element i + 1
			firsts := []int{0}
			for i := range n - 1 {
				if cuts>>i&1 > 0 {
					firsts = append(firsts, i+1)
				}
			}
			if of := longest(firsts); len(firsts) == parts && (least < 0 || of < least) {
				least = of
			}
		}
		firsts := Balance(times, parts)
		if len(firsts) != parts || firsts[0] != 0 || !slices.IsSorted(firsts) || longest(firsts) != least {
			t.Errorf("%v in %d parts begins at %v, the longest takes %v; the least is %v", times, parts, firsts, longest(firsts), least)
		}
		if Balance(times, n+1) != nil {
			t.Errorf("%d elements in %d parts", n, n+1)
		}
	}
}
