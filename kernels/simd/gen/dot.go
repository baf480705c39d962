package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Dot keep the sums of m rows of A with n rows of B in m·n
// registers, lane by lane; at the end the lanes of four sums are added together. Every
// sum is added up in the same tree, whatever m and n.

// dotColumns are the values of n.
var dotColumns = []int{1, 2, 4}

func dot(m machine) {
	for _, n := range dotColumns {
		d := dotLoop{n: n}
		d.function(m, width(m, 3, 6))
	}
}

// dotFields are the fields of simd.dotArgs.
var dotFields = []string{
	"a", "b", "c", "start", "aAt", "cAt", "startAt", "vectors", "blocks", "rows",
	"aRow", "aBlock", "bRow", "cRow", "cBlock", "startRow", "startBlock", "floor", "mask", "rest",
}

// Registers of the dot products in addition to the registers of products: the third multiple of
// the row distance of B, and the operands at the end.
var (
	bRow3   = reg.R12
	cOf     = reg.R13
	startOf = reg.R14
)

type dotLoop struct {
	loop
	n, m  int
	label func(string) string
}

func (d *dotLoop) function(m machine, maxRows int) {
	d.loop = m.begin(fmt.Sprintf("dot%sx%d", m.name(), d.n), "dotArgs",
		fmt.Sprintf("computes blocks of 1 to %d rows of %s.", maxRows, plural(d.n, "sum")), dotFields...)
	d.MOVQ(d.field("aRow"), row)
	d.LEAQ(operand.Mem{Base: row, Index: row, Scale: 2}, row3)
	d.LEAQ(operand.Mem{Base: row, Index: row, Scale: 4}, row5)
	d.MOVQ(d.field("bRow"), bRow)
	d.LEAQ(operand.Mem{Base: bRow, Index: bRow, Scale: 2}, bRow3)
	d.MOVQ(d.field("mask"), batch)
	if d.wide {
		d.KMOVQ(batch, reg.K1)
	}
	d.MOVQ(d.field("rows"), batch)
	choose(d.machine, 1, maxRows)
	for d.m = 1; d.m <= maxRows; d.m++ {
		d.rows()
	}
}

// rows computes all blocks of m rows.
func (d *dotLoop) rows() {
	m := d.m
	d.label = func(name string) string { return fmt.Sprintf("%s%d", name, m) }
	d.Label(d.label("rows"))
	d.pointer("a", "aAt", a0)
	d.MOVQ(d.field("b"), b)
	for i := range d.m {
		for j := range d.n {
			d.zero(d.sum(i, j))
		}
	}
	d.count("vectors", depth, d.label("rest"), func() {
		d.Label(d.label("step"))
		d.step(false)
		d.ADDQ(operand.Imm(uint64(d.bytes())), a0)
		d.ADDQ(operand.Imm(uint64(d.bytes())), b)
		d.again(depth, d.label("step"))
	})
	d.count("rest", depth, d.label("end"), func() { d.step(true) })
	d.finish()
	for _, name := range []string{"a", "c", "start"} {
		d.advance(name+"At", name+"Block", batch)
	}
	d.again(d.field("blocks"), d.label("rows"))
	d.end()
}

// sum is the register of the sum of row i and column j; those before are for
// operands.
func (d *dotLoop) sum(i, j int) reg.Register { return d.v(width(d.machine, 4, 8) + i*d.n + j) }

// step multiplies one vector of every row of A with one of every row of B. The rows
// of the side that has fewer are held in registers.
func (d *dotLoop) step(masked bool) {
	rowOfB := []operand.Mem{{Base: b}, {Base: b, Index: bRow, Scale: 1}, {Base: b, Index: bRow, Scale: 2}, {Base: b, Index: bRow3, Scale: 1}}
	if d.wide { // at most 4 rows of B
		for j := range d.n {
			d.loadStep(rowOfB[j], masked, d.v(j))
		}
		for i := range d.m {
			d.loadStep(rowOf(i), masked, d.v(4))
			for j := range d.n {
				d.fma(d.v(j), d.v(4), d.sum(i, j))
			}
		}
		return
	}
	for i := range d.m { // at most 3 rows of A
		d.loadStep(rowOf(i), masked, d.v(i))
	}
	for j := range d.n {
		d.loadStep(rowOfB[j], masked, d.v(3))
		for i := range d.m {
			d.fma(d.v(i), d.v(3), d.sum(i, j))
		}
	}
}

