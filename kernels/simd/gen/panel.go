package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops for products in blocks multiply packed rows of A with a packed panel of B. The operands of steps lie one behind the other. So several steps
// share one count and one advance of the pointers. Where another thread shares the core, a processor starts three instructions per cycle instead of six. With a count and two
// pointers in each step the twelve products of a step would then take eight cycles instead of seven. They take six where nobody shares it.

const (
	panelVectors        = 2
	panelLow, panelHigh = 4, 6 // rows of a block
	panelSteps          = 4    // of one turn
	panelFetched        = 6    // lines of the next columns of B, fetched during a block
)

func panel(m machine) {
	p := productLoop{nv: panelVectors}
	p.loop = m.begin("panel"+m.name(), "productArgs", fmt.Sprintf("computes blocks of %d to %d rows of %s from packed operands.", panelLow, panelHigh, plural(panelVectors, "vector")), productFields...)
	p.setMask("mask", batch)
	p.MOVQ(p.field("rows"), batch)
	choose(m, panelLow, panelHigh)
	for p.m = panelLow; p.m <= panelHigh; p.m++ {
		p.packedRows()
	}
}

// packedRows computes all blocks of m rows of a panel.
func (p *productLoop) packedRows() {
	rows := p.m
	p.label = func(name string) string { return numbered(name, rows) }
	p.Label(p.label("rows"))
	p.start()
	p.fetchNext()
	p.pointer("a", "aAt", a0)
	p.MOVQ(p.field("b"), b)
	p.MOVQ(p.field("k"), depth)
	p.SUBQ(operand.Imm(panelSteps), depth)
	p.JL(operand.LabelRef(p.label("few")))
	p.Label(p.label("turn"))
	p.packedSteps(panelSteps)
	p.SUBQ(operand.Imm(panelSteps), depth)
	p.JGE(operand.LabelRef(p.label("turn")))
	p.Label(p.label("few"))
	p.ADDQ(operand.Imm(panelSteps), depth)
	p.JE(operand.LabelRef(p.label("summed")))
	p.Label(p.label("step"))
	p.packedSteps(1)
	p.again(depth, p.label("step"))
	p.Label(p.label("summed"))
	p.finish()
	p.advanceAll("Block")
	p.again(p.field("left"), p.label("rows"))
	p.end()
}

// packedSteps adds the products of some rows of the panel.
func (p *productLoop) packedSteps(steps int) {
	vectors, scalar := [panelVectors]reg.Register{p.v(p.m * p.nv), p.v(p.m*p.nv + 1)}, p.v(p.m*p.nv+2)
	for s := range steps {
		for j, v := range vectors {
			p.move(operand.Mem{Base: b, Disp: (s*p.nv + j) * p.bytes()}, v)
		}
		for i := range p.m {
			p.broadcast(operand.Mem{Base: a0, Disp: (s*p.m + i) * p.element()}, scalar)
			for j, v := range vectors {
				p.fma(v, scalar, p.sum(i, j))
			}
		}
	}
	p.ADDQ(operand.I32(steps*p.m*p.element()), a0)
	p.ADDQ(operand.I32(steps*p.nv*p.bytes()), b)
}

// fetchNext fetches the next block of C to the first-level cache, and to the second some lines of B for the next panels.
func (p *productLoop) fetchNext() {
	p.pointer("c", "cAt", a0)
	p.ADDQ(p.field("cBlock"), a0)
	for range p.m {
		p.PREFETCHT0(operand.Mem{Base: a0})
		p.ADDQ(p.field("cRow"), a0)
	}
	p.pointer("a", "aheadAt", a0)
	p.MOVQ(p.field("aheadStep"), b)
	for range panelFetched {
		p.PREFETCHT1(operand.Mem{Base: a0})
		p.ADDQ(b, a0)
	}
	p.SUBQ(p.field("a"), a0)
	p.MOVQ(a0, p.field("aheadAt"))
}

// packFields are the fields of simd.packArgs.
var packFields = []string{"from", "to", "fromRow", "toRow", "toPanel", "rows", "panels"}

// pack copies columns of a matrix to panels. The columns of a panel are 16 to 64 bytes of a row, of which the first and the last half are copied.
func pack(m machine) {
	l := m.begin("pack"+m.name(), "packArgs", "copies rows of 16 to 64 bytes to panels.", packFields...)
	from, to, fromHere, toHere := reg.RSI, reg.R8, reg.R9, reg.R10
	width, toPanel, rows, panels := reg.R11, reg.R12, reg.RCX, reg.RDX
	l.MOVQ(l.field("from"), from)
	l.MOVQ(l.field("to"), to)
	l.MOVQ(l.field("toRow"), width)
	l.MOVQ(l.field("toPanel"), toPanel)
	l.MOVQ(l.field("rows"), rows)
	copies := func(name string, half int, vector func(reg.VecPhysical) reg.Register) {
		first, last := vector(zmm[0]), vector(zmm[1])
		l.Label(name)
		l.MOVQ(from, fromHere)
		l.MOVQ(to, toHere)
		l.MOVQ(l.field("panels"), panels)
		l.Label(name + "Panel")
		l.VMOVUPS(operand.Mem{Base: fromHere}, first)
		l.VMOVUPS(operand.Mem{Base: fromHere, Index: width, Scale: 1, Disp: -half}, last)
		l.VMOVUPS(first, operand.Mem{Base: toHere})
		l.VMOVUPS(last, operand.Mem{Base: toHere, Index: width, Scale: 1, Disp: -half})
		l.ADDQ(width, fromHere)
		l.ADDQ(toPanel, toHere)
		l.again(panels, name+"Panel")
		l.ADDQ(l.field("fromRow"), from)
		l.ADDQ(width, to)
		l.again(rows, name)
		l.end()
	}
	l.CMPQ(width, operand.Imm(32))
	l.JAE(operand.LabelRef("wide"))
	copies("narrow", 16, func(v reg.VecPhysical) reg.Register { return v.AsX() })
	copies("wide", 32, func(v reg.VecPhysical) reg.Register { return v.AsY() })
}
