package simd

import "unsafe"

// Depthwise is sums of products of pixels with contiguous channels, as in a depthwise convolution. Groups of pixels may be
// rows of an image:
//
//	C[g,p,n] = start + Σ_{i,j} A[g,p,i,j,n]·B[i,j,n]     g < Groups, p < Pixels, i < Rows, j < Columns, n < N
//
// with A[g,p,i,j,n] = A[g·AGroup + p·APixel + i·ARow + j·AColumn + n] and the others alike. Sums start from zero, or from Bias[n], or with
// Accumulate from C. Then negative sums become 0 with ReLU, and so do those where Where is given and not positive. C must not
// overlap the other operands.
type Depthwise[T Float] struct {
	N, Pixels, Groups, Rows, Columns int

	C, A, B, Bias, Where []T

	CPixel, CGroup                int
	APixel, AGroup, ARow, AColumn int
	BRow, BColumn                 int
	WherePixel, WhereGroup        int
	ReLU, Accumulate              bool
}

// Run computes the sums at a level.
func (p *Depthwise[T]) Run(l Level) {
	p.check()
	if l != Go {
		p.runVectors(l)
		return
	}
	for g := range p.Groups {
		for i := range p.Pixels {
			c := p.C[g*p.CGroup+i*p.CPixel:][:p.N]
			p.begin(c)
			p.addTaps(c, p.A[g*p.AGroup+i*p.APixel:])
			p.finish(c, g*p.WhereGroup+i*p.WherePixel)
		}
	}
}

func (p *Depthwise[T]) check() {
	if min(p.N, p.Pixels, p.Groups, p.Rows, p.Columns) < 1 {
		panic("simd: depthwise convolution without pixels, channels or taps")
	}
	if min(p.CPixel, p.CGroup, p.APixel, p.AGroup, p.ARow, p.AColumn, p.BRow, p.BColumn, p.WherePixel, p.WhereGroup) < 0 {
		panic("simd: depthwise convolution with a negative distance")
	}
	last := func(group, pixel int) int { return (p.Groups-1)*group + (p.Pixels-1)*pixel + p.N }
	taps := func(row, column int) int { return (p.Rows-1)*row + (p.Columns-1)*column }
	if last(p.CGroup, p.CPixel) > len(p.C) || last(p.AGroup, p.APixel)+taps(p.ARow, p.AColumn) > len(p.A) || taps(p.BRow, p.BColumn)+p.N > len(p.B) ||
		p.Bias != nil && p.N > len(p.Bias) || p.Where != nil && last(p.WhereGroup, p.WherePixel) > len(p.Where) {
		panic("simd: depthwise convolution reaches beyond an operand")
	}
}

// begin sets a pixel to what its sums start from.
func (p *Depthwise[T]) begin(c []T) {
	switch {
	case p.Accumulate:
	case p.Bias != nil:
		copy(c, p.Bias)
	default:
		clear(c)
	}
}

// addTaps adds the products of all taps to a pixel.
func (p *Depthwise[T]) addTaps(c, from []T) {
	for i := range p.Rows {
		for j := range p.Columns {
			a, b := from[i*p.ARow+j*p.AColumn:][:len(c)], p.B[i*p.BRow+j*p.BColumn:][:len(c)]
			for n, v := range a {
				c[n] += v * b[n]
			}
		}
	}
}

// finish cuts a pixel off.
func (p *Depthwise[T]) finish(c []T, where int) {
	for n, v := range c {
		if p.ReLU && v < 0 || p.Where != nil && !(p.Where[where+n] > 0) {
			c[n] = 0
		}
	}
}

// depthwiseArgs is the argument of one call of the assembly: blocks blocks of rows pixels each of every group, of one
// vector of channels. Distances are in bytes. gen/depthwise.go knows the order of the fields.
type depthwiseArgs struct {
	a, b, c, start, where                    unsafe.Pointer // start: initial values of the sums, nil for zero; where: nil means keep all
	aAt, cAt, startAt, whereAt               int            // start of the present block
	blocks, groups, left, rows               int            // left: blocks left of the present group
	aRow, aBlock, aGroup                     int            // from the last block to the next group
	cRow, cBlock, cGroup                     int
	startRow, startBlock, startGroup         int
	whereRow, whereBlock, whereGroup         int
	tapRows, tapColumns                      int
	aTapRow, aTapColumn, bTapRow, bTapColumn int
	relu                                     int
	mask                                     uintptr
	last                                     int // 0 if the vector is whole
}

// depthwisePixels is the most pixels of a block, see gen/depthwise.go.
const depthwisePixels = 8

// bandBytes bounds the part of A over which all vectors of channels pass before the next part.
const bandBytes = 128 << 10

// runVectors takes a vector of channels at a time, of some groups, and pixels in blocks of equal size. What is left of the pixels is a block of its own.
func (p *Depthwise[T]) runVectors(l Level) {
	size := size(p.A)
	lanes := l.bytes() / size
	block := blockOf(p.Pixels)
	band := max(1, bandBytes/(max(p.AGroup, p.Pixels*p.APixel, 1)*size))
	for g := 0; g < p.Groups; g += band {
		for n := 0; n < p.N; n += lanes {
			a := depthwiseArgs{
				groups: min(band, p.Groups-g), aRow: p.APixel * size, cRow: p.CPixel * size, whereRow: p.WherePixel * size,
				tapRows: p.Rows, tapColumns: p.Columns, aTapRow: p.ARow * size, aTapColumn: p.AColumn * size, bTapRow: p.BRow * size, bTapColumn: p.BColumn * size,
				mask: l.mask(min(p.N-n, lanes), size),
			}
			if p.N-n < lanes {
				a.last = p.N - n
			}
			if p.ReLU {
				a.relu = 1
			}
			whole := p.Pixels / block
			p.blocks(l, a, g, 0, n, whole, block)
			if rest := p.Pixels - whole*block; rest > 0 {
				p.blocks(l, a, g, whole*block, n, 1, rest)
			}
		}
	}
}

// blockOf is the pixels of a block for a number of pixels: a large one without a rest, if there is one.
func blockOf(pixels int) int {
	for n := depthwisePixels; n > depthwisePixels/2; n-- {
		if pixels%n == 0 {
			return n
		}
	}
	return min(pixels, depthwisePixels)
}

// blocks computes count blocks of rows pixels from pixel i, of the groups from g, and a vector of channels from n.
func (p *Depthwise[T]) blocks(l Level, a depthwiseArgs, g, i, n, count, rows int) {
	size := size(p.A)
	a.blocks, a.left, a.rows = count, count, rows
	a.a, a.b, a.c = pointer(p.A[g*p.AGroup+i*p.APixel+n:]), pointer(p.B[n:]), pointer(p.C[g*p.CGroup+i*p.CPixel+n:])
	a.aBlock, a.aGroup = rows*a.aRow, p.AGroup*size-count*rows*a.aRow
	a.cBlock, a.cGroup = rows*a.cRow, p.CGroup*size-count*rows*a.cRow
	if p.Where != nil {
		a.where = pointer(p.Where[g*p.WhereGroup+i*p.WherePixel+n:])
		a.whereBlock, a.whereGroup = rows*a.whereRow, p.WhereGroup*size-count*rows*a.whereRow
	}
	switch {
	case p.Accumulate:
		a.start, a.startRow, a.startBlock, a.startGroup = a.c, a.cRow, a.cBlock, a.cGroup
	case p.Bias != nil:
		a.start = pointer(p.Bias[n:])
	}
	depthwise.call(l, size, &a)
}
