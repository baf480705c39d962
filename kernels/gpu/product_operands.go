package gpu

import (
	"math"

	"dahl/dag"
	"dahl/kernels/calls"
)

// Operands of products. product_operand.h explains their kinds.

// index32 is an extent or a stride in the type of kernels.
func index32(v int) int32 {
	if v < math.MinInt32 || v > math.MaxInt32 {
		panic("kernels: a product counts more than 2^31 rows, columns or steps")
	}
	return int32(v)
}

// matrixOperand is a matrix of rows (pixels) and columns (taps).
func matrixOperand(a *calls.DeviceArg) productOperand {
	return productOperand{
		address: a.Addr, outer: uint64(a.Stride[0]), tap: [3]int32{1, 0, 0},
		pixels: index32(a.Shape[0]), taps: index32(a.Shape[1]), ones: -1,
	}
}

// mapOperand is an operand whose pixels are counted over three dimensions with the given extents
// and strides. Its taps are channels.
func mapOperand(address uint64, extents, strides calls.Triple, channels, channel int) productOperand {
	return productOperand{
		address: address, outer: uint64(strides[0]), middle: index32(strides[1]), inner: index32(strides[2]),
		tap: [3]int32{index32(channel), 0, 0}, pixels: index32(extents.Volume()), taps: index32(channels),
		rows: divideBy(max(1, extents[1])), columns: divideBy(max(1, extents[2])), ones: -1,
	}
}

// imageOperand is an image as pixels and channels.
func imageOperand(a *calls.DeviceArg) productOperand {
	return mapOperand(a.Addr, a.Pixels(), a.Strides(), a.Shape[3], a.Stride[3])
}

// sweep is the way of a window over an image: row u·step + t·direction + origin for pixel u and
// tap t of the window, and columns alike.
type sweep struct {
	pixels          calls.Triple // samples, rows, columns of the result
	rows, columns   int          // of the window
	step, direction int
	originRow       int
	originColumn    int
}

// windowOperand is an image as the pixels under a window.
func windowOperand(a *calls.DeviceArg, s sweep) productOperand {
	extents, strides, channels := a.Pixels(), a.Strides(), a.Shape[3]
	o := mapOperand(a.Addr, s.pixels, strides, s.rows*s.columns*channels, 0)
	o.tap = [3]int32{index32(s.direction * strides[1]), index32(s.direction * strides[2]), index32(a.Stride[3])}
	o.extent1, o.extent2 = divideBy(max(1, s.columns)), divideBy(channels)
	o.step, o.direction = int32(s.step), int32(s.direction)
	o.originRow, o.originColumn = index32(s.originRow), index32(s.originColumn)
	o.height, o.width = index32(extents[1]), index32(extents[2])
	return o
}

// vectorised marks an operand whose taps can be loaded 16 bytes at a time: the runs of contiguous
// taps are multiples of 16 bytes and begin at such multiples. run is the number of contiguous
// taps.
func (o productOperand) vectorised(t dag.DType, run int) productOperand {
	size := int(t.SizeBytes())
	group := 16 / size
	last, rest := o.tap[0], []int32{o.middle, o.inner}
	if o.direction != 0 { // a window
		last, rest = o.tap[2], append(rest, o.tap[0], o.tap[1])
	}
	fits := last == 1 && run%group == 0 && o.address%16 == 0 && int64(o.outer)%int64(group) == 0
	for _, s := range rest {
		fits = fits && int(s)%group == 0
	}
	if fits {
		o.vector = 1
	}
	return o
}

// withOnes adds a tap of ones after the last.
func (o productOperand) withOnes() productOperand {
	o.ones = o.taps
	return o
}

// onesAlone is the product reduced to its row or column of ones: the gradient of the bias.
func (p productParams) onesAlone() productParams {
	if p.ones == rowOfOnes {
		p.m, p.a = 1, p.a.onlyOnes()
	} else {
		p.n, p.b = 1, p.b.onlyOnes()
	}
	return p
}

// onlyOnes is an operand with a single tap, the ones.
func (o productOperand) onlyOnes() productOperand {
	o.taps, o.ones, o.vector = 0, 0, 0
	return o
}

// result fills in the place of the result: its pixels and its channels.
func (p *productParams) result(address uint64, extents, strides calls.Triple, channel int) {
	p.c, p.cOuter, p.cMiddle, p.cInner = address, uint64(strides[0]), index32(strides[1]), index32(strides[2])
	p.cChannel = index32(channel)
	p.rows, p.columns = divideBy(max(1, extents[1])), divideBy(max(1, extents[2]))
}

// companion fills in a map that has the result's pixels and channels.
func (p *productParams) companion(address uint64, strides calls.Triple, channel int) {
	p.other, p.otherOuter, p.otherMiddle, p.otherInner = address, uint64(strides[0]), index32(strides[1]), index32(strides[2])
	p.otherChannel = index32(channel)
}

// matrixResult is result for a matrix.
func (p *productParams) matrixResult(a *calls.DeviceArg) {
	p.result(a.Addr, calls.Triple{a.Shape[0], 1, 1}, calls.Triple{a.Stride[0], 0, 0}, 1)
}

// storesFours marks the parameter if four neighbouring channels of the result can be stored at
// once.
func (p *productParams) storesFours(t dag.DType) {
	size := uint64(t.SizeBytes())
	aligned := func(stride int64) bool { return stride%4 == 0 }
	if p.after == afterStore && p.ones == noOnes && p.cChannel == 1 && p.n%4 == 0 && p.c%(4*size) == 0 &&
		aligned(int64(p.cOuter)) && aligned(int64(p.cMiddle)) && aligned(int64(p.cInner)) {
		p.vector = 1
	}
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
