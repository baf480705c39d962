package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Pooling windows of 2×2 side by side over pixels of few channels and no gaps: a vector
// of the output holds several windows. Two vectors of each row of pixels have what they
// need; permutations pick the same pixel of all windows out of them, and spread the
// gradient over them. Which element goes where depends on the channels only and comes
// in tables, see simd.narrowTables.

func narrow(m machine) {
	for _, body := range []struct {
		name, doc string
		constants func(l *narrowLoop)
		write     func(l *narrowLoop, masked bool)
	}{
		{"maxPoolNarrow", "takes the maxima of windows of 2×2 over few channels.", (*narrowLoop).maximumConstants, (*narrowLoop).maximum},
		{"unpoolNarrow", "spreads over windows of 2×2 with few channels.", (*narrowLoop).spreadConstants, (*narrowLoop).spread},
	} {
		l := narrowLoop{poolLoop{m.begin(body.name+m.name(), "narrowArgs", body.doc, narrowFields...)}}
		body.constants(&l)
		l.walk(func(masked bool) { body.write(&l, masked) })
	}
}

// narrowFields are the fields of simd.narrowArgs.
var narrowFields = []string{
	"y", "index", "x", "yAt", "indexAt", "xAt", "rows", "vectors", "parts", "tail",
	"mask", "pixels0", "pixels1", "tailMask", "tailPixels0", "tailPixels1",
	"yRow", "indexRow", "xRows", "xRow", "yStep", "indexStep", "xStep",
	"limit", "one", "none", "tables",
}

// Positions of the tables, each of 64 bytes, of one number of channels.
const (
	tapTable    = 0 // two: where the left and the right pixel of each window are
	highTable   = 2 // two: all bits set where that is in the second vector (AVX2)
	expandTable = 4 // two: the window of each element of two vectors of pixels
	columnTable = 6 // two: the column of its pixel, 0 for the left and 1 for the right
)

type narrowLoop struct{ poolLoop }

// Vector registers in addition to those that poolLoop has: two vectors of pixels, and tables.
func (l *narrowLoop) pixels(half int) reg.Register { return l.v(12 + half) }
func (l *narrowLoop) table(n int) reg.Register     { return l.v(16 + n) } // AVX-512

// tables holds the address of the tables for the present channels.
var tables = xPixel // of which narrow windows have no need

func (l *narrowLoop) loadTable(n int, to reg.Register) {
	l.move(operand.Mem{Base: tables, Disp: 64 * n}, to)
}

// walk writes the loops around the body. Windows need not fill a vector with AVX-512.
// Then all but the last of a row are stored whole nevertheless, since the next one
// overwrites what is too much: a masked store costs several times a whole one where
// the line is not in the first cache.
func (l *narrowLoop) walk(body func(masked bool)) {
	l.MOVQ(l.field("xRow"), xRow)
	l.Label("row")
	l.pointer("y", "yAt", yHere)
	l.pointer("index", "indexAt", indexHere)
	l.pointer("x", "xAt", xHere)
	l.windows("vectors", func() { body(false) })
	if l.wide {
		l.setMasks("mask", "pixels0", "pixels1")
		l.windows("parts", func() { body(true) })
	}
	l.ifZero("tail", "whole")
	l.setMasks("tailMask", "tailPixels0", "tailPixels1")
	body(true)
	l.Label("whole")
	l.nextRow()
}

// windows writes a loop over as many vectors of windows as a field says, or none.
func (l *narrowLoop) windows(field string, body func()) {
	l.count(field, vectors, field+"Done", func() {
		l.Label(field)
		body()
		l.ADDQ(l.field("yStep"), yHere)
		l.ADDQ(l.field("indexStep"), indexHere)
		l.ADDQ(l.field("xStep"), xHere)
		l.again(vectors, field)
	})
}

// setMasks loads the masks of the output and of two vectors of pixels; AVX2 loads the
// latter when they are needed.
func (l *narrowLoop) setMasks(out, pixels0, pixels1 string) {
	l.setMask(out, windowPixel)
	if l.wide {
		l.MOVQ(l.field(pixels0), windowPixel)
		l.KMOVQ(windowPixel, reg.K4)
		l.MOVQ(l.field(pixels1), windowPixel)
		l.KMOVQ(windowPixel, reg.K5)
	}
}

