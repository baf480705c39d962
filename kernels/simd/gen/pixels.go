package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Pixels go along the pixels with one vector of channels, which may be the last one
// of some elements only.

func pixelsAVX2(c *build.Context)   { pixels(c, false) }
func pixelsAVX512(c *build.Context) { pixels(c, true) }

func pixels(c *build.Context, wide bool) {
	for _, m := range machines(c, wide) {
		m.multiplyAdd("multiplyAdd"+m.name(), "adds the product of two pixels to each pixel.", false)
		m.multiplyAdd("multiplySum"+m.name(), "adds the products of all pixels to one.", true)
	}
}

// multiplyAdd writes a loop whose results are one for each pixel, or a sum that stays in a register.
func (m machine) multiplyAdd(name, doc string, sum bool) {
	m.function(name, "pixelArgs", doc, args)
	field := fields(args, "c", "a", "b", "pixels", "cPixel", "aPixel", "bPixel", "mask")
	left, mask := reg.R12, reg.Register(reg.K1)
	if !m.wide {
		mask = m.v(15)
	}
	m.MOVQ(field("mask"), left)
	m.loadMask(left, mask)
	at := []reg.GPPhysical{reg.RSI, reg.R8, reg.R9}
	step := []reg.GPPhysical{reg.R10, reg.R11, reg.RBX}
	for i, name := range []string{"c", "a", "b"} {
		m.MOVQ(field(name), at[i])
		m.MOVQ(field(name+"Pixel"), step[i])
	}
	memory := func(i int) operand.Mem { return operand.Mem{Base: at[i]} }
	m.MOVQ(field("pixels"), left)
	m.load(memory(0), mask, m.v(0))
	m.Label("pixel")
	m.load(memory(1), mask, m.v(1))
	m.load(memory(2), mask, m.v(2))
	m.fma(m.v(1), m.v(2), m.v(0))
	m.ADDQ(step[1], at[1])
	m.ADDQ(step[2], at[2])
	if !sum {
		m.store(m.v(0), mask, memory(0))
		m.ADDQ(step[0], at[0])
	}
	m.DECQ(left)
	if !sum {
		m.JE(operand.LabelRef("done"))
		m.load(memory(0), mask, m.v(0))
		m.JMP(operand.LabelRef("pixel"))
		m.Label("done")
	} else {
		m.JNE(operand.LabelRef("pixel"))
		m.store(m.v(0), mask, memory(0))
	}
	m.VZEROUPPER()
	m.RET()
}
