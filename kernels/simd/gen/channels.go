package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Channels go over the pixels of channels-last images, and at each pixel over its channels. What
// a channel has for all pixels is read again at each, from the first-level cache. Products and sums are
// rounded one by one, so that all levels give equal bits.

func channels(m machine) {
	for _, f := range channelLoops {
		l := channelLoop{m.begin(f.name+m.name(), "channelArgs", f.doc, channelFields...), f.images, f.rows}
		l.walk(func(masked bool) { f.body(&l, masked) })
	}
}

// channelLoops names the operands in the order of simd.Channels.
var channelLoops = []struct {
	name, doc    string
	images, rows []string
	body         func(l *channelLoop, masked bool)
}{
	{"channelSums", "adds up x.", []string{"x"}, []string{"s"}, (*channelLoop).sums},
	{"channelSquares", "adds up the squares of x - mean.", []string{"x"}, []string{"q", "mean"}, (*channelLoop).squares},
	{"channelNormalise", "normalises x.", []string{"y", "x", "r"}, []string{"mean", "scale", "shift"}, (*channelLoop).normalise},
	{"channelGradientSums", "adds up dy and dy·(x - mean).", []string{"dy", "x"}, []string{"mean", "scale", "shift", "s", "q"}, (*channelLoop).gradientSums},
	{"channelGate", "stops dy where y is not positive, and adds it up.", []string{"dy", "y", "x", "r"}, []string{"mean", "s", "q"}, (*channelLoop).gate},
	{"channelGradient", "computes the gradient of x.", []string{"dx", "dy", "x"}, []string{"mean", "scale", "shift", "a", "b", "e"}, (*channelLoop).gradient},
}

// channelFields are the fields of simd.channelArgs.
var channelFields = []string{
	"i0", "i1", "i2", "i3", "step0", "step1", "step2", "step3", "r0", "r1", "r2", "r3", "r4", "r5", "pixels", "vectors", "tail", "mask", "flags",
}

var (
	imagePointers = [4]reg.GPPhysical{reg.RSI, reg.R8, reg.R9, reg.R10}
	rowPointers   = [6]reg.GPPhysical{reg.R11, reg.R12, reg.R13, reg.RBX, reg.RDX, reg.R15}
	channelAt     = reg.RAX // bytes from the first channel
	channelsLeft  = reg.RCX
)

// Flags of simd.channelArgs.
const (
	flagReLU = 0
	flagAdd  = 1
)

type channelLoop struct {
	loop
	images, rows []string
}

// walk writes the loops around the body, which is written twice: for whole vectors and masked for the rest.
func (l *channelLoop) walk(body func(masked bool)) {
	for i := range l.images {
		l.MOVQ(l.field(numbered("i", i)), imagePointers[i])
	}
	for i := range l.rows {
		l.MOVQ(l.field(numbered("r", i)), rowPointers[i])
	}
	l.setMask("mask", channelsLeft)
	l.zero(l.v(13))
	l.Label("pixel")
	l.XORQ(channelAt, channelAt)
	l.vectors(channelsLeft, "next", body, func() { l.ADDQ(operand.Imm(uint64(l.bytes())), channelAt) })
	for i := range l.images {
		l.ADDQ(l.field(numbered("step", i)), imagePointers[i])
	}
	l.again(l.field("pixels"), "pixel")
	l.end()
}

func (l *channelLoop) at(name string) operand.Mem {
	for i, o := range l.images {
		if o == name {
			return operand.Mem{Base: imagePointers[i], Index: channelAt, Scale: 1}
		}
	}
	for i, o := range l.rows {
		if o == name {
			return operand.Mem{Base: rowPointers[i], Index: channelAt, Scale: 1}
		}
	}
	panic("gen: no operand " + name)
}

func (l *channelLoop) get(masked bool, name string, to reg.Register) {
	l.read(masked, l.mask(), l.at(name), to)
}

func (l *channelLoop) put(masked bool, from reg.Register, name string) {
	l.write(masked, l.mask(), from, l.at(name))
}

// addTo adds a vector to the sums of a row, by way of a register.
func (l *channelLoop) addTo(masked bool, name string, v, sum reg.Register) {
	l.get(masked, name, sum)
	l.plus(sum, v, sum)
	l.put(masked, sum, name)
}

func (l *channelLoop) sums(masked bool) {
	l.get(masked, "x", l.v(0))
	l.addTo(masked, "s", l.v(0), l.v(1))
}

func (l *channelLoop) squares(masked bool) {
	x, mean := l.v(0), l.v(1)
	l.centred(masked, x, mean)
	l.times(x, x, x)
	l.addTo(masked, "q", x, mean)
}

// centred reads x - mean.
func (l *channelLoop) centred(masked bool, x, mean reg.Register) {
	l.get(masked, "x", x)
	l.get(masked, "mean", mean)
	l.minus(x, mean, x)
}

// scaled multiplies x - mean by the scale and adds the shift.
func (l *channelLoop) scaled(masked bool, centred, factor, to reg.Register) {
	l.get(masked, "scale", factor)
	l.times(centred, factor, to)
	l.get(masked, "shift", factor)
	l.plus(to, factor, to)
}

func (l *channelLoop) normalise(masked bool) {
	x, t := l.v(0), l.v(1)
	l.centred(masked, x, t)
	l.scaled(masked, x, t, x)
	l.when(flagAdd, l.field("flags"), func() {
		l.get(masked, "r", t)
		l.plus(x, t, x)
	})
	l.when(flagReLU, l.field("flags"), func() { l.notBelow(l.v(13), x) })
	l.put(masked, x, "y")
}

// kept reads dy, and with a ReLU stops it where x gives nothing positive.
func (l *channelLoop) kept(masked bool, g, centred, t, y reg.Register) {
	l.get(masked, "dy", g)
	l.when(flagReLU, l.field("flags"), func() {
		l.scaled(masked, centred, t, y)
		l.keep(l.v(13), y, g)
	})
}

func (l *channelLoop) gradientSums(masked bool) {
	x, g, t, y := l.v(0), l.v(1), l.v(2), l.v(3)
	l.centred(masked, x, t)
	l.kept(masked, g, x, t, y)
	l.addTo(masked, "s", g, t)
	l.times(g, x, x)
	l.addTo(masked, "q", x, t)
}

func (l *channelLoop) gate(masked bool) {
	x, g, t := l.v(0), l.v(1), l.v(2)
	l.get(masked, "dy", g)
	l.when(flagAdd, l.field("flags"), func() {
		l.get(masked, "r", t)
		l.plus(g, t, g)
	})
	l.get(masked, "y", t)
	l.keep(l.v(13), t, g)
	l.put(masked, g, "dy")
	l.addTo(masked, "s", g, t)
	l.centred(masked, x, t)
	l.times(g, x, x)
	l.addTo(masked, "q", x, t)
}

func (l *channelLoop) gradient(masked bool) {
	x, g, t, y := l.v(0), l.v(1), l.v(2), l.v(3)
	l.centred(masked, x, t)
	l.kept(masked, g, x, t, y)
	l.get(masked, "a", t)
	l.times(g, t, g)
	l.get(masked, "b", t)
	l.times(x, t, x)
	l.plus(g, x, g)
	l.get(masked, "e", t)
	l.plus(g, t, g)
	l.put(masked, g, "dx")
}
