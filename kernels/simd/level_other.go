//go:build !amd64

package simd

const widest = Go
