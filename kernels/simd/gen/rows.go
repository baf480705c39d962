package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Loops over rows of scores and of normalised features, see simd.RowMaximum and others. They compute in the elements' type. Results
// over a row are vectors that plain Go adds up, at the last pointer.

func rows(m machine) {
	for _, f := range []struct {
		name, doc string
		operands  []string
		body      func(*rowLoop)
	}{
		{"rowMaximum", "finds the greatest element.", []string{"x"}, (*rowLoop).maximum},
		{"rowExponentials", "computes exponentials and their sum.", []string{"y", "x"}, (*rowLoop).exponentials},
		{"rowGradient", "computes the gradient of scores.", []string{"a", "d"}, (*rowLoop).gradient},
		{"rowSums", "adds up elements.", []string{"x"}, (*rowLoop).sums},
		{"rowSquares", "adds up squares of differences.", []string{"x"}, (*rowLoop).squares},
		{"rowNormalise", "normalises features.", []string{"y", "x", "w", "b"}, (*rowLoop).normalise},
		{"rowNormProducts", "adds up the gradient of normalised features and its products with these.", []string{"x", "dy", "w"}, (*rowLoop).products},
		{"rowNormGradient", "computes the gradient of features.", []string{"dx", "x", "dy", "w"}, (*rowLoop).normGradient},
		{"rowNormWeights", "adds to the gradients of weight and bias.", []string{"dw", "x", "dy", "db"}, (*rowLoop).weights},
	} {
		f.body(&rowLoop{runLoop: m.run(f.name+m.name(), f.doc, f.operands)})
	}
}

type rowLoop struct{ runLoop }

// Field s8 has the address of the constants, and the last pointer is the address of the results.
const (
	rowConstantsAt = "s8"
	rowResults     = "p3"
)

// flagBias says that there is a bias, see simd.rowBias.
const flagBias = 0

// scalar is the register with a vector of scalar n, and total one of two with a sum over the row.
func (l *rowLoop) scalar(n int) reg.Register { return l.v(8 + n) }
func (l *rowLoop) total(n int) reg.Register  { return l.v(6 + n) }

// over runs the body with some scalars, and stores some totals at the end.
func (l *rowLoop) over(scalars, totals int, body func(masked bool)) {
	l.from(scalars, totals, l.zero, body)
}

// from is over with totals that begin otherwise.
func (l *rowLoop) from(scalars, totals int, begin func(reg.Register), body func(masked bool)) {
	for i := range l.operands {
		l.MOVQ(l.field(numbered("p", i)), runPointers[i])
	}
	l.MOVQ(l.field("flags"), runFlags)
	l.MOVQ(l.field(rowConstantsAt), rowConstants)
	l.setMask("mask", runLeft)
	l.scalars(8, scalars)
	for i := range totals {
		begin(l.total(i))
	}
	l.vectors(runLeft, "done", body, func() {
		for i := range l.operands {
			l.ADDQ(operand.Imm(uint64(l.bytes())), runPointers[i])
		}
	})
	if totals > 0 {
		l.MOVQ(l.field(rowResults), runLeft)
	}
	for i := range totals {
		l.move(l.total(i), operand.Mem{Base: runLeft, Disp: i * l.bytes()})
	}
	l.end()
}

// bias loads an operand that only some calls have, or 0.
func (l *rowLoop) bias(masked bool, name string, to reg.Register) {
	l.zero(to)
	l.when(flagBias, runFlags, func() { l.get(masked, name, to) })
}

// only sets to 0 what the mask does not select.
func (l *rowLoop) only(masked bool, v reg.Register) {
	if masked {
		l.pass(l.mask(), v, v)
	}
}

// maximum replaces elements beyond the mask by scalar 0, an element of the row.
func (l *rowLoop) maximum() {
	begin := func(total reg.Register) { l.move(l.scalar(0), total) }
	l.from(1, 1, begin, func(masked bool) {
		x := l.v(0)
		if !masked {
			l.get(false, "x", x)
		} else {
			l.get(true, "x", l.v(1))
			l.move(l.scalar(0), x)
			l.replace(l.mask(), l.v(1), x)
		}
		form(l.machine, l.VMAXPS, l.VMAXPD)(x, l.total(0), l.total(0))
	})
}

