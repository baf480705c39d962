package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loop of simd.softmaxBlock has a sample in each element of its vectors and a class
// in each vector: no sum, maximum or quotient goes across a vector.

func softmaxAVX2(c *build.Context)   { softmax(c, false) }
func softmaxAVX512(c *build.Context) { softmax(c, true) }

func softmax(c *build.Context, wide bool) {
	for _, m := range machines(c, wide) {
		l := softmaxLoop{poolLoop{machine: m}}
		l.function("softmax"+m.name(), "softmaxArgs", "computes softmax and gradient of some samples.", args)
		l.field = fields(args, "block", "rest", "classes", "gradient", "batch", "one", "keep", "share", "constants")
		l.MOVQ(l.field("rest"), softmaxRest)
		l.MOVQ(l.field("constants"), softmaxConstants)
		l.maxima()
		l.exponentials()
		l.CMPQ(l.field("gradient"), operand.Imm(0))
		l.JE(operand.LabelRef("done"))
		l.gradients()
		l.Label("done")
		l.VZEROUPPER()
		l.RET()
	}
}

var (
	softmaxBlock     = reg.RSI
	softmaxRest      = reg.R8
	softmaxConstants = reg.R9
	softmaxLeft      = reg.R10
)

type softmaxLoop struct{ poolLoop }

// rest is a vector behind the block: what is known of each sample.
func (l *softmaxLoop) rest(n int) operand.Mem {
	return operand.Mem{Base: softmaxRest, Disp: n * l.bytes()}
}

// Vectors behind the block.
const (
	restMost = iota
	restClass
	restSum
	restLabel
)

// classes runs a body for each class from the first or the second, whose vector the
// block pointer is at.
func (l *softmaxLoop) classes(label string, first int, body func(at operand.Mem)) {
	done := label + "Done"
	l.MOVQ(l.field("block"), softmaxBlock)
	l.MOVQ(l.field("classes"), softmaxLeft)
	if first > 0 {
		l.ADDQ(operand.Imm(uint64(l.bytes())), softmaxBlock)
		l.DECQ(softmaxLeft)
		l.JE(operand.LabelRef(done))
	}
	l.Label(label)
	body(operand.Mem{Base: softmaxBlock})
	l.ADDQ(operand.Imm(uint64(l.bytes())), softmaxBlock)
	l.DECQ(softmaxLeft)
	l.JNE(operand.LabelRef(label))
	l.Label(done)
}

// maxima finds the first maximum of each sample and its class, a number of the
// elements' type.
func (l *softmaxLoop) maxima() {
	class, one := l.v(5), l.v(6)
	l.MOVQ(l.field("block"), softmaxBlock)
	l.move(operand.Mem{Base: softmaxBlock}, l.most())
	l.zero(l.index())
	l.zero(class)
	l.broadcast(l.field("one"), one)
	l.classes("maximum", 1, func(at operand.Mem) {
		l.plus(class, one, class)
		l.move(at, l.pixel())
		l.takeGreater(class)
	})
	l.move(l.most(), l.rest(restMost))
	l.move(l.index(), l.rest(restClass))
}

// exponentials replaces z by exp(z - most) and adds them up.
func (l *softmaxLoop) exponentials() {
	sum, most, x := l.v(8), l.v(9), l.v(5)
	l.zero(sum)
	l.move(l.rest(restMost), most)
	l.classes("exponential", 0, func(at operand.Mem) {
		l.move(at, x)
		l.minus(x, most, x)
		if l.f64 {
			l.exp(x, l.v(6))
		} else {
			l.expHalves(x, l.v(6), l.v(7))
		}
		l.move(l.v(6), at)
		l.plus(sum, l.v(6), sum)
	})
	l.move(sum, l.rest(restSum))
}

