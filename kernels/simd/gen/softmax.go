package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loop of simd.softmaxBlock has a sample in each element of its vectors and a class
// in each vector: no sum, maximum or quotient goes across a vector.

func softmax(m machine) {
	l := softmaxLoop{poolLoop{m.begin("softmax"+m.name(), "softmaxArgs", "computes softmax and gradient of some samples.",
		"block", "rest", "classes", "gradient", "batch", "one", "keep", "share", "constants")}}
	l.MOVQ(l.field("rest"), softmaxRest)
	l.MOVQ(l.field("constants"), softmaxConstants)
	l.maxima()
	l.exponentials()
	l.ifZero("gradient", "done")
	l.gradients()
	l.Label("done")
	l.end()
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
	l.again(softmaxLeft, label)
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
	e := exponential{l.machine, softmaxConstants, l.v(12), l.v(13), l.v(14)}
	l.zero(sum)
	l.move(l.rest(restMost), most)
	l.classes("exponential", 0, func(at operand.Mem) {
		l.move(at, x)
		l.minus(x, most, x)
		e.exp(x, l.v(6))
		l.move(l.v(6), at)
		l.plus(sum, l.v(6), sum)
	})
	l.move(sum, l.rest(restSum))
}

// gradients replaces e by (e/sum - share - keep·[class is the label])/batch.
func (l *softmaxLoop) gradients() {
	class, one, sum, batch, label := l.v(5), l.v(6), l.v(8), l.v(9), l.v(10)
	p, less, keep, share := l.v(0), l.v(1), l.v(11), l.v(12)
	selected := l.selection(3, reg.K2)
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
