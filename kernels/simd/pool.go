package simd

import (
	"cmp"
	"math"
	"unsafe"
)

// NoMaximum is the index of a window whose maximum a ReLU has cut off.
const NoMaximum = 255

// Pooling is windows over pixels with contiguous channels. Its maps must not
// overlap. Window (u, v), u < Rows, v < Windows, has its pixels at rows u·Step + i and columns
// v·Across + j, i < Size, j < Width.
type Pooling[T Float] struct {
	Rows, Windows, Channels int // 0 rows are one
	Size, Step              int // rows of a window, at most 15, and from a window to the next one below
	Width, Across           int // the same of columns; 0 is as for rows

	Y     []T
	Index []uint8
	X     []T

	YRow, YPixel         int
	IndexRow, IndexPixel int
	XRow, XPixel         int

	ReLU       bool // of Max
	Accumulate bool // of Spread
}

// Max takes the maxima of the windows at a level:
//
//	Y[u·YRow + v·YPixel + c] = max_{i,j} X[(u·Step+i)·XRow + (v·Across+j)·XPixel + c]
//	Index[u·IndexRow + v·IndexPixel + c] = i·Width + j of the first maximum
//
// for c < Channels. NaN wins, and the first of several. With ReLU, Y is 0 and Index is
// [NoMaximum] where the maximum is at most 0; NaN stays.
func (p *Pooling[T]) Max(l Level) {
	p.check()
	if l == Go {
		p.eachWindow(p.maximum)
		return
	}
	p.maxVectors(l)
}

// Spread is the gradient of Max at a level: it hands each window's Y to the pixel that
// Index names, and to none where it is [NoMaximum]:
//
//	X[(u·Step+i)·XRow + (v·Across+j)·XPixel + c] =
//		Y[u·YRow + v·YPixel + c] where Index[u·IndexRow + v·IndexPixel + c] = i·Width + j, else 0
//
// or adds to X with Accumulate, as overlapping windows need.
// Pixels outside the windows are not touched.
func (p *Pooling[T]) Spread(l Level) {
	p.check()
	if (p.Step < p.Size || p.across() < p.width()) && !p.Accumulate {
		panic("simd: overlapping windows must accumulate")
	}
	if l == Go {
		p.eachWindow(p.spread)
		return
	}
	p.spreadVectors(l)
}

func (p *Pooling[T]) rows() int   { return max(p.Rows, 1) }
func (p *Pooling[T]) width() int  { return cmp.Or(p.Width, p.Size) }
func (p *Pooling[T]) across() int { return cmp.Or(p.Across, p.Step) }

// check panics if an operand is shorter than the extents and distances say.
func (p *Pooling[T]) check() {
	if p.Windows < 1 || p.Channels < 1 || min(p.Size, p.width()) < 1 || max(p.Size, p.width()) > 15 || min(p.Step, p.across()) < 1 {
		panic("simd: pooling without windows, or with windows beyond 15×15")
	}
	if p.YRow|p.YPixel|p.IndexRow|p.IndexPixel|p.XRow|p.XPixel < 0 {
		panic("simd: pooling with a negative distance")
	}
	u, v := p.rows()-1, p.Windows-1
	lastX := (u*p.Step+p.Size-1)*p.XRow + (v*p.across()+p.width()-1)*p.XPixel
	if lastX+p.Channels > len(p.X) || u*p.YRow+v*p.YPixel+p.Channels > len(p.Y) || u*p.IndexRow+v*p.IndexPixel+p.Channels > len(p.Index) {
		panic("simd: pooling reaches beyond an operand")
	}
}

// eachWindow visits the channels of each window and of its first pixel.
func (p *Pooling[T]) eachWindow(visit func(y []T, index []uint8, x []T)) {
	for u := range p.rows() {
		for v := range p.Windows {
			visit(p.Y[u*p.YRow+v*p.YPixel:][:p.Channels],
				p.Index[u*p.IndexRow+v*p.IndexPixel:][:p.Channels],
				p.X[u*p.Step*p.XRow+v*p.across()*p.XPixel:])
		}
	}
}

