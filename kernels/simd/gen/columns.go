package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.ColumnSums keep the sums of some vectors of columns in registers
// and go down the rows.

func columnsAVX2(c *build.Context)   { columns(c, false) }
func columnsAVX512(c *build.Context) { columns(c, true) }

func columns(c *build.Context, wide bool) {
	for _, m := range machines(c, wide) {
		m.columnSums("columnSums"+m.name(), 1)
		m.columnSums("columnSums8"+m.name(), 8)
	}
}

// columnSums writes the loop for some vectors of columns, the only one masked if there
// is one.
func (m machine) columnSums(name string, vectors int) {
	m.function(name, "columnArgs", "adds rows to sums of "+count(vectors, "vector")+".", args)
	field := fields(args, "sums", "x", "rows", "row", "mask")
	sums, x, left, row := reg.RSI, reg.R8, reg.R9, reg.R10
	m.MOVQ(field("sums"), sums)
	m.MOVQ(field("x"), x)
	m.MOVQ(field("row"), row)
	mask := m.v(15)
	if m.wide {
		mask = reg.K1
	}
	if vectors == 1 {
		m.MOVQ(field("mask"), left)
		m.loadMask(left, mask)
	}
	m.MOVQ(field("rows"), left)
	at := func(base reg.Register, j int) operand.Mem { return operand.Mem{Base: base, Disp: j * m.bytes()} }
	for j := range vectors {
		m.read(vectors == 1, mask, at(sums, j), m.v(j))
	}
	m.Label("row")
	for j := range vectors {
		if vectors == 1 {
			m.load(at(x, j), mask, m.v(1))
			m.plus(m.v(0), m.v(1), m.v(0))
		} else if m.f64 {
			m.VADDPD(at(x, j), m.v(j), m.v(j))
		} else {
			m.VADDPS(at(x, j), m.v(j), m.v(j))
		}
	}
	m.ADDQ(row, x)
	m.DECQ(left)
	m.JNE(operand.LabelRef("row"))
	for j := range vectors {
		m.write(vectors == 1, mask, m.v(j), at(sums, j))
	}
	m.VZEROUPPER()
	m.RET()
}
