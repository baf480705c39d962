package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exponential is e^x of vectors of float64, for x of at most 0: x = n·ln 2 + r, and a polynomial in r times
// 2ⁿ. It needs a pointer to simd.constants and three registers.
type exponential struct {
	machine
	constants        reg.Register
	n, half, scratch reg.Register
}

// Constants in simd.constants, each as often as a vector holds.
const (
	expFloor = iota
	expLog2E
	expRound
	expLn2High
	expLn2Low
	expHalf
	expBias
	expPolynomial
	one           = expPolynomial + 13
	absoluteBits  = one + 1
	signBit       = one + 2
	minusTwo      = one + 3
	two           = one + 4
	tanhFloor     = one + 5
	minusHalf     = one + 6
	normalMost    = one + 7
	normalScale   = one + 8
	normalDensity = one + 9
	geluRoot      = one + 10
	geluCube      = one + 11
	geluCubeSlope = one + 12
	normalFirst   = one + 13 // the polynomial's last coefficient
	normalLast    = normalFirst + 23
)

func (e *exponential) constant(n int) operand.Mem {
	return operand.Mem{Base: e.constants, Disp: 64 * n}
}

// atLeast sets x to the larger of x and a constant; NaN stays.
func (e *exponential) atLeast(constant int, x reg.Register) {
	e.move(e.constant(constant), e.scratch)
	e.VMAXPD(x, e.scratch, x)
}

// reduce replaces x by r.
func (e *exponential) reduce(x reg.Register) {
	e.move(e.constant(expRound), e.n)
	e.VFMADD231PD(e.constant(expLog2E), x, e.n)
	e.VSUBPD(e.constant(expRound), e.n, e.n)
	e.VFNMADD231PD(e.constant(expLn2High), e.n, x)
	e.VFNMADD231PD(e.constant(expLn2Low), e.n, x)
}

// polynomial evaluates the polynomial with the constants from first to last, the highest power first.
func (e *exponential) polynomial(first, last int, x, to reg.Register) {
	e.move(e.constant(first), to)
	for c := first + 1; c <= last; c++ {
		e.VFMADD213PD(e.constant(c), x, to)
	}
}

// exp applies 2ⁿ in two factors, since n may lie below the exponents. x is overwritten.
func (e *exponential) exp(x, to reg.Register) {
	e.atLeast(expFloor, x)
	e.reduce(x)
	e.polynomial(expPolynomial, one, x, to)
	e.move(e.constant(expBias), e.half)
	e.VFMADD231PD(e.constant(expHalf), e.n, e.half)
	e.VSUBPD(e.constant(expBias), e.half, e.scratch)
	e.VSUBPD(e.scratch, e.n, e.n)
	e.VADDPD(e.constant(expBias), e.n, e.n)
	e.VPSLLQ(operand.U8(52), e.half, e.half)
	e.VPSLLQ(operand.U8(52), e.n, e.n)
	e.VMULPD(e.half, to, to)
	e.VMULPD(e.n, to, to)
}

// lessOne is e^x - 1 for x from tanhFloor to 0: 2ⁿ·p + (2ⁿ - 1) with p = e^r - 1, of which nothing
// cancels. x is overwritten.
func (e *exponential) lessOne(x, to reg.Register) {
	e.reduce(x)
	e.polynomial(expPolynomial, one-1, x, to)
	e.VMULPD(x, to, to)
	e.VADDPD(e.constant(expBias), e.n, e.n)
	e.VPSLLQ(operand.U8(52), e.n, e.n)
	e.VSUBPD(e.constant(one), e.n, e.half)
	e.VFMADD213PD(e.half, e.n, to)
}

// low is half of a register: of 32 bytes, or of 16.
func (m machine) low(v reg.Register) reg.Register {
	if m.wide {
		return v.(reg.Vec).AsY()
	}
	return v.(reg.Vec).AsX()
}

// widen makes float64 of a half of a vector of float32, the lower or the upper one.
func (m machine) widen(upper bool, from, to reg.Register) {
	switch {
	case !upper:
		m.VCVTPS2PD(m.low(from), to)
		return
	case m.wide:
		m.VEXTRACTF64X4(otherHalf, from, m.low(to))
	default:
		m.VEXTRACTF128(otherHalf, from, m.low(to))
	}
	m.VCVTPS2PD(m.low(to), to)
}

// narrow makes float32 of float64, as the lower or the upper half of a vector. The lower comes first;
// from is overwritten.
func (m machine) narrow(upper bool, from, to reg.Register) {
	at := m.low(to)
	if upper {
		at = m.low(from)
	}
	if m.wide {
		m.VCVTPD2PS(from, at)
	} else {
		m.VCVTPD2PSY(from, at)
	}
	switch {
	case !upper:
	case m.wide:
		m.VINSERTF64X4(otherHalf, at, to, to)
	default:
		m.VINSERTF128(otherHalf, at, to, to)
	}
}
