package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Arithmetic on vectors, each operation rounded.

// plus sets to to a + b.
func (m machine) plus(a reg.Register, b operand.Op, to reg.Register) {
	form(m, m.VADDPS, m.VADDPD)(b, a, to)
}

// minus sets to to a - b.
func (m machine) minus(a, b, to reg.Register) { form(m, m.VSUBPS, m.VSUBPD)(b, a, to) }

// times sets to to a·b.
func (m machine) times(a, b, to reg.Register) { form(m, m.VMULPS, m.VMULPD)(b, a, to) }

// over sets to to a/b.
func (m machine) over(a, b, to reg.Register) { form(m, m.VDIVPS, m.VDIVPD)(b, a, to) }

func (m machine) squareRoot(a, to reg.Register) { form(m, m.VSQRTPS, m.VSQRTPD)(a, to) }
