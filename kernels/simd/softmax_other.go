//go:build !amd64

package simd

// SoftmaxRows is the number of rows of a block, 0 where there is no assembly.
func SoftmaxRows[T Float](Level) int { return 0 }

func (s *Softmax[T]) run(Level, []T, []T, bool) {}