// expHalves computes float32 exponentials as float64; to and high are registers.
func (l *softmaxLoop) expHalves(x, to, high reg.Register) {
	low := func(v reg.Register) reg.Register { // half of a register
		if l.wide {
			return v.(reg.Vec).AsY()
		}
		return v.(reg.Vec).AsX()
	}
	l.VCVTPS2PD(low(x), l.v(10))
	if l.wide {
		l.VEXTRACTF64X4(otherHalf, x, low(x))
	} else {
		l.VEXTRACTF128(otherHalf, x, low(x))
	}
	l.VCVTPS2PD(low(x), l.v(11))
	l.exp(l.v(10), to)
	l.exp(l.v(11), high)
	if l.wide {
		l.VCVTPD2PS(to, low(to))
		l.VCVTPD2PS(high, low(high))
		l.VINSERTF64X4(otherHalf, low(high), to, to)
	} else {
		l.VCVTPD2PSY(to, low(to))
		l.VCVTPD2PSY(high, low(high))
		l.VINSERTF128(otherHalf, low(high), to, to)
	}
}

// Constants of the exponential in simd.expConstants, each as often as a vector holds.
const (
	expFloor = iota
	expLog2E
	expRound
	expLn2High
	expLn2Low
	expHalf
	expBias
	expPolynomial
	expLast = expPolynomial + 13
)

func (l *softmaxLoop) constantOf(n int) operand.Mem {
	return operand.Mem{Base: softmaxConstants, Disp: 64 * n}
}

// exp computes exp(x) of float64 for x of at most 0: x = n·ln 2 + r, and a polynomial
// in r times 2ⁿ, in two factors since n may lie below the exponents. x is overwritten.
func (l *softmaxLoop) exp(x, to reg.Register) {
	n, half, scratch := l.v(12), l.v(13), l.v(14)
	load := func(c int, v reg.Register) reg.Register { l.move(l.constantOf(c), v); return v }
	l.VMAXPD(x, load(expFloor, scratch), x) // NaN stays
	load(expRound, n)
	l.VFMADD231PD(l.constantOf(expLog2E), x, n)
	l.VSUBPD(l.constantOf(expRound), n, n)
	l.VFNMADD231PD(l.constantOf(expLn2High), n, x)
	l.VFNMADD231PD(l.constantOf(expLn2Low), n, x)
	load(expPolynomial, to)
	for c := expPolynomial + 1; c <= expLast; c++ {
		l.VFMADD213PD(l.constantOf(c), x, to)
	}
	load(expBias, half)
	l.VFMADD231PD(l.constantOf(expHalf), n, half)
	l.VSUBPD(l.constantOf(expBias), half, scratch)
	l.VSUBPD(scratch, n, n)
	l.VADDPD(l.constantOf(expBias), n, n)
	l.VPSLLQ(operand.U8(52), half, half)
	l.VPSLLQ(operand.U8(52), n, n)
	l.VMULPD(half, to, to)
	l.VMULPD(n, to, to)
}

// gradients replaces e by (e/sum - share - keep·[class is the label])/batch.
func (l *softmaxLoop) gradients() {
	class, one, sum, batch, label := l.v(5), l.v(6), l.v(8), l.v(9), l.v(10)
	p, less, keep, share := l.v(0), l.v(1), l.v(11), l.v(12)
	selected := reg.Register(reg.K2)
	if !l.wide {
		selected = l.v(3)
	}
	l.zero(class)
	l.broadcast(l.field("one"), one)
	l.broadcast(l.field("batch"), batch)
	l.broadcast(l.field("keep"), keep)
	l.broadcast(l.field("share"), share)
	l.move(l.rest(restSum), sum)
	l.move(l.rest(restLabel), label)
	l.classes("gradient", 0, func(at operand.Mem) {
		l.move(at, p)
		l.over(p, sum, p)
		l.minus(p, share, p)
		l.minus(p, keep, less)
		l.compare(equal, class, label, selected)
		l.replace(selected, less, p)
		l.over(p, batch, p)
		l.move(p, at)
		l.plus(class, one, class)
	})
}
