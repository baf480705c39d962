package main

import (
	"math"
	"testing"
)

// TestTrend: the first fifth is dropped, and the rest lies on 100 + 3·i, i from 20 to
// 99, so it begins at 160, ends at 397 and grows by 237; the other quantities stay.
func TestTrend(t *testing.T) {
	samples := make([]soakSample, 100)
	for i := range samples {
		samples[i] = soakSample{100 + 3*float64(i), 7, 5, 2}
		if i < 20 {
			samples[i] = soakSample{1e9, -4, 50, 1}
		}
	}
	for q, want := range [][3]float64{{160, 397, 237}, {7, 7, 0}, {5, 5, 0}, {2, 2, 0}} {
		first, last, growth := trend(samples, q)
		for k, got := range [3]float64{first, last, growth} {
			if math.Abs(got-want[k]) > 1e-9*math.Max(1, math.Abs(want[k])) {
				t.Errorf("quantity %d: %g to %g, growth %g, want %v", q, first, last, growth, want)
				break
			}
		}
	}
}

func TestStatusField(t *testing.T) {
	text := []byte("Name:\tdahl\nVmRSS:\t   12345 kB\nThreads:\t9\n")
	for key, want := range map[string]int{"\nVmRSS:": 12345, "\nThreads:": 9, "\nVmSwap:": -1} {
		if got := statusField(text, key); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}