// pixelMask is the mask of a vector of pixels; with AVX2 it overwrites v14.
func (l *narrowLoop) pixelMask(masked bool, half int) reg.Register {
	if l.wide {
		return [2]reg.Register{reg.K4, reg.K5}[half]
	}
	if masked {
		l.MOVQ(l.field([2]string{"tailPixels0", "tailPixels1"}[half]), windowPixel)
		l.loadMask(windowPixel, l.v(14))
	}
	return l.v(14)
}

func (l *narrowLoop) maximumConstants() {
	l.constants()
	l.MOVQ(l.field("tables"), tables)
	if l.wide {
		l.loadTable(tapTable, l.table(0))
		l.loadTable(tapTable+1, l.table(1))
	}
}

func (l *narrowLoop) maximum(masked bool) {
	for row := range 2 {
		at := operand.Mem{Base: xHere}
		if row == 1 {
			at.Index, at.Scale = xRow, 1
		}
		for half := range 2 {
			mask := l.pixelMask(masked, half)
			l.read(masked, mask, at, l.pixels(half))
			at.Disp += l.bytes()
		}
		for column := range 2 {
			if row == 0 && column == 0 {
				l.pick(column, l.most())
				l.zero(l.index())
				continue
			}
			l.pick(column, l.pixel())
			l.takeGreater(l.constant(2*row + column))
		}
	}
	l.finish(masked)
}

// pick gathers the left or right pixels of all windows.
func (l *narrowLoop) pick(column int, to reg.Register) {
	low, high := l.pixels(0), l.pixels(1)
	if l.wide {
		l.move(low, to)
		form(l.machine, l.VPERMT2PS, l.VPERMT2PD)(high, l.table(column), to)
		return
	}
	l.loadTable(tapTable+column, l.v(5))
	l.VPERMPS(low, l.v(5), to)
	l.VPERMPS(high, l.v(5), l.v(14))
	l.loadTable(highTable+column, l.v(5))
	l.VBLENDVPS(l.v(5), l.v(14), to, to)
}

// Registers of the gradient: for both vectors of pixels the window of each element, and
// the positions that upper and lower pixels have in it.
func (l *narrowLoop) expand(half int) reg.Register { return l.v(5 + half) }
func (l *narrowLoop) upper(half int) reg.Register  { return l.v(7 + half) }
func (l *narrowLoop) lower(half int) reg.Register  { return l.v(11 + half) }

func (l *narrowLoop) spreadConstants() {
	l.zero(l.zeros())
	l.broadcast(l.field("one"), l.v(0))
	l.addInt(l.v(0), l.v(0), l.v(0))
	l.MOVQ(l.field("tables"), tables)
	for half := range 2 {
		l.loadTable(expandTable+half, l.expand(half))
		l.loadTable(columnTable+half, l.upper(half))
		l.addInt(l.v(0), l.upper(half), l.lower(half))
	}
}

func (l *narrowLoop) spread(masked bool) {
	l.gradient(masked)
	l.unsigned()
	values, positions, passed := l.v(2), l.v(3), l.v(4)
	for half := range 2 {
		l.permute(l.expand(half), values, positions)
		at := operand.Mem{Base: xHere, Disp: half * l.bytes()}
		mask := l.pixelMask(masked, half)
		l.passEqual(l.upper(half), values, positions, passed)
		l.write(masked, mask, passed, at)
		at.Index, at.Scale = xRow, 1
		l.passEqual(l.lower(half), values, positions, passed)
		l.write(masked, mask, passed, at)
	}
}

// permute brings each window's value and position to the elements of its pixels.
func (l *narrowLoop) permute(table, values, positions reg.Register) {
	if l.wide && l.f64 {
		l.VPERMPD(l.most(), table, values)
		l.VPERMQ(l.index(), table, positions)
		return
	}
	l.VPERMPS(l.most(), table, values)
	l.VPERMD(l.index(), table, positions)
}

// passEqual sets passed to the values whose positions are as said, 0 elsewhere.
func (l *narrowLoop) passEqual(position, values, positions, passed reg.Register) {
	selected := width(l.machine, passed, reg.Register(reg.K2))
	l.equalInt(position, positions, selected)
	l.pass(selected, values, passed)
}
