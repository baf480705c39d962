package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Predicates of comparisons; none signals.
const (
	equal          = operand.U8(0x00)
	lessThan       = operand.U8(0x11)
	lessOrEqual    = operand.U8(0x12)
	notLessOrEqual = operand.U8(0x16) // or one is NaN
	neitherIsNaN   = operand.U8(0x07)
	greaterThan    = operand.U8(0x1e)
)

// compare sets to where a and b are as the predicate says.
func (m machine) compare(predicate operand.U8, a, b, to reg.Register) {
	form(m, m.VCMPPS, m.VCMPPD)(predicate, b, a, to)
}

// replace moves the elements of from that the mask selects.
func (m machine) replace(mask, from, to reg.Register) {
	if m.wide {
		form(m, m.VMOVAPS, m.VMOVAPD)(from, mask, to)
	} else {
		form(m, m.VBLENDVPS, m.VBLENDVPD)(mask, from, to, to)
	}
}

// selection is a register for what a comparison gives: a vector, or an opmask.
func (m machine) selection(vector int, opmask reg.Register) reg.Register {
	return width(m, m.v(vector), opmask)
}

// pass sets to to the elements of from that the mask selects, and the others to 0.
func (m machine) pass(mask, from, to reg.Register) {
	if m.wide {
		form(m, m.VMOVAPS_Z, m.VMOVAPD_Z)(from, mask, to)
	} else {
		m.VANDPS(from, mask, to)
	}
}

// equalInt sets to where integers as wide as the elements are equal.
func (m machine) equalInt(a, b, to reg.Register) { form(m, m.VPCMPEQD, m.VPCMPEQQ)(a, b, to) }

// addInt adds integers as wide as the elements.
func (m machine) addInt(a, b, to reg.Register) { form(m, m.VPADDD, m.VPADDQ)(a, b, to) }

// read loads a vector, or what a mask selects of it.
func (m machine) read(masked bool, mask reg.Register, from operand.Mem, to reg.Register) {
	if masked {
		m.load(from, mask, to)
	} else {
		m.move(from, to)
	}
}

// write stores a vector, or what a mask selects of it.
func (m machine) write(masked bool, mask reg.Register, from reg.Register, to operand.Mem) {
	if masked {
		m.store(from, mask, to)
	} else {
		m.move(from, to)
	}
}

// loadMask makes a mask of what Level.mask gives: bits, or the address of a vector.
func (m machine) loadMask(from, mask reg.Register) {
	if m.wide {
		m.KMOVQ(from, mask)
	} else {
		m.move(operand.Mem{Base: from}, mask)
	}
}
