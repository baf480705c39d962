package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Pixels go along the pixels with one vector of channels, which may be the last one
// of some elements only.

func pixels(m machine) {
	m.multiplyAdd("multiplyAdd"+m.name(), "adds the product of two pixels to each pixel.", false)
	m.multiplyAdd("multiplySum"+m.name(), "adds the products of all pixels to one.", true)
}

// multiplyAdd writes a loop with a result for each pixel, or with a sum in a register.
func (m machine) multiplyAdd(name, doc string, sum bool) {
	l := m.begin(name, "pixelArgs", doc, "c", "a", "b", "pixels", "cPixel", "aPixel", "bPixel", "mask")
	left := reg.R12
	l.setMask("mask", left)
	at := []reg.GPPhysical{reg.RSI, reg.R8, reg.R9}
	step := []reg.GPPhysical{reg.R10, reg.R11, reg.RBX}
	for i, name := range []string{"c", "a", "b"} {
		l.MOVQ(l.field(name), at[i])
		l.MOVQ(l.field(name+"Pixel"), step[i])
	}
	load := func(i int) { l.load(operand.Mem{Base: at[i]}, l.mask(), l.v(i)) }
	store := func() { l.store(l.v(0), l.mask(), operand.Mem{Base: at[0]}) }
	l.MOVQ(l.field("pixels"), left)
	load(0)
	l.Label("pixel")
	load(1)
	load(2)
	l.fma(l.v(1), l.v(2), l.v(0))
	l.ADDQ(step[1], at[1])
	l.ADDQ(step[2], at[2])
	if sum {
		l.again(left, "pixel")
		store()
	} else {
		store()
		l.ADDQ(step[0], at[0])
		l.DECQ(left)
		l.JE(operand.LabelRef("done"))
		load(0)
		l.JMP(operand.LabelRef("pixel"))
		l.Label("done")
	}
	l.end()
}
