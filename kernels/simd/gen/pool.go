package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Pooling walk rows of windows, the windows of a
// row, and vectors of channels; for each vector they visit the pixels of the window.

func pool(m machine) {
	for _, body := range []struct {
		name, doc string
		write     func(l *poolLoop, masked bool)
	}{
		{"maxPool2x2", "takes the maxima of windows of 2×2.", (*poolLoop).maximum2x2},
		{"maxPool", "takes the maxima of windows of any size.", (*poolLoop).maximum},
		{"unpool2x2", "spreads over windows of 2×2.", (*poolLoop).spread2x2},
		{"unpool", "spreads over windows of any size.", (*poolLoop).spread},
		{"unpoolAdd", "adds to windows of any size.", (*poolLoop).add},
	} {
		l := poolLoop{m.begin(body.name+m.name(), "poolArgs", body.doc, poolFields...)}
		l.walk(func(masked bool) { body.write(&l, masked) })
	}
}

// poolFields are the fields of simd.poolArgs.
var poolFields = []string{
	"y", "index", "x", "yAt", "indexAt", "xAt", "rows", "windows", "left", "vectors", "tail", "mask",
	"yRow", "indexRow", "xRows", "yPixel", "indexPixel", "xStep", "xRow", "xPixel",
	"height", "width", "limit", "one", "none",
}

// Registers of the loops: the first channel of the present window, and the present
// vector of channels.
var (
	yOfWindow, indexOfWindow, xOfWindow = reg.RSI, reg.R8, reg.R9
	yHere, indexHere, xHere             = reg.RAX, reg.RBX, reg.RDX
	xRow, xPixel                        = reg.R10, reg.R11
	vectors                             = reg.R12
	windowRow, windowPixel              = reg.R14, reg.R15
	rowsLeft, pixelsLeft                = reg.R13, reg.RCX
)

type poolLoop struct{ loop }

// Vector registers: the values and positions so far, the present pixel, scratch, and
// constants.
func (l *poolLoop) most() reg.Register     { return l.v(0) }
func (l *poolLoop) index() reg.Register    { return l.v(1) }
func (l *poolLoop) pixel() reg.Register    { return l.v(2) }
func (l *poolLoop) scratch() reg.Register  { return l.v(3) }
func (l *poolLoop) position() reg.Register { return l.v(5) }
func (l *poolLoop) ones() reg.Register     { return l.v(6) }
func (l *poolLoop) limit() reg.Register    { return l.v(9) }
func (l *poolLoop) zeros() reg.Register    { return l.v(10) }
func (l *poolLoop) none() reg.Register     { return l.v(11) }

// constant is the position n of a window of 2×2, from 1 to 3.
func (l *poolLoop) constant(n int) reg.Register { return l.v(5 + n) }

// walk writes the loops around the body, which is written twice: for whole vectors of
// channels, and masked for the rest.
func (l *poolLoop) walk(body func(masked bool)) {
	l.MOVQ(l.field("xRow"), xRow)
	l.MOVQ(l.field("xPixel"), xPixel)
	l.setMask("mask", vectors)
	l.constants()
	l.Label("row")
	l.pointer("y", "yAt", yOfWindow)
	l.pointer("index", "indexAt", indexOfWindow)
	l.pointer("x", "xAt", xOfWindow)
	l.MOVQ(l.field("windows"), vectors)
	l.MOVQ(vectors, l.field("left"))
	l.Label("window")
	l.MOVQ(yOfWindow, yHere)
	l.MOVQ(indexOfWindow, indexHere)
	l.MOVQ(xOfWindow, xHere)
	l.vectors(vectors, "whole", body, func() {
		l.ADDQ(operand.Imm(uint64(l.bytes())), yHere)
		l.ADDQ(operand.Imm(uint64(l.bytes())), xHere)
		l.ADDQ(operand.Imm(uint64(l.bytes()/l.element())), indexHere)
	})
	l.ADDQ(l.field("yPixel"), yOfWindow)
	l.ADDQ(l.field("indexPixel"), indexOfWindow)
	l.ADDQ(l.field("xStep"), xOfWindow)
	l.again(l.field("left"), "window")
	l.nextRow()
}

// nextRow goes on with the next row of windows, or ends the function.
func (l *poolLoop) nextRow() {
	l.advance("yAt", "yRow", vectors)
	l.advance("indexAt", "indexRow", vectors)
	l.advance("xAt", "xRows", vectors)
	l.again(l.field("rows"), "row")
	l.end()
}

func (l *poolLoop) constants() {
	l.zero(l.zeros())
	l.broadcast(l.field("limit"), l.limit())
	l.broadcast(l.field("none"), l.none())
	l.broadcast(l.field("one"), l.ones())
	l.addInt(l.ones(), l.ones(), l.constant(2))
	l.addInt(l.ones(), l.constant(2), l.constant(3))
}

