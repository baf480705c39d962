package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Depthwise keep one vector of channels of some neighbouring pixels in registers. For every tap they
// load a vector of B, and multiply it with a vector of each pixel. Where sums begin, and how they end, is as in the
// loops of simd.Product, of which a pixel is a row here.

// depthwiseRows is the most pixels of a block.
const depthwiseRows = 8

// depthwiseFields are the fields of simd.depthwiseArgs.
var depthwiseFields = []string{
	"a", "b", "c", "start", "where", "aAt", "cAt", "startAt", "whereAt", "blocks", "groups", "left", "rows",
	"aRow", "aBlock", "aGroup", "cRow", "cBlock", "cGroup", "startRow", "startBlock", "startGroup", "whereRow", "whereBlock", "whereGroup",
	"tapRows", "tapColumns", "aTapRow", "aTapColumn", "bTapRow", "bTapColumn", "relu", "mask", "last", "packed",
}

func depthwise(m machine) {
	p := productLoop{nv: 1}
	p.loop = m.begin("depthwise"+m.name(), "depthwiseArgs", "computes "+fmt.Sprintf("blocks of 1 to %d pixels.", depthwiseRows), depthwiseFields...)
	p.MOVQ(p.field("aRow"), row)
	p.LEAQ(operand.Mem{Base: row, Index: row, Scale: 2}, row3)
	p.LEAQ(operand.Mem{Base: row, Index: row, Scale: 4}, row5)
	p.LEAQ(operand.Mem{Base: row, Index: row3, Scale: 2}, row7)
	p.MOVQ(p.field("aTapColumn"), aStep)
	p.MOVQ(p.field("bTapColumn"), bRow)
	p.setMask("mask", batch)
	p.MOVQ(p.field("rows"), batch)
	choose(p.machine, 1, depthwiseRows)
	for p.m = 1; p.m <= depthwiseRows; p.m++ {
		p.pixels()
	}
}

// pixels computes all blocks of m pixels, of all groups.
func (p *productLoop) pixels() {
	m := p.m
	p.label = func(name string) string { return fmt.Sprintf("%s%d", name, m) }
	p.Label(p.label("rows"))
	p.start()
	p.pointer("a", "aAt", aOfBatch)
	p.MOVQ(p.field("b"), bOfThis)
	p.MOVQ(p.field("tapRows"), batch)
	p.eitherEnd("taps", p.taps)
	p.finish()
	p.advanceAll("Block")
	p.again(p.field("left"), p.label("rows"))
	p.advanceAll("Group")
	p.MOVQ(p.field("blocks"), batch)
	p.MOVQ(batch, p.field("left"))
	p.again(p.field("groups"), p.label("rows"))
	p.end()
}

// taps adds the products of all taps.
func (p *productLoop) taps() {
	factor, pixel := p.v(p.m), p.v(p.m+1)
	p.Label(p.label("tapRow"))
	p.MOVQ(aOfBatch, a0)
	p.MOVQ(bOfThis, b)
	p.MOVQ(p.field("tapColumns"), depth)
	p.Label(p.label("tap"))
	p.read(p.masked, p.mask(), operand.Mem{Base: b}, factor)
	for i := range p.m {
		switch {
		case !p.masked:
			p.fma(rowOf(i), factor, p.sum(i, 0))
		case p.wide:
			p.fmaMasked(rowOf(i), factor, p.mask(), p.sum(i, 0))
		default:
			p.load(rowOf(i), p.mask(), pixel)
			p.fma(pixel, factor, p.sum(i, 0))
		}
	}
	p.ADDQ(aStep, a0)
	p.ADDQ(bRow, b)
	p.again(depth, p.label("tap"))
	p.ADDQ(p.field("aTapRow"), aOfBatch)
	p.ADDQ(p.field("bTapRow"), bOfThis)
	p.again(batch, p.label("tapRow"))
}

// fmaMasked adds a·b to the elements of sum that a mask selects; AVX-512 only.
func (m machine) fmaMasked(a operand.Mem, b, mask, sum reg.Register) {
	form(m, m.VFMADD231PS, m.VFMADD231PD)(a, b, mask, sum)
}
