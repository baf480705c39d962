package best

import (
	"math/rand/v2"
	"testing"

	"dahl/plan/space"
)

// TestNoNeighbours: a choice with a strategy stays as it is where the space has no neighbourhoods, and so does one on the only set of devices.
func TestNoNeighbours(t *testing.T) {
	f := &finder{space: &space.Space{}}
	for _, c := range []space.Choice{{Strategy: "1f1b:2x4"}, {}} {
		if got := f.changed(&candidate{}, c, rand.New(rand.NewPCG(1, 2)), true); got != c {
			t.Errorf("%v became %v", c, got)
		}
	}
}
