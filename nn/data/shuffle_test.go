package data

import (
	"math"
	"slices"
	"testing"
)

func TestShuffleIsAPermutation(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 97, 2999} {
		order, sorted := make([]int32, n), make([]int32, n)
		InOrder(sorted)
		for epoch := range 5 {
			Shuffle(order, 1, epoch)
			back := slices.Clone(order)
			slices.Sort(back)
			if !slices.Equal(back, sorted) {
				t.Fatalf("n %d epoch %d: %v is no permutation", n, epoch, order)
			}
		}
	}
}

func TestShuffleDependsOnSeedAndEpoch(t *testing.T) {
	const n = 97
	seen := map[string]bool{}
	for seed := range uint64(11) {
		for epoch := range 11 {
			a, b := make([]int32, n), make([]int32, n)
			for i := range b {
				b[i] = -1 // what was in the slice before does not matter
			}
			Shuffle(a, seed, epoch)
			Shuffle(b, seed, epoch)
			if !slices.Equal(a, b) {
				t.Fatalf("seed %d epoch %d: two different orders", seed, epoch)
			}
			key := string(bytesOf(a))
			if seen[key] {
				t.Errorf("seed %d epoch %d repeats another order", seed, epoch)
			}
			seen[key] = true
		}
	}
}

func bytesOf(order []int32) []byte {
	b := make([]byte, len(order))
	for i, v := range order {
		b[i] = byte(v)
	}
	return b
}

// All 24 permutations of four come equally often: of 24,000 epochs each has a
// count of mean 1000 and standard deviation √(24000·1/24·23/24) = 30.96.
func TestShuffleIsUniform(t *testing.T) {
	count := map[[4]int32]int{}
	var order [4]int32
	for epoch := range 24_000 {
		Shuffle(order[:], 42, epoch)
		count[order]++
	}
	if len(count) != 24 {
		t.Fatalf("%d different permutations, want 24", len(count))
	}
	for order, c := range count {
		if math.Abs(float64(c)-1000) > 6*30.96 {
			t.Errorf("%v came %d times, want 1000 ± 186", order, c)
		}
	}
}

func TestBatches(t *testing.T) {
	tests := []struct {
		n, batch int
		want     []int // sizes
	}{
		{13, 5, []int{5, 5, 3}}, {10, 5, []int{5, 5}}, {3, 7, []int{3}}, {7, 7, []int{7}}, {3, 1, []int{1, 1, 1}}, {0, 5, nil},
	}
	for _, test := range tests {
		order := make([]int32, test.n)
		Shuffle(order, 9, 0)
		var sizes []int
		var joined []int32
		for k := range BatchCount(test.n, test.batch) {
			b := Batch(order, test.batch, k)
			sizes = append(sizes, len(b))
			joined = append(joined, b...)
		}
		if !slices.Equal(sizes, test.want) || !slices.Equal(joined, order) {
			t.Errorf("%d samples in batches of %d: sizes %v, want %v; joined %v of %v", test.n, test.batch, sizes, test.want, joined, order)
		}
	}
}
