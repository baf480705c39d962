package simd

import (
	"math"
	"unsafe"
)

// runArgs is the argument of one call of the assembly over runs of elements. gen/elementwise.go
// knows the order of the fields.
type runArgs struct {
	operands      [4]unsafe.Pointer
	vectors, tail int // whole vectors, and elements beyond them
	mask          uintptr
	flags         uint64
	scalars       [10]uint64 // bits of scalars of the elements' type
}

// loop is one of the loops over runs of elements.
type loop uint8

const (
	reluLoop loop = iota
	reluGradientLoop
	addLoop
	divideBytesLoop
	sgdLoop
	adamLoop
	functionLoops // and the gradient of each behind it
)

// bits is a scalar in the form that the assembly reads.
func bits[T Float](v T) uint64 {
	if unsafe.Sizeof(v) == 8 {
		return math.Float64bits(float64(v))
	}
	return uint64(math.Float32bits(float32(v)))
}

// pointer is the address of the first element.
func pointer[E uint8 | float32 | float64](s []E) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(s))
}

// size is the size of an element in bytes.
func size[T Float](s []T) int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// Add computes dst += src, element by element; dst is at least as long as src.
func Add[T Float](l Level, dst, src []T) {
	dst = dst[:len(src)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(dst), pointer(src)}}
	if a.run(addLoop, l, len(src), size(src)) {
		return
	}
	for i, v := range src {
		dst[i] += v
	}
}

// DivideBytes computes y = bytes/divisor, each quotient rounded once; y is at least as
// long as bytes.
func DivideBytes[T Float](l Level, y []T, bytes []uint8, divisor T) {
	y = y[:len(bytes)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(y), pointer(bytes)}}
	a.scalars[0] = bits(divisor)
	if a.run(divideBytesLoop, l, len(bytes), size(y)) {
		return
	}
	for i, v := range bytes {
		y[i] = T(v) / divisor
	}
}
