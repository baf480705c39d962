package main

import "github.com/mmcloughlin/avo/reg"

// Transforms of a line, in place as far as it goes. With the points 0, ±p, ±q and ∞, a = p² and
// b = q², the constants are as package simd lists them for each transform.

// data is B' of six values:
//
//	ab·d0 - (a+b)·d2 + d4, (d4 - b·d2) ± p·(d3 - b·d1), (d4 - a·d2) ± q·(d3 - a·d1), ab·d1 - (a+b)·d3 + d5
//
// with the constants ab, a+b, a, b, p, q.
func (l *winogradLoop) data() []reg.Register {
	ab, sum, a, b, p, q := l.c(0), l.c(1), l.c(2), l.c(3), l.c(4), l.c(5)
	d0, d1, d2, d3, d4, d5, e, f := l.v(0), l.v(1), l.v(2), l.v(3), l.v(4), l.v(5), l.v(6), l.v(7)
	l.VFMADD213PS(d4, ab, d0)
	l.VFNMADD231PS(sum, d2, d0)
	l.VFMADD231PS(ab, d1, d5)
	l.VFNMADD231PS(sum, d3, d5)
	l.move(d4, e)
	l.VFNMADD231PS(b, d2, e)
	l.move(d3, f)
	l.VFNMADD231PS(b, d1, f)
	l.VFNMADD231PS(a, d2, d4)
	l.VFNMADD231PS(a, d1, d3)
	l.either(e, f, p, d1)
	l.either(d4, d3, q, d2)
	return []reg.Register{d0, d1, e, d2, d4, d5}
}

// either sets to to x + c·y and x to x - c·y.
func (l *winogradLoop) either(x, y, c, to reg.Register) {
	l.move(x, to)
	l.VFMADD231PS(c, y, to)
	l.VFNMADD231PS(c, y, x)
}

// gradient is A of four values:
//
//	d0, (d0 + a·d2) ± p·(d1 + a·d3), (d0 + b·d2) ± q·(d1 + b·d3), d3
//
// with the constants a, b, p, q.
func (l *winogradLoop) gradient() []reg.Register {
	a, b, p, q := l.c(0), l.c(1), l.c(2), l.c(3)
	d0, d1, d2, d3, e, f, g, to := l.v(0), l.v(1), l.v(2), l.v(3), l.v(4), l.v(5), l.v(6), l.v(7)
	l.move(d0, e)
	l.VFMADD231PS(a, d2, e)
	l.move(d1, f)
	l.VFMADD231PS(a, d3, f)
	l.move(d0, g)
	l.VFMADD231PS(b, d2, g)
	l.VFMADD231PS(b, d3, d1)
	l.either(e, f, p, d2)
	l.either(g, d1, q, to)
	return []reg.Register{d0, d2, e, to, g, d3}
}

// filter is G of three values: with u = 1/(2a(a-b)) and v = 1/(2b(b-a)),
//
//	d0/(ab), (u·d0 + ua·d2) ± up·d1, (v·d0 + vb·d2) ± vq·d1, d2
//
// with the constants 1/(ab), u, ua, up, v, vb, vq.
func (l *winogradLoop) filter() []reg.Register {
	inverse, u, ua, up, v, vb, vq := l.c(0), l.c(1), l.c(2), l.c(3), l.c(4), l.c(5), l.c(6)
	d0, d1, d2, e, f, o1, o3 := l.v(0), l.v(1), l.v(2), l.v(3), l.v(4), l.v(5), l.v(6)
	l.times(u, d0, e)
	l.VFMADD231PS(ua, d2, e)
	l.either(e, d1, up, o1)
	l.times(v, d0, f)
	l.VFMADD231PS(vb, d2, f)
	l.either(f, d1, vq, o3)
	l.times(inverse, d0, d0)
	return []reg.Register{d0, o1, e, o3, f, d2}
}

// ends sets, of the six values of a line, d1+d2, d1-d2, d3+d4 and d3-d4.
func (l *winogradLoop) ends() (e, f, g, h reg.Register) {
	d1, d2, d3, d4, e, g := l.v(1), l.v(2), l.v(3), l.v(4), l.v(6), l.v(7)
	l.plus(d1, d2, e)
	l.minus(d1, d2, d1)
	l.plus(d3, d4, g)
	l.minus(d3, d4, d3)
	return e, d1, g, d3
}

// result is A' of six values: with e, f, g, h = d1+d2, d1-d2, d3+d4, d3-d4,
//
//	d0 + e + g, p·f + q·h, a·e + b·g, ap·f + bq·h + d5
//
// with the constants a, b, p, q, ap, bq.
func (l *winogradLoop) result() []reg.Register {
	a, b, p, q, ap, bq := l.c(0), l.c(1), l.c(2), l.c(3), l.c(4), l.c(5)
	e, f, g, h := l.ends()
	d0, o1, o2, d5 := l.v(0), l.v(2), l.v(4), l.v(5)
	l.plus(d0, e, d0)
	l.plus(d0, g, d0)
	l.times(p, f, o1)
	l.VFMADD231PS(q, h, o1)
	l.times(a, e, o2)
	l.VFMADD231PS(b, g, o2)
	l.VFMADD231PS(ap, f, d5)
	l.VFMADD231PS(bq, h, d5)
	return []reg.Register{d0, o1, o2, d5}
}

// filterGradient is G' of six values: with e, f, g, h as in result,
//
//	d0/(ab) + u·e + v·g, up·f + vq·h, ua·e + vb·g + d5
//
// with the constants of filter.
func (l *winogradLoop) filterGradient() []reg.Register {
	inverse, u, ua, up, v, vb, vq := l.c(0), l.c(1), l.c(2), l.c(3), l.c(4), l.c(5), l.c(6)
	e, f, g, h := l.ends()
	d0, o1, d5 := l.v(0), l.v(2), l.v(5)
	l.times(inverse, d0, d0)
	l.VFMADD231PS(u, e, d0)
	l.VFMADD231PS(v, g, d0)
	l.times(up, f, o1)
	l.VFMADD231PS(vq, h, o1)
	l.VFMADD231PS(ua, e, d5)
	l.VFMADD231PS(vb, g, d5)
	return []reg.Register{d0, o1, d5}
}
