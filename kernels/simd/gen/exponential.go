package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exponential is e^x of a vector, for x of at most 0: x = n·ln 2 + r, and a polynomial in r times 2ⁿ. It
// needs a pointer to simd.constants, or to simd.singles for float32, and three registers.
type exponential struct {
	machine
	constants        reg.Register
	n, half, scratch reg.Register
}

// Constants in simd.constants and simd.singles, each as often as 64 bytes hold. Polynomials of float32 are
// shorter: the exponential's begins later, and the normal distribution's ends earlier.
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
	geluSquare    = one + 13
	normalFirst   = one + 14 // the coefficient of the highest power
)

func (e *exponential) constant(n int) operand.Mem {
	return operand.Mem{Base: e.constants, Disp: 64 * n}
}

// first is where the polynomial begins: of degree 7 in float32, where what is left out is below 2⁻²⁷.
func (e *exponential) first() int { return form(e.machine, expPolynomial+6, expPolynomial) }

// atLeast sets x to the larger of x and a constant; NaN stays.
func (e *exponential) atLeast(constant int, x reg.Register) {
	e.move(e.constant(constant), e.scratch)
	e.notBelow(e.scratch, x)
}

// atMost sets x to the smaller of x and a constant; NaN stays.
func (e *exponential) atMost(constant int, x reg.Register) {
	e.move(e.constant(constant), e.scratch)
	form(e.machine, e.VMINPS, e.VMINPD)(x, e.scratch, x)
}

// less sets to to a minus a constant.
func (e *exponential) less(constant int, a, to reg.Register) {
	form(e.machine, e.VSUBPS, e.VSUBPD)(e.constant(constant), a, to)
}

// by sets to to a times a constant.
func (e *exponential) by(constant int, a, to reg.Register) {
	form(e.machine, e.VMULPS, e.VMULPD)(e.constant(constant), a, to)
}

// reduce replaces x by r.
func (e *exponential) reduce(x reg.Register) {
	e.move(e.constant(expRound), e.n)
	e.fma(e.constant(expLog2E), x, e.n)
	e.less(expRound, e.n, e.n)
	for _, part := range []int{expLn2High, expLn2Low} {
		form(e.machine, e.VFNMADD231PS, e.VFNMADD231PD)(e.constant(part), e.n, x)
	}
}

// polynomial evaluates the polynomial with the constants from first to last, the highest power first.
func (e *exponential) polynomial(first, last int, x, to reg.Register) {
	e.move(e.constant(first), to)
	for c := first + 1; c <= last; c++ {
		form(e.machine, e.VFMADD213PS, e.VFMADD213PD)(e.constant(c), x, to)
	}
}

// power makes 2ⁿ of n and the bias of the exponent.
func (e *exponential) power(n reg.Register) {
	form(e.machine, e.VPSLLD, e.VPSLLQ)(operand.U8(form(e.machine, 23, 52)), n, n)
}

// exp applies 2ⁿ in two factors where no instruction does, since n may lie below the exponents. x is
// overwritten.
func (e *exponential) exp(x, to reg.Register) {
	e.atLeast(expFloor, x)
	e.reduce(x)
	e.polynomial(e.first(), one, x, to)
	if e.wide {
		form(e.machine, e.VSCALEFPS, e.VSCALEFPD)(e.n, to, to)
		return
	}
	e.move(e.constant(expBias), e.half)
	e.fma(e.constant(expHalf), e.n, e.half)
	e.less(expBias, e.half, e.scratch)
	e.minus(e.n, e.scratch, e.n)
	e.plus(e.n, e.constant(expBias), e.n)
	e.power(e.half)
	e.power(e.n)
	e.times(to, e.half, to)
	e.times(to, e.n, to)
}

// lessOne is e^x - 1 for x from tanhFloor to 0: 2ⁿ·p + (2ⁿ - 1) with p = e^r - 1, of which nothing
// cancels. x is overwritten.
func (e *exponential) lessOne(x, to reg.Register) {
	e.reduce(x)
	e.polynomial(e.first(), one-1, x, to)
	e.times(x, to, to)
	e.plus(e.n, e.constant(expBias), e.n)
	e.power(e.n)
	e.less(one, e.n, e.half)
	form(e.machine, e.VFMADD213PS, e.VFMADD213PD)(e.half, e.n, to)
}
