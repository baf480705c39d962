package train

import (
	"slices"
	"testing"
)

// TestShuffledGoesRound: 7 indices of 3 hold every one twice before any a third time.
func TestShuffledGoesRound(t *testing.T) {
	got := shuffled(3, 7, 1)
	if len(got) != 7 {
		t.Fatalf("%d indices", len(got))
	}
	for _, pass := range [][]int32{got[:3], got[3:6]} {
		if sorted := slices.Sorted(slices.Values(pass)); !slices.Equal(sorted, []int32{0, 1, 2}) {
			t.Errorf("a pass is %v", pass)
		}
	}
}
