package stats

import (
	"slices"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{7, 2}, 4.5}, {[]float64{7, 2, 3}, 3}, {[]float64{7, 2, 3, 11}, 5}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("of %v: %v, not %v", c.values, got, c.want)
		}
	}
	given := []time.Duration{5, 3}
	if got := Median(given); got != 4 || !slices.Equal(given, []time.Duration{5, 3}) {
		t.Errorf("%v of %v", got, given)
	}
}

// TestQuantile holds the result to its definition: the fraction q of the list is at or below it, and less than that is at or below
// any smaller value.
func TestQuantile(t *testing.T) {
	for n := 1; n <= 23; n++ {
		list := make([]int, n)
		for i := range list {
			list[i] = 10 * i
		}
		for _, percent := range []int{0, 1, 5, 31, 50, 75, 95, 100} {
			at := Quantile(list, float64(percent)/100) / 10 // its index: so many values are below it, and one more at or below it
			if 100*(at+1) < percent*n || at > 0 && 100*at >= percent*n {
				t.Errorf("%d %% of %d values: the one with %d below it", percent, n, at)
			}
		}
	}
}
