package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Winograd walk tiles and vectors of channels. A transform of a tile is one of
// lines, applied to all its columns and then to all rows of the result. Between the two lie at
// most 36 vectors on the stack, where each row follows the one before.

// domainSide is the rows and columns of a tile in Winograd's domain.
const domainSide = 6

func winograd(m machine) {
	if m.f64 {
		return
	}
	for _, t := range []winogradTransform{
		{"winogradData", "takes tiles of an image to the domain.", domainSide, false, (*winogradLoop).data},
		{"winogradGradient", "takes tiles of an output's gradient to the domain.", 4, false, (*winogradLoop).gradient},
		{"winogradFilter", "takes filters to the domain.", 3, false, (*winogradLoop).filter},
		{"winogradResult", "takes tiles of an output out of the domain.", 4, true, (*winogradLoop).result},
		{"winogradFilterGradient", "takes filters' gradients out of the domain.", 3, true, (*winogradLoop).filterGradient},
	} {
		l := winogradLoop{loop: m.begin(t.name+m.name(), "winogradArgs", t.doc, winogradFields...), of: t}
		l.function()
	}
}

// winogradTransform is a transform between tiles of side×side pixels and the domain.
type winogradTransform struct {
	name, doc string
	side      int
	out       bool                                 // of the domain
	line      func(l *winogradLoop) []reg.Register // of a line in the first registers; gives where the results are
}

// winogradFields are the fields of simd.winogradArgs.
var winogradFields = []string{
	"x", "domain", "xAt", "domainAt", "tiles", "vectors", "tail", "mask", "constants",
	"xRow", "xPixel", "xTile", "position", "domainTile",
	"rows", "columns", "bias", "floor", "add", "where", "whereRow", "wherePixel", "whereTile", "whereAt",
}

// Registers of the loops: the first pixel or position of the present vector, the same of the present line,
// and one, three and five times the distance within a line, for reading and for writing.
var (
	fromVector, toVector  = reg.RSI, reg.R8
	lineHere, between     = reg.RAX, reg.RBX
	fromStep, fromStep3   = reg.R9, reg.R10
	fromStep5, toStep     = reg.R11, reg.R12
	toStep3, toStep5      = reg.R13, reg.R14
	vectorsLeft, biasHere = reg.RCX, reg.RDX
	whereVector           = reg.R15

	// While rows of results are written, nothing is read.
	wherePixel, wherePixel3, whereLine = fromStep, fromStep3, fromStep5

	fetched = whereVector // of tiles that are fetched, where nothing stops results
)

type winogradLoop struct {
	loop
	of winogradTransform
}

// c is one of the constants of the transform.
func (l *winogradLoop) c(i int) reg.Register { return l.v(8 + i) }

const winogradConstants = 7

// function writes the loop.
func (l *winogradLoop) function() {
	l.Attributes(attr.Attribute(0)) // the frame is too large for a function that does not check the stack
	frame := l.AllocLocal(domainSide*domainSide*l.bytes() + l.bytes())
	l.LEAQ(frame.Offset(l.bytes()-1), between)
	l.ANDQ(operand.I32(-l.bytes()), between)
	l.setConstants()
	l.toSteps()
	l.Label("tile")
	l.pointer("x", "xAt", l.pixels())
	l.pointer("domain", "domainAt", l.positions())
	if l.hasEpilogue() {
		l.pointer("where", "whereAt", whereVector)
		l.MOVQ(l.field("bias"), biasHere)
	}
	l.vectors(vectorsLeft, "whole", l.body, func() {
		for _, r := range l.advanced() {
			l.ADDQ(operand.Imm(uint64(l.bytes())), r)
		}
	})
	l.advance("xAt", "xTile", lineHere)
	l.advance("domainAt", "domainTile", lineHere)
	l.advance("whereAt", "whereTile", lineHere)
	l.again(l.field("tiles"), "tile")
	l.end()
}