// pixels visits the pixels of a window. The address of a pixel is in windowPixel, and its
// place in the window in position.
func (l *poolLoop) pixels(visit func()) {
	row, pixel := l.unique("pixelRow"), l.unique("pixel")
	l.zero(l.position())
	l.MOVQ(xHere, windowRow)
	l.MOVQ(l.field("height"), rowsLeft)
	l.Label(row)
	l.MOVQ(windowRow, windowPixel)
	l.MOVQ(l.field("width"), pixelsLeft)
	l.Label(pixel)
	visit()
	l.addInt(l.ones(), l.position(), l.position())
	l.ADDQ(xPixel, windowPixel)
	l.again(pixelsLeft, pixel)
	l.ADDQ(xRow, windowRow)
	l.again(rowsLeft, row)
}

// pixels2x2 visits the four pixels of a window, in order.
func (l *poolLoop) pixels2x2(visit func(at operand.Mem, n int)) {
	l.LEAQ(operand.Mem{Base: xHere, Index: xRow, Scale: 1}, windowRow)
	for n, at := range []operand.Mem{
		{Base: xHere}, {Base: xHere, Index: xPixel, Scale: 1},
		{Base: windowRow}, {Base: windowRow, Index: xPixel, Scale: 1},
	} {
		visit(at, n)
	}
}

// tail is where the bytes of a vector are.
func (l *poolLoop) tail(at reg.Register) bytesAt {
	return bytesAt{at, l.mask(), l.field("tail"), l.unique("byte"), [3]reg.GPPhysical{windowRow, pixelsLeft, windowPixel}}
}

func (l *poolLoop) maximum2x2(masked bool) {
	l.pixels2x2(func(at operand.Mem, n int) {
		if n == 0 {
			l.read(masked, l.mask(), at, l.most())
			l.zero(l.index())
			return
		}
		l.read(masked, l.mask(), at, l.pixel())
		l.takeGreater(l.constant(n))
	})
	l.finish(masked)
}

func (l *poolLoop) maximum(masked bool) {
	l.read(masked, l.mask(), operand.Mem{Base: xHere}, l.most())
	l.zero(l.index())
	l.pixels(func() {
		l.read(masked, l.mask(), operand.Mem{Base: windowPixel}, l.pixel())
		l.takeGreater(l.position())
	})
	l.finish(masked)
}

// takeGreater replaces the maximum and its position where the pixel is greater, or is
// NaN and the maximum is not.
func (l *poolLoop) takeGreater(position reg.Register) {
	greater, number := l.selection(3, reg.K2), l.selection(4, reg.K3)
	l.compare(notLessOrEqual, l.pixel(), l.most(), greater)
	if l.wide {
		form(l.machine, l.VCMPPS, l.VCMPPD)(neitherIsNaN, l.most(), l.most(), greater, number)
	} else {
		l.compare(neitherIsNaN, l.most(), l.most(), number)
		l.VANDPS(greater, number, number)
	}
	l.replace(number, l.pixel(), l.most())
	l.replace(number, position, l.index())
}

// finish applies the ReLU and stores maxima and positions. Without a ReLU the limit is
// NaN, which nothing is less than or equal to.
func (l *poolLoop) finish(masked bool) {
	cut := l.selection(3, reg.K2)
	l.compare(lessOrEqual, l.most(), l.limit(), cut)
	l.replace(cut, l.zeros(), l.most())
	l.replace(cut, l.none(), l.index())
	l.write(masked, l.mask(), l.most(), operand.Mem{Base: yHere})
	l.storeBytes(masked, l.index(), l.scratch(), l.tail(indexHere))
}

// gradient loads the values to spread and their positions.
func (l *poolLoop) gradient(masked bool) {
	l.read(masked, l.mask(), operand.Mem{Base: yHere}, l.most())
	l.loadBytes(masked, l.tail(indexHere), l.index())
}

// unsigned makes -0 to 0, as a sum that starts from 0 does.
func (l *poolLoop) unsigned() { l.plus(l.most(), l.zeros(), l.most()) }

func (l *poolLoop) spread2x2(masked bool) {
	l.gradient(masked)
	l.unsigned()
	l.pixels2x2(func(at operand.Mem, n int) {
		position := l.zeros()
		if n > 0 {
			position = l.constant(n)
		}
		l.passed(position)
		l.write(masked, l.mask(), l.pixel(), at)
	})
}

func (l *poolLoop) spread(masked bool) {
	l.gradient(masked)
	l.unsigned()
	l.pixels(func() {
		l.passed(l.position())
		l.write(masked, l.mask(), l.pixel(), operand.Mem{Base: windowPixel})
	})
}

func (l *poolLoop) add(masked bool) {
	l.gradient(masked)
	l.pixels(func() {
		at := operand.Mem{Base: windowPixel}
		mask := l.selected(l.position())
		l.read(masked, l.mask(), at, l.pixel())
		l.plus(l.most(), l.pixel(), l.v(4))
		l.replace(mask, l.v(4), l.pixel())
		l.write(masked, l.mask(), l.pixel(), at)
	})
}

// passed sets pixel to the values at a position, 0 elsewhere.
func (l *poolLoop) passed(position reg.Register) {
	l.pass(l.selected(position), l.most(), l.pixel())
}

// selected is a mask of the elements whose position this is.
func (l *poolLoop) selected(position reg.Register) reg.Register {
	mask := l.selection(3, reg.K2)
	l.equalInt(position, l.index(), mask)
	return mask
}