// exponential is e^v in the elements' type, for v from -87 to 88 in float32. The constants of float32 are in simd.rowConstants. Both n and a
// remainder need a register.
func (l *rowLoop) exponential(v, to reg.Register) {
	n, rest := l.v(4), l.v(5)
	at := func(constant int) operand.Mem {
		return operand.Mem{Base: rowConstants, Disp: 64 * constant}
	}
	if l.f64 {
		e := exponential{l.machine, rowConstants, n, rest, l.v(3)}
		e.exp(v, to)
		return
	}
	l.move(at(0), to)
	l.VMAXPS(v, to, v) // NaN stays
	l.move(at(2), n)
	l.VFMADD231PS(at(1), v, n)
	l.VSUBPS(at(2), n, rest)
	l.VFNMADD231PS(at(3), rest, v)
	l.VFNMADD231PS(at(4), rest, v)
	l.move(at(5), to)
	for c := 6; c <= 12; c++ {
		l.VFMADD213PS(at(c), v, to)
	}
	l.VPSLLD(operand.U8(23), n, n)
	l.VPADDD(n, to, to)
}

// rowConstants is the register with the address of the constants.
var rowConstants = reg.R13

// exponentials computes exp(s0·x - s1).
func (l *rowLoop) exponentials() {
	l.over(2, 1, func(masked bool) {
		x, e := l.v(0), l.v(1)
		l.get(masked, "x", x)
		l.times(x, l.scalar(0), x)
		l.minus(x, l.scalar(1), x)
		l.exponential(x, e)
		l.only(masked, e)
		l.plus(l.total(0), e, l.total(0))
		l.put(masked, e, "y")
	})
}

// gradient replaces a by p = exp(a·s0 - s1) and d by p·(d - s2)·s0.
func (l *rowLoop) gradient() {
	l.over(3, 0, func(masked bool) {
		a, p, d := l.v(0), l.v(1), l.v(2)
		l.get(masked, "a", a)
		l.times(a, l.scalar(0), a)
		l.minus(a, l.scalar(1), a)
		l.exponential(a, p)
		l.put(masked, p, "a")
		l.get(masked, "d", d)
		l.minus(d, l.scalar(2), d)
		l.times(d, p, d)
		l.times(d, l.scalar(0), d)
		l.put(masked, d, "d")
	})
}

func (l *rowLoop) sums() {
	l.over(0, 1, func(masked bool) {
		l.get(masked, "x", l.v(0))
		l.plus(l.total(0), l.v(0), l.total(0))
	})
}

// squares adds up (x - s0)².
func (l *rowLoop) squares() {
	l.over(1, 1, func(masked bool) {
		d := l.v(0)
		l.get(masked, "x", d)
		l.minus(d, l.scalar(0), d)
		l.only(masked, d)
		l.fma(d, d, l.total(0))
	})
}

// normal is (x - s0)·s1.
func (l *rowLoop) normal(masked bool, to reg.Register) {
	l.get(masked, "x", to)
	l.minus(to, l.scalar(0), to)
	l.times(to, l.scalar(1), to)
}

// normalise is w·normal + b.
func (l *rowLoop) normalise() {
	l.over(2, 0, func(masked bool) {
		y, w, b := l.v(0), l.v(1), l.v(2)
		l.normal(masked, y)
		l.get(masked, "w", w)
		l.bias(masked, "b", b)
		l.fma(w, y, b)
		l.put(masked, b, "y")
	})
}

// products are sums of g = w·dy and of g·normal. What the mask does not select has w = 0.
func (l *rowLoop) products() {
	l.over(2, 2, func(masked bool) {
		n, g, w := l.v(0), l.v(1), l.v(2)
		l.normal(masked, n)
		l.get(masked, "dy", g)
		l.get(masked, "w", w)
		l.times(g, w, g)
		l.plus(l.total(0), g, l.total(0))
		l.fma(g, n, l.total(1))
	})
}

// normGradient is s1·(g - s2 - normal·s3).
func (l *rowLoop) normGradient() {
	l.over(4, 0, func(masked bool) {
		n, g, w := l.v(0), l.v(1), l.v(2)
		l.normal(masked, n)
		l.get(masked, "dy", g)
		l.get(masked, "w", w)
		l.times(g, w, g)
		l.minus(g, l.scalar(2), g)
		l.times(n, l.scalar(3), n)
		l.minus(g, n, g)
		l.times(g, l.scalar(1), g)
		l.put(masked, g, "dx")
	})
}

// weights adds dy·normal to dw and dy to db.
func (l *rowLoop) weights() {
	l.over(2, 0, func(masked bool) {
		n, g, sum := l.v(0), l.v(1), l.v(2)
		l.normal(masked, n)
		l.get(masked, "dy", g)
		l.get(masked, "dw", sum)
		l.fma(g, n, sum)
		l.put(masked, sum, "dw")
		l.when(flagBias, runFlags, func() {
			l.get(masked, "db", sum)
			l.plus(sum, g, sum)
			l.put(masked, sum, "db")
		})
	})
}
