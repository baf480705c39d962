//go:build !amd64

package simd

func runMaxPool[T Float](Level, *poolShape, *MaxPool[T]) bool { return false }

func runUnpool[T Float](Level, *poolShape, *Unpool[T]) bool { return false }
