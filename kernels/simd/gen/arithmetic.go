package main

import "github.com/mmcloughlin/avo/reg"

// Arithmetic on vectors, each operation rounded.

// plus sets to to a + b.
func (m machine) plus(a, b, to reg.Register) {
	if m.f64 {
		m.VADDPD(b, a, to)
	} else {
		m.VADDPS(b, a, to)
	}
}

// minus sets to to a - b.
func (m machine) minus(a, b, to reg.Register) {
	if m.f64 {
		m.VSUBPD(b, a, to)
	} else {
		m.VSUBPS(b, a, to)
	}
}

// times sets to to a·b.
func (m machine) times(a, b, to reg.Register) {
	if m.f64 {
		m.VMULPD(b, a, to)
	} else {
		m.VMULPS(b, a, to)
	}
}

// over sets to to a/b.
func (m machine) over(a, b, to reg.Register) {
	if m.f64 {
		m.VDIVPD(b, a, to)
	} else {
		m.VDIVPS(b, a, to)
	}
}

func (m machine) squareRoot(a, to reg.Register) {
	if m.f64 {
		m.VSQRTPD(a, to)
	} else {
		m.VSQRTPS(a, to)
	}
}
