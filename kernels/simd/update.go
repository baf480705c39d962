package simd

import (
	"math"
	"unsafe"
)

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
	if !a.run(sgdLoop, l, len(g), size(g)) {
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
	if a.run(adamLoop, l, len(g), size(g)) {
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
