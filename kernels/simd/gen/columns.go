package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.ColumnSums keep the sums of some vectors of columns in registers
// and go down the rows.

func columns(m machine) {
	m.columnSums("columnSums"+m.name(), 1)
	m.columnSums("columnSums8"+m.name(), 8)
}

// columnSums writes the loop for some vectors of columns, the only one masked if there
// is one.
func (m machine) columnSums(name string, vectors int) {
	l := m.begin(name, "columnArgs", "adds rows to sums of "+plural(vectors, "vector")+".", "sums", "x", "rows", "row", "mask")
	sums, x, left, row := reg.RSI, reg.R8, reg.R9, reg.R10
	l.MOVQ(l.field("sums"), sums)
	l.MOVQ(l.field("x"), x)
	l.MOVQ(l.field("row"), row)
	if vectors == 1 {
		l.setMask("mask", left)
	}
	l.MOVQ(l.field("rows"), left)
	at := func(base reg.Register, j int) operand.Mem { return operand.Mem{Base: base, Disp: j * m.bytes()} }
	for j := range vectors {
		m.read(vectors == 1, l.mask(), at(sums, j), m.v(j))
	}
	m.Label("row")
	for j := range vectors {
		if vectors == 1 {
			m.load(at(x, j), l.mask(), m.v(1))
			m.plus(m.v(0), m.v(1), m.v(0))
		} else {
			m.plus(m.v(j), at(x, j), m.v(j))
		}
	}
	m.ADDQ(row, x)
	l.again(left, "row")
	for j := range vectors {
		m.write(vectors == 1, l.mask(), m.v(j), at(sums, j))
	}
	l.end()
}