// maximum is Max for a window in plain Go: its pixels one after the other, all channels of a pixel
// together.
func (p *Pooling[T]) maximum(y []T, index []uint8, x []T) {
	copy(y, x)
	clear(index)
	for i := range p.Size {
		for j := range p.width() {
			position := uint8(i*p.width() + j)
			for c, e := range x[i*p.XRow+j*p.XPixel:][:len(y)] {
				if most := y[c]; e > most || e != e && most == most {
					y[c], index[c] = e, position
				}
			}
		}
	}
	if p.ReLU {
		for c, most := range y {
			if most <= 0 {
				y[c], index[c] = 0, NoMaximum
			}
		}
	}
}

// spread is Spread for a window in plain Go.
func (p *Pooling[T]) spread(y []T, index []uint8, corner []T) {
	for i := range p.Size {
		for j := range p.width() {
			x := corner[i*p.XRow+j*p.XPixel:][:len(index)]
			position := uint8(i*p.width() + j)
			for c, at := range index {
				if !p.Accumulate {
					x[c] = 0
				}
				if at == position {
					x[c] += y[c]
				}
			}
		}
	}
}

// poolArgs is the argument of one call of the assembly. Distances are in bytes. gen/pool.go knows
// the order of the fields.
type poolArgs struct {
	y, index, x        unsafe.Pointer
	_                  [3]int // yAt, indexAt, xAt: the assembly notes where the present row begins
	rows, windows      int
	_                  int // left: windows left of the present row
	vectors, tail      int // whole vectors of channels, and channels beyond them
	mask               uintptr
	yRow, indexRow     int
	xRows              int // from a row of windows to the next
	yPixel, indexPixel int
	xStep              int // from a window to the next
	xRow, xPixel       int
	height, width      int
	limit              uint64 // bits of the value up to which a maximum is cut off
	one, none          int
}

// args are the arguments for the pooling.
func (p *Pooling[T]) args(l Level, size int) poolArgs {
	lanes := l.bytes() / size
	last := p.Channels % lanes
	return poolArgs{
		y: pointer(p.Y), index: pointer(p.Index), x: pointer(p.X), limit: p.limit(),
		rows: p.rows(), windows: p.Windows, vectors: p.Channels / lanes, tail: last, mask: l.mask(last, size),
		yRow: p.YRow * size, indexRow: p.IndexRow, xRows: p.Step * p.XRow * size,
		yPixel: p.YPixel * size, indexPixel: p.IndexPixel, xStep: p.across() * p.XPixel * size,
		xRow: p.XRow * size, xPixel: p.XPixel * size,
		height: p.Size, width: p.width(), one: 1, none: NoMaximum,
	}
}

func (p *Pooling[T]) maxVectors(l Level) {
	size := size(p.X)
	if narrow := p.narrow(l, size); narrow != Go {
		a := p.narrowArgs(narrow, size)
		maxPoolNarrow.call(narrow, size, &a)
		return
	}
	a := p.args(l, size)
	if p.Size == 2 && p.width() == 2 {
		maxPool2x2.call(l, size, &a)
	} else {
		maxPool.call(l, size, &a)
	}
}

// limit is the value up to which maxima are cut off: none is less than or equal to NaN.
func (p *Pooling[T]) limit() uint64 {
	if p.ReLU {
		return 0
	}
	return bits(T(math.NaN()))
}

func (p *Pooling[T]) spreadVectors(l Level) {
	size := size(p.X)
	if narrow := p.narrow(l, size); narrow != Go && !p.Accumulate {
		a := p.narrowArgs(narrow, size)
		unpoolNarrow.call(narrow, size, &a)
		return
	}
	a := p.args(l, size)
	switch {
	case p.Accumulate:
		unpoolAdd.call(l, size, &a)
	case p.Size == 2 && p.width() == 2:
		unpool2x2.call(l, size, &a)
	default:
		unpool.call(l, size, &a)
	}
}
