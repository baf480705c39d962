package simd

import "unsafe"

// ReLU computes y = max(x, 0) and mask = 1 where x > 0, else 0. NaN stays, with mask 0;
// the zero is positive. y and mask are at least as long as x.
func ReLU[T Float](l Level, y []T, mask []uint8, x []T) {
	y, mask = y[:len(x)], mask[:len(x)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(y), pointer(mask), pointer(x)}}
	a.scalars[0] = 1
	switch {
	case a.run(reluLoop, l, len(x), size(x)):
	case size(x) == 8:
		reluGo(bitsOf[uint64](y), mask, bitsOf[uint64](x), 0x7ff0000000000000)
	default:
		reluGo(bitsOf[uint32](y), mask, bitsOf[uint32](x), 0x7f800000)
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
		reluGradientGo(bitsOf[uint64](dx), bitsOf[uint64](dy), mask)
	default:
		reluGradientGo(bitsOf[uint32](dx), bitsOf[uint32](dy), mask)
	}
}

// bitsOf is the bits of numbers of that size.
func bitsOf[U uint32 | uint64, T Float](s []T) []U {
	return unsafe.Slice((*U)(pointer(s)), len(s))
}

// reluGo has no branch on the data, which a processor mispredicts half the time: y is the bits
// of x or none of them. Positive numbers are those with bits from 1 to those of infinity; NaN is
// beyond infinity in either sign.
func reluGo[U uint32 | uint64](y []U, mask []uint8, x []U, infinity U) {
	y, mask = y[:len(x)], mask[:len(x)]
	for i, bits := range x {
		var positive, nan uint8
		if bits-1 < infinity {
			positive = 1
		}
		if bits<<1 > infinity<<1 {
			nan = 1
		}
		mask[i] = positive
		y[i] = bits & -U(positive|nan)
	}
}

// reluGradientGo keeps the bits of dy or none of them, so that 0 hides an infinite dy.
func reluGradientGo[U uint32 | uint64](dx, dy []U, mask []uint8) {
	dx, mask = dx[:len(dy)], mask[:len(dy)]
	for i, bits := range dy {
		dx[i] = bits & -U(mask[i])
	}
}
