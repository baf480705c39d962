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
	if a.run(&add, l, len(src), size(src)) {
		return
	}
	for i, v := range src {
		dst[i] += v
	}
}

// Multiply computes y = a·b, element by element; y and a are at least as long as b.
func Multiply[T Float](l Level, y, a, b []T) {
	y, a = y[:len(b)], a[:len(b)]
	args := runArgs{operands: [4]unsafe.Pointer{pointer(y), pointer(a), pointer(b)}}
	if args.run(&multiply, l, len(b), size(b)) {
		return
	}
	for i, v := range b {
		y[i] = a[i] * v
	}
}

// DivideBytes computes y = bytes/divisor, each quotient rounded once; y is at least as
// long as bytes.
func DivideBytes[T Float](l Level, y []T, bytes []uint8, divisor T) {
	y = y[:len(bytes)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(y), pointer(bytes)}}
	a.scalars[0] = bits(divisor)
	if a.run(&divideBytes, l, len(bytes), size(y)) {
		return
	}
	for i, v := range bytes {
		y[i] = T(v) / divisor
	}
}

// ReLU computes y = max(x, 0) and mask = 1 where x > 0, else 0. NaN stays, with mask 0;
// the zero is positive. y and mask are at least as long as x.
func ReLU[T Float](l Level, y []T, mask []uint8, x []T) {
	y, mask = y[:len(x)], mask[:len(x)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(y), pointer(mask), pointer(x)}}
	a.scalars[0] = 1
	switch {
	case a.run(&relu, l, len(x), size(x)):
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
	case a.run(&reluGradient, l, len(dy), size(dy)):
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
// of x or none of them. Positive numbers have bits from 1 to infinity's; NaN is
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

// SGD is a step of stochastic gradient descent, as kernels.sgd defines it. Products and
// sums are rounded one by one, so that all levels give equal bits.
type SGD[T Float] struct {
	Rate, Momentum, Decay T
	Factor                T // of the gradient; 1: it stays
	Nesterov              bool
}

// Bits of runArgs.flags, known to gen/elementwise.go.
const (
	flagDecay = 1 << iota
	flagMomentum
	flagNesterov
)

// Step updates w by the gradient g, and v if there is a momentum; both are at least as
// long as g.
func (s *SGD[T]) Step(l Level, w, g, v []T) {
	w = w[:len(g)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(w), pointer(g)}}
	if s.Momentum != 0 {
		v = v[:len(g)]
		a.operands[2] = pointer(v)
		a.flags |= flagMomentum
		if s.Nesterov {
			a.flags |= flagNesterov
		}
	}
	if s.Decay != 0 {
		a.flags |= flagDecay
	}
	for i, c := range [...]T{s.Rate, s.Momentum, s.Decay, s.Factor} {
		a.scalars[i] = bits(c)
	}
	if !a.run(&sgd, l, len(g), size(g)) {
		s.stepGo(w, g, v)
	}
}

func (s *SGD[T]) stepGo(w, g, v []T) {
	rate, momentum, decay := s.Rate, s.Momentum, s.Decay
	for i, step := range g {
		step = T(s.Factor * step)
		if decay != 0 {
			step += T(decay * w[i])
		}
		if momentum != 0 {
			v[i] = T(momentum*v[i]) + step
			if s.Nesterov {
				step += T(momentum * v[i])
			} else {
				step = v[i]
			}
		}
		w[i] -= T(rate * step)
	}
}

// Adam is a step of Adam, as kernels.adam defines it, with precomputed factors for what depends
// on the step:
//
//	m = Beta1·m + Gain1·g
//	v = Beta2·v + Gain2·g·g
//	w = Keep·w - Rate·m/(√v/Root + Eps)
//
// with Factor·g + Decay·w for g, where at most one of Decay ≠ 0 and Keep ≠ 1 holds. Every operation is rounded, so that all levels give equal bits.
type Adam[T Float] struct {
	Beta1, Gain1, Beta2, Gain2 T
	Rate, Root, Eps            T
	Decay, Keep, Factor        T
}

// Step updates w, m and v by the gradient g; they are at least as long as g.
func (s *Adam[T]) Step(l Level, w, g, m, v []T) {
	w, m, v = w[:len(g)], m[:len(g)], v[:len(g)]
	a := runArgs{operands: [4]unsafe.Pointer{pointer(w), pointer(g), pointer(m), pointer(v)}}
	if s.Decay != 0 {
		a.flags |= flagDecay
	}
	for i, c := range [...]T{s.Beta1, s.Gain1, s.Beta2, s.Gain2, s.Rate, s.Root, s.Eps, s.Decay, s.Keep, s.Factor} {
		a.scalars[i] = bits(c)
	}
	if a.run(&adam, l, len(g), size(g)) {
		return
	}
	for i, grad := range g {
		grad = T(s.Factor * grad)
		if s.Decay != 0 {
			grad += T(s.Decay * w[i])
		}
		m[i] = T(s.Beta1*m[i]) + T(s.Gain1*grad)
		v[i] = T(s.Beta2*v[i]) + T(T(s.Gain2*grad)*grad)
		w[i] = T(s.Keep * w[i])
		w[i] -= T(s.Rate*m[i]) / (T(math.Sqrt(float64(v[i])))/s.Root + s.Eps)
	}
}

// run calls the assembly of a loop for n elements and reports whether there is one.
func (a *runArgs) run(loop *forms[runArgs], l Level, n, size int) bool {
	if l == Go {
		return false
	}
	lanes := l.bytes() / size
	a.vectors, a.tail = n/lanes, n%lanes
	a.mask = l.mask(a.tail, size)
	loop.call(l, size, a)
	return true
}