// loadStep loads a vector, under the mask if masked. There is no register to hold the
// mask with AVX2: it is loaded into the one that is to be overwritten.
func (d *dotLoop) loadStep(from operand.Mem, masked bool, to reg.Register) {
	switch {
	case !masked:
		d.move(from, to)
	case d.wide:
		d.load(from, reg.K1, to)
	default:
		d.MOVQ(d.field("mask"), batch)
		d.move(operand.Mem{Base: batch}, to)
		d.load(from, to, to)
	}
}

// finish adds the lanes of the sums and what they start from, and stores n of each row.
func (d *dotLoop) finish() {
	d.pointer("c", "cAt", cOf)
	d.pointer("start", "startAt", startOf)
	for i := range d.m {
		d.addLanes(i)
		x, t, floor := d.part(0), d.part(1), d.part(2)
		d.movePart(operand.Mem{Base: startOf}, t)
		d.plus(x, t, x)
		d.broadcast(d.field("floor"), floor)
		d.notBelow(floor, x)
		d.movePart(x, operand.Mem{Base: cOf})
		if i < d.m-1 {
			d.ADDQ(d.field("startRow"), startOf)
			d.ADDQ(d.field("cRow"), cOf)
		}
	}
}

// part is register i as wide as four elements.
func (d *dotLoop) part(i int) reg.Register { return form(d.machine, zmm[i].AsX(), zmm[i].AsY()) }

// addLanes puts the sums of row i into part 0; where there are fewer than four, the
// first is taken again.
func (d *dotLoop) addLanes(i int) {
	var s [4]reg.Register
	for j := range s {
		s[j] = d.sum(i, j%d.n)
		if d.wide {
			if j < d.n {
				d.VEXTRACTF64X4(operand.Imm(1), s[j], zmm[4].AsY())
				d.plus(s[j].(reg.VecPhysical).AsY(), zmm[4].AsY(), zmm[j].AsY())
			}
			s[j] = zmm[j%d.n].AsY()
		}
	}
	at := width(d.machine, 0, 4)
	u, w := zmm[at].AsY(), zmm[at+1].AsY()
	if d.f64 {
		d.VHADDPD(s[1], s[0], u)
		d.VHADDPD(s[3], s[2], w)
		d.VPERM2F128(operand.Imm(0x21), w, u, zmm[2].AsY())
		d.VBLENDPD(operand.Imm(0xc), w, u, u)
		d.VADDPD(zmm[2].AsY(), u, zmm[0].AsY())
		return
	}
	d.VHADDPS(s[1], s[0], u)
	d.VHADDPS(s[3], s[2], w)
	d.VHADDPS(w, u, u)
	d.VEXTRACTF128(operand.Imm(1), u, zmm[2].AsX())
	d.VADDPS(zmm[2].AsX(), asX(u), zmm[0].AsX())
}

func asX(r reg.Register) reg.Register { return r.(reg.Vec).AsX() }

// movePart loads or stores n elements.
func (d *dotLoop) movePart(from, to operand.Op) {
	half := func(o operand.Op) operand.Op {
		if r, ok := o.(reg.Register); ok {
			return asX(r)
		}
		return o
	}
	switch bytes := d.n * d.element(); {
	case bytes == 4:
		d.VMOVSS(half(from), half(to))
	case bytes == 8:
		d.VMOVSD(half(from), half(to))
	case bytes == 16:
		d.VMOVUPS(half(from), half(to))
	default:
		d.VMOVUPD(from, to)
	}
}