// hasEpilogue reports whether a bias is added and what follows it is done, too.
func (l *winogradLoop) hasEpilogue() bool { return l.of.out && l.of.side == 4 }

// fetches reports whether pixels are fetched from memory four tiles ahead. Pixels of filters are far apart, and no
// other part of the processor sees a pattern in them.
func (l *winogradLoop) fetches() bool { return l.of.side == 3 && !l.of.out }

// pixels and positions are the registers of the present vector of either side.
func (l *winogradLoop) pixels() reg.GPPhysical {
	if l.of.out {
		return toVector
	}
	return fromVector
}

func (l *winogradLoop) positions() reg.GPPhysical {
	if l.of.out {
		return fromVector
	}
	return toVector
}

// advanced are the registers that move from a vector of channels to the next.
func (l *winogradLoop) advanced() []reg.GPPhysical {
	if l.hasEpilogue() {
		return []reg.GPPhysical{fromVector, toVector, whereVector, biasHere}
	}
	return []reg.GPPhysical{fromVector, toVector}
}

func (l *winogradLoop) setConstants() {
	l.setMask("mask", lineHere)
	l.MOVQ(l.field("constants"), lineHere)
	for i := range winogradConstants {
		l.broadcast(operand.Mem{Base: lineHere, Disp: 4 * i}, l.c(i))
	}
}

// fromSteps loads the distances within lines that are read: columns of pixels, or of positions.
func (l *winogradLoop) fromSteps() {
	if l.of.out {
		l.IMUL3Q(operand.Imm(domainSide), l.field("position"), fromStep)
	} else {
		l.MOVQ(l.field("xRow"), fromStep)
	}
	l.multiples(fromStep, fromStep3, fromStep5)
}

// toSteps loads those within lines that are written: rows of positions, or of pixels.
func (l *winogradLoop) toSteps() {
	if l.of.out {
		l.MOVQ(l.field("xPixel"), toStep)
	} else {
		l.MOVQ(l.field("position"), toStep)
	}
	l.multiples(toStep, toStep3, toStep5)
}

func (l *winogradLoop) multiples(step, step3, step5 reg.Register) {
	l.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, step3)
	l.LEAQ(operand.Mem{Base: step, Index: step, Scale: 4}, step5)
}

// inLine is element k of the line at base.
func inLine(base, step, step3, step5 reg.Register, k int) operand.Mem {
	switch k {
	case 0:
		return operand.Mem{Base: base}
	case 3:
		return operand.Mem{Base: base, Index: step3, Scale: 1}
	case 5:
		return operand.Mem{Base: base, Index: step5, Scale: 1}
	}
	return operand.Mem{Base: base, Index: step, Scale: uint8(k)}
}

// body transforms a vector of channels of a tile.
func (l *winogradLoop) body(masked bool) {
	l.parts++
	read, written := l.of.side, domainSide // extents of the tile before and after
	if l.of.out {
		read, written = domainSide, l.of.side
	}
	kept := func(row, column int) operand.Mem {
		return operand.Mem{Base: between, Disp: (row*domainSide + column) * l.bytes()}
	}
	l.fromSteps()
	l.MOVQ(fromVector, lineHere)
	if l.fetches() {
		l.MOVQ(l.field("xTile"), fetched)
		l.LEAQ(operand.Mem{Base: lineHere, Index: fetched, Scale: 4}, fetched)
	}
	for j := range read {
		for i := range read {
			l.read(masked, l.mask(), inLine(lineHere, fromStep, fromStep3, fromStep5, i), l.v(i))
			if l.fetches() {
				l.PREFETCHT0(inLine(fetched, fromStep, fromStep3, fromStep5, i))
			}
		}
		for i, o := range l.of.line(l) {
			l.move(o, kept(i, j))
		}
		if j+1 < read {
			l.ADDQ(l.field(l.nextColumn()), lineHere)
			if l.fetches() {
				l.ADDQ(l.field(l.nextColumn()), fetched)
			}
		}
	}
	l.MOVQ(toVector, lineHere)
	if l.hasEpilogue() {
		l.MOVQ(l.field("wherePixel"), wherePixel)
		l.LEAQ(operand.Mem{Base: wherePixel, Index: wherePixel, Scale: 2}, wherePixel3)
		l.MOVQ(whereVector, whereLine)
	}
	for i := range written {
		if l.hasEpilogue() {
			l.CMPQ(l.field("rows"), operand.Imm(uint64(i)))
			l.JLE(operand.LabelRef(l.unique("end")))
		}
		for j := range read {
			l.move(kept(i, j), l.v(j))
		}
		l.store(masked, i, l.of.line(l))
		if i+1 < written {
			l.nextRow()
		}
	}
	if l.hasEpilogue() {
		l.Label(l.unique("end"))
	}
}

