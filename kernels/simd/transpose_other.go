//go:build !amd64

package simd

func (t *Transpose[T]) runVectors(Level) bool { return false }
