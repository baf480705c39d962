package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Loops of functions, see simd.Function, and of their gradients.

// functions has, for each, the value of v(2), which goes there. A gradient is the slope, of x or of
// y, times v(3).
var functions = []struct {
	name            string
	value, gradient func(*functionLoop)
}{
	{"tanh", (*functionLoop).tanh, (*functionLoop).tanhGradient},
	{"sigmoid", (*functionLoop).sigmoid, (*functionLoop).sigmoidGradient},
	{"gelu", (*functionLoop).gelu, (*functionLoop).geluGradient},
	{"geluTanh", (*functionLoop).geluTanh, (*functionLoop).geluTanhGradient},
	{"silu", (*functionLoop).silu, (*functionLoop).siluGradient},
	{"leakyReLU", (*functionLoop).leakyReLU, (*functionLoop).leakyReLUGradient},
}

// functionConstants is the last pointer of simd.runArgs.
var functionConstants = runPointers[3]

// functionLoop computes a vector in registers 2 and 3 and from 5 on.
type functionLoop struct {
	runLoop
	e exponential
}

func function(m machine) {
	for _, f := range functions {
		writeFunction(m, f.name, "computes "+f.name+".", []string{"y", "x"}, f.value)
		writeFunction(m, f.name+"Gradient", "computes the gradient of "+f.name+".", []string{"dx", "dy", "v"}, f.gradient)
	}
}

func writeFunction(m machine, name, doc string, operands []string, body func(*functionLoop)) {
	l := functionLoop{m.run(name+m.name(), doc, operands), exponential{m, functionConstants, m.v(11), m.v(12), m.v(13)}}
	result, last := operands[0], operands[len(operands)-1]
	l.walk(func() { l.MOVQ(l.field("p3"), functionConstants) }, func(masked bool) {
		l.get(masked, last, l.v(2))
		if len(operands) == 3 {
			l.get(masked, "dy", l.v(3))
		}
		body(&l)
		l.put(masked, l.v(2), result)
	})
}

func (l *functionLoop) load(constant int, to reg.Register) reg.Register {
	l.e.move(l.e.constant(constant), to)
	return to
}

// choose replaces otherwise by then where x is on a side of 0: lessThan or greaterThan. scratch is a
// register.
func (l *functionLoop) choose(side operand.U8, x, then, otherwise, scratch reg.Register) {
	selected := width(l.machine, scratch, reg.Register(reg.K2))
	l.zero(scratch)
	l.e.compare(side, x, scratch, selected)
	l.e.replace(selected, then, otherwise)
}

// tanh |x| is -m/(2+m), m = e^(-2|x|) - 1.
func (l *functionLoop) tanh() {
	x, a, m, sum := l.v(2), l.v(5), l.v(6), l.v(7)
	l.VANDPS(l.e.constant(absoluteBits), x, a)
	l.e.by(minusTwo, a, a)
	l.e.atLeast(tanhFloor, a)
	l.e.lessOne(a, m)
	l.plus(m, l.e.constant(two), sum)
	l.e.over(m, sum, m)
	l.VANDPS(l.e.constant(absoluteBits), m, m)
	l.VANDPS(l.e.constant(signBit), x, x)
	l.VORPS(m, x, x)
}

func (l *functionLoop) tanhGradient() {
	y, dy, slope := l.v(2), l.v(3), l.v(5)
	l.times(y, y, y)
	l.load(one, slope)
	l.minus(slope, y, slope)
	l.times(slope, dy, y)
}

// sigmoidOf is the sigmoid of v, which is overwritten, in to: e/(1+e) below 0 and 1/(1+e) above, e =
// e^-|v|.
func (l *functionLoop) sigmoidOf(v, to reg.Register) {
	a, e := l.v(5), l.v(6)
	l.VORPS(l.e.constant(signBit), v, a)
	l.e.exp(a, e)
	l.load(one, to)
	l.plus(e, to, l.v(7))
	l.choose(lessThan, v, e, to, a)
	l.e.over(to, l.v(7), to)
}

func (l *functionLoop) sigmoid() {
	l.sigmoidOf(l.v(2), l.v(8))
	l.e.move(l.v(8), l.v(2))
}

func (l *functionLoop) sigmoidGradient() {
	y, dy, rest := l.v(2), l.v(3), l.v(5)
	l.load(one, rest)
	l.minus(rest, y, rest)
	l.times(rest, y, y)
	l.times(y, dy, y)
}

