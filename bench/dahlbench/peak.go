package main

import (
	"time"

	"dahl/kernels/simd"
)

// fmaPeak is the float32 operations per second of one core in a loop of fused
// multiply-adds: the best of several.
func fmaPeak() float64 {
	const rounds = 50_000
	best := 0.0
	for range 20 {
		start := time.Now()
		flops := simd.PeakFMA[float32](simd.Widest(), rounds)
		best = max(best, flops/time.Since(start).Seconds())
	}
	return best
}
