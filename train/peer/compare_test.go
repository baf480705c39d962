package peer

import (
	"math"
	"testing"
)

func TestLossError(t *testing.T) {
	want := []float64{2, 1}
	// 2.0002 is off by 1e-4 of 2, 1.0005 by 5e-4 of 1: the worse counts.
	got, err := LossError("twin", want, []float64{2.0002, 1.0005}, 1e-3)
	if err != nil || math.Abs(got-5e-4) > 1e-9 {
		t.Errorf("loss error %v, %v; want 5e-4", got, err)
	}
	for _, other := range [][]float64{{2.01, 1}, {math.NaN(), 1}} {
		if _, err := LossError("twin", want, other, 1e-3); err == nil {
			t.Errorf("losses %v and %v pass as the same network", want, other)
		}
	}
}
