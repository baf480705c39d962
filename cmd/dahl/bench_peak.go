package main

import (
	"time"

	"dahl/kernels/simd"
)

// fmaPeak is the float32 operations per second of one core in a product that fits
// its first-level cache: the best of several.
func fmaPeak() float64 {
	const m, n, k, passes = 14, 32, 128, 200
	p := simd.Product[float32]{M: m, N: n, K: k, Batch: 1, ARow: k, AStep: 1, BRow: n, CRow: n,
		A: make([]float32, m*k), B: make([]float32, k*n), C: make([]float32, m*n)}
	best := time.Duration(0)
	for range 20 {
		start := time.Now()
		for range passes {
			p.Run(widestLevel())
		}
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
	}
	return 2 * m * n * k * passes / best.Seconds()
}

// widestLevel is the widest set of instructions that this machine has.
func widestLevel() simd.Level {
	widest := simd.Go
	for _, l := range simd.Levels {
		if l.Supported() {
			widest = l
		}
	}
	return widest
}
