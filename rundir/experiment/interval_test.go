package experiment

import (
	"math"
	"testing"
)

// The probabilities follow from the binomial numbers: of n values, from the least to the greatest 1 − 2/2ⁿ; of
// nine, from the second to the eighth 1 − 2·(1+9)/512 = 96.09 %, and of twelve, from the third to the tenth
// 1 − 2·(1+12+66)/4096 = 96.14 %.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		n         int
		low, high float64
		holds     float64
	}{
		{1, 1, 1, 0}, {2, 1, 2, 0.5}, {3, 1, 3, 0.75}, {5, 1, 5, 0.9375}, {6, 1, 6, 1 - 2.0/64}, {8, 1, 8, 1 - 2.0/256},
		{9, 2, 8, 1 - 20.0/512}, {12, 3, 10, 1 - 158.0/4096},
	} {
		var values []float64
		for i := c.n; i > 0; i-- {
			values = append(values, float64(i))
		}
		low, high, p := Interval(values)
		if low != c.low || high != c.high || math.Abs(p-c.holds) > 1e-12 {
			t.Errorf("of %d: [%g, %g] with %g, want [%g, %g] with %g", c.n, low, high, p, c.low, c.high, c.holds)
		}
	}
	// Of many values the interval is about 2·1.96·√n/2 ranks wide: 1.96·√10000 = 196.
	var values []float64
	for i := range 10_000 {
		values = append(values, float64(i))
	}
	if low, high, p := Interval(values); high-low < 194 || high-low > 198 || p < 0.95 || p > 0.96 {
		t.Errorf("of 10000: [%g, %g] with %g", low, high, p)
	}
}