// unique is a label of the body that is being written.
func (l *winogradLoop) unique(name string) string { return fmt.Sprintf("%s%d", name, l.parts) }

func (l *winogradLoop) nextColumn() string {
	if l.of.out {
		return "position"
	}
	return "xPixel"
}

func (l *winogradLoop) nextRow() {
	if l.of.out {
		l.ADDQ(l.field("xRow"), lineHere)
		if l.hasEpilogue() {
			l.ADDQ(l.field("whereRow"), whereLine)
		}
		return
	}
	l.LEAQ(operand.Mem{Base: lineHere, Index: toStep5, Scale: 1}, lineHere)
	l.ADDQ(toStep, lineHere)
}

// store writes row i.
func (l *winogradLoop) store(masked bool, i int, results []reg.Register) {
	to := func(j int) operand.Mem { return inLine(lineHere, toStep, toStep3, toStep5, j) }
	if l.of.out {
		l.addOld(masked, i, results, to)
	}
	if l.hasEpilogue() {
		l.finish(masked, i, results, to)
		return
	}
	for j, r := range results {
		l.write(masked, l.mask(), r, to(j))
	}
}

// addOld adds what is there if the call says so.
func (l *winogradLoop) addOld(masked bool, i int, results []reg.Register, to func(int) operand.Mem) {
	past := l.unique(fmt.Sprintf("new%d_", i))
	l.ifZero("add", past)
	for j, r := range results {
		if l.hasEpilogue() && j > 0 {
			l.CMPQ(l.field("columns"), operand.Imm(uint64(j)))
			l.JLE(operand.LabelRef(past))
		}
		l.read(masked, l.mask(), to(j), l.v(1))
		l.plus(r, l.v(1), r)
	}
	l.Label(past)
}

// finish adds the bias, does the ReLU, clears results that where forbids, and stores the columns within Columns.
// Registers 1, 3, 6 and 7 are free.
func (l *winogradLoop) finish(masked bool, i int, results []reg.Register, to func(int) operand.Mem) {
	floor, bias, gate, zero := l.v(1), l.v(3), l.v(6), l.v(7)
	past := l.unique(fmt.Sprintf("row%d_", i))
	l.broadcast(l.field("floor"), floor)
	biased := l.unique(fmt.Sprintf("biased%d_", i))
	l.zero(bias)
	l.ifZero("bias", biased)
	l.read(masked, l.mask(), operand.Mem{Base: biasHere}, bias)
	l.Label(biased)
	for j, r := range results {
		if j > 0 {
			l.CMPQ(l.field("columns"), operand.Imm(uint64(j)))
			l.JLE(operand.LabelRef(past))
		}
		l.plus(r, bias, r)
		l.notBelow(floor, r)
		open := l.unique(fmt.Sprintf("open%d%d_", i, j))
		l.ifZero("where", open)
		l.zero(zero)
		l.read(masked, l.mask(), rowAt(whereLine, wherePixel, wherePixel3, j), gate)
		l.keep(zero, gate, r)
		l.Label(open)
		l.write(masked, l.mask(), r, to(j))
	}
	l.Label(past)
}