// normal is Φ(x) in v(8) and e^(-x²/2) in v(6), see kernels.gelu. x stays in v(2).
func (l *functionLoop) normal() {
	x, a, e, square, below, t, s := l.v(2), l.v(5), l.v(6), l.v(7), l.v(8), l.v(9), l.v(10)
	l.VANDPS(l.e.constant(absoluteBits), x, a)
	l.e.atMost(normalMost, a)
	l.times(a, a, square)
	l.e.by(minusHalf, square, t)
	form(l.machine, l.VFMSUB231PS, l.VFMSUB231PD)(a, a, square) // what the square lost
	l.e.exp(t, e)
	l.load(one, t)
	l.fma(l.e.constant(minusHalf), square, t)
	l.times(t, e, e)

	l.load(normalScale, t)
	l.plus(a, t, a)
	l.e.over(t, a, t)
	l.plus(t, t, s)
	l.e.less(one, s, s)
	l.e.polynomial(normalFirst, normalFirst+form(l.machine, 9, 23), s, below)
	l.times(t, below, below)
	l.times(e, below, below)
	l.load(one, t)
	l.minus(t, below, t)
	l.choose(lessThan, x, below, t, a)
	l.e.move(t, below)
}

func (l *functionLoop) gelu() {
	l.normal()
	l.times(l.v(8), l.v(2), l.v(2))
}

func (l *functionLoop) geluGradient() {
	x, dy, e, distribution := l.v(2), l.v(3), l.v(6), l.v(8)
	l.normal()
	l.e.by(normalDensity, e, e)
	l.fma(x, e, distribution)
	l.times(distribution, dy, x)
}

// geluSigmoid is the sigmoid of √(8/π)·(x + 0.044715·x³) in v(8), and x² in v(9), which is bounded where
// the sigmoid is 0 or 1, lest it overflows.
func (l *functionLoop) geluSigmoid() {
	x, s, square, v := l.v(2), l.v(8), l.v(9), l.v(10)
	l.times(x, x, square)
	l.e.atMost(geluSquare, square)
	l.e.by(geluCube, square, v)
	l.times(x, v, v)
	l.plus(v, x, v)
	l.e.by(geluRoot, v, v)
	l.sigmoidOf(v, s)
}

func (l *functionLoop) geluTanh() {
	l.geluSigmoid()
	l.times(l.v(8), l.v(2), l.v(2))
}

// geluTanhGradient is s + x·s·(1-s)·v'.
func (l *functionLoop) geluTanhGradient() {
	x, dy, s, square, rest := l.v(2), l.v(3), l.v(8), l.v(9), l.v(10)
	l.geluSigmoid()
	l.load(geluCubeSlope, rest)
	l.times(rest, square, square)
	l.plus(square, l.e.constant(one), square)
	l.e.by(geluRoot, square, square)
	l.load(one, rest)
	l.minus(rest, s, rest)
	l.times(s, rest, rest)
	l.times(x, rest, rest)
	l.fma(rest, square, s)
	l.times(s, dy, x)
}

func (l *functionLoop) silu() {
	l.sigmoidOf(l.v(2), l.v(8))
	l.times(l.v(8), l.v(2), l.v(2))
}

// siluGradient is s + x·s·(1-s).
func (l *functionLoop) siluGradient() {
	x, dy, s, rest := l.v(2), l.v(3), l.v(8), l.v(10)
	l.sigmoidOf(x, s)
	l.load(one, rest)
	l.minus(rest, s, rest)
	l.times(s, rest, rest)
	l.fma(x, rest, s)
	l.times(s, dy, x)
}

// leakyReLU multiplies by the setting where x is not above 0.
func (l *functionLoop) leakyReLU() {
	x, product := l.v(2), l.v(5)
	l.e.broadcast(l.field("s0"), product)
	l.times(x, product, product)
	l.choose(greaterThan, x, x, product, l.v(6))
	l.e.move(product, x)
}

func (l *functionLoop) leakyReLUGradient() {
	x, dy, slope := l.v(2), l.v(3), l.v(5)
	l.e.broadcast(l.field("s0"), slope)
	l.choose(greaterThan, x, l.load(one, l.v(7)), slope, l.v(6))
	l.times(slope, dy, x)
}
