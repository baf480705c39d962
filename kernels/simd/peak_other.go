//go:build !amd64

package simd

func peakVectors(Level, int, int) float64 { panic("simd: no vector instructions") }
