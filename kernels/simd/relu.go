package simd

import (
	"math"
	"unsafe"
)

// ReLU computes y = max(x, 0) and mask = 1 where x > 0, else 0. NaN stays, with mask 0;
// the zero is positive. y and mask are at least as long as x.
func ReLU[T Float](l Level, y []T, mask []uint8, x []T) {
	y, mask = y[:len(x)], mask[:len(x)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(y), pointer(mask), pointer(x)}}
	a.scalars[0] = 1
	switch {
	case a.run(reluLoop, l, len(x), size(x)):
	case size(x) == 8:
		relu64(as64(y), mask, as64(x))
	default:
		relu32(as32(y), mask, as32(x))
	}
}

// ReLUGradient computes dx = dy where mask is not 0, else 0, whatever dy is there. dx
// and mask are at least as long as dy; masks are 0 or 1.
func ReLUGradient[T Float](l Level, dx, dy []T, mask []uint8) {
	dx, mask = dx[:len(dy)], mask[:len(dy)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(dx), pointer(dy), pointer(mask)}}
	switch {
	case a.run(reluGradientLoop, l, len(dy), size(dy)):
	case size(dy) == 8:
		reluGradient64(as64(dx), as64(dy), mask)
	default:
		reluGradient32(as32(dx), as32(dy), mask)
	}
}

// as32 and as64 name the type that T has been found to be.
func as32[T Float](s []T) []float32 { return unsafe.Slice((*float32)(pointer(s)), len(s)) }
func as64[T Float](s []T) []float64 { return unsafe.Slice((*float64)(pointer(s)), len(s)) }

// The bits of +Inf and of the sign. Positive numbers are those with bits from 1 to
// infinity; NaN is beyond infinity in either sign.
const (
	infinity32 uint32 = 0x7f800000
	infinity64 uint64 = 0x7ff0000000000000
	sign32     uint32 = 1 << 31
	sign64     uint64 = 1 << 63
)

// relu32 has no branch on the data, which a processor mispredicts half the time:
// y is the bits of x or none of them.
func relu32(y []float32, mask []uint8, x []float32) {
	y, mask = y[:len(x)], mask[:len(x)]
	for i, v := range x {
		bits := math.Float32bits(v)
		var positive, nan uint8
		if bits-1 < infinity32 {
			positive = 1
		}
		if bits&^sign32 > infinity32 {
			nan = 1
		}
		mask[i] = positive
		y[i] = math.Float32frombits(bits & -uint32(positive|nan))
	}
}

// relu64 is relu32 in float64.
func relu64(y []float64, mask []uint8, x []float64) {
	y, mask = y[:len(x)], mask[:len(x)]
	for i, v := range x {
		bits := math.Float64bits(v)
		var positive, nan uint8
		if bits-1 < infinity64 {
			positive = 1
		}
		if bits&^sign64 > infinity64 {
			nan = 1
		}
		mask[i] = positive
		y[i] = math.Float64frombits(bits & -uint64(positive|nan))
	}
}

// reluGradient32 keeps the bits of dy or none of them, so that 0 hides an infinite dy.
func reluGradient32(dx, dy []float32, mask []uint8) {
	dx, mask = dx[:len(dy)], mask[:len(dy)]
	for i, v := range dy {
		dx[i] = math.Float32frombits(math.Float32bits(v) & -uint32(mask[i]))
	}
}

// reluGradient64 is reluGradient32 in float64.
func reluGradient64(dx, dy []float64, mask []uint8) {
	dx, mask = dx[:len(dy)], mask[:len(dy)]
	for i, v := range dy {
		dx[i] = math.Float64frombits(math.Float64bits(v) & -uint64(mask[i]))
	}
}
