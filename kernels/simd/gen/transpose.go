package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Transpose turn some rows of the input into a vector of the output
// rows. Sixteen bytes of each row, as many columns as they hold, are gathered into
// vectors in such an order that only the 16-byte parts of the
// vectors need a transposition, without shuffles across them.

func transpose(m machine) {
	if m.wide {
		m.transposeRows(4)
		return
	}
	m.transposeRows(1)
	m.transposeRows(2)
}

// Registers: the first of four groups of rows, the distance of rows and three times
// that, the same for the output.
var (
	fromRows           = [4]reg.GPPhysical{reg.RSI, reg.R8, reg.R9, reg.R10}
	fromRow1, fromRow3 = reg.R11, reg.R12
	toHere             = reg.RAX
	toRow1, toRow3     = reg.RBX, reg.RDX
	columnsLeft        = reg.RCX
)

// transposeRows writes the loop for vectors of some 16-byte parts.
func (m machine) transposeRows(parts int) {
	side := 16 / m.element() // elements of a part
	l := m.begin(fmt.Sprintf("transpose%d%s", parts*side, m.name()), "transposeArgs",
		fmt.Sprintf("turns blocks of %d rows into columns.", parts*side),
		"from", "to", "fromAt", "toAt", "fromRow", "toRow", "columns", "blocks", "fromBlock", "toBlock")
	l.MOVQ(l.field("fromRow"), fromRow1)
	m.LEAQ(operand.Mem{Base: fromRow1, Index: fromRow1, Scale: 2}, fromRow3)
	l.MOVQ(l.field("toRow"), toRow1)
	m.LEAQ(operand.Mem{Base: toRow1, Index: toRow1, Scale: 2}, toRow3)
	m.Label("block")
	l.pointer("from", "fromAt", fromRows[0])
	for part := 1; part < parts; part++ {
		m.LEAQ(operand.Mem{Base: fromRows[part-1], Index: fromRow1, Scale: uint8(side)}, fromRows[part])
	}
	l.pointer("to", "toAt", toHere)
	l.MOVQ(l.field("columns"), columnsLeft)
	m.Label("columns")
	for k := range side {
		m.gather(parts, k)
	}
	for j, out := range m.transposeParts(parts) {
		m.move(out, rowAt(toHere, toRow1, toRow3, j))
	}
	for part := range parts {
		m.ADDQ(operand.Imm(16), fromRows[part])
	}
	m.LEAQ(operand.Mem{Base: toHere, Index: toRow1, Scale: uint8(side)}, toHere)
	m.SUBQ(operand.Imm(uint64(side)), columnsLeft)
	m.JNE(operand.LabelRef("columns"))
	l.advance("fromAt", "fromBlock", toHere)
	l.advance("toAt", "toBlock", toHere)
	l.again(l.field("blocks"), "block")
	l.end()
}

// rowAt is the address of row k of four.
func rowAt(base, row, row3 reg.Register, k int) operand.Mem {
	switch k {
	case 0:
		return operand.Mem{Base: base}
	case 3:
		return operand.Mem{Base: base, Index: row3, Scale: 1}
	}
	return operand.Mem{Base: base, Index: row, Scale: uint8(k)}
}

// sized is a vector register of some 16-byte parts.
func sized(i, parts int) reg.Register {
	switch parts {
	case 1:
		return zmm[i].AsX()
	case 2:
		return zmm[i].AsY()
	}
	return zmm[i]
}

// gather fills vector k: its part p is row k of group p.
func (m machine) gather(parts, k int) {
	m.move(rowAt(fromRows[0], fromRow1, fromRow3, k), sized(k, 1))
	for part := 1; part < parts; part++ {
		from := rowAt(fromRows[part], fromRow1, fromRow3, k)
		if parts == 2 {
			m.VINSERTF128(operand.U8(part), from, sized(k, parts), sized(k, parts))
		} else {
			m.VINSERTF32X4(operand.U8(part), from, sized(k, parts), sized(k, parts))
		}
	}
}

// transposeParts transposes each part of the vectors and returns the registers with
// the output rows.
func (m machine) transposeParts(parts int) []reg.Register {
	v := func(i int) reg.Register { return sized(i, parts) }
	if m.f64 {
		m.VUNPCKLPD(v(1), v(0), v(2))
		m.VUNPCKHPD(v(1), v(0), v(3))
		return []reg.Register{v(2), v(3)}
	}
	m.VUNPCKLPS(v(1), v(0), v(4))
	m.VUNPCKHPS(v(1), v(0), v(5))
	m.VUNPCKLPS(v(3), v(2), v(6))
	m.VUNPCKHPS(v(3), v(2), v(7))
	m.VUNPCKLPD(v(6), v(4), v(0))
	m.VUNPCKHPD(v(6), v(4), v(1))
	m.VUNPCKLPD(v(7), v(5), v(2))
	m.VUNPCKHPD(v(7), v(5), v(3))
	return []reg.Register{v(0), v(1), v(2), v(3)}
}
