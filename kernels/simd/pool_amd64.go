package simd

import (
	"math"
	"unsafe"
)

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
	size               int
	limit              uint64 // bits of the value up to which a maximum is cut off
	one, none          int
}

// args are those of the pooling.
func (p *Pooling[T]) args(l Level, size int) poolArgs {
	lanes := l.bytes() / size
	last := p.Channels % lanes
	return poolArgs{
		y: pointer(p.Y), index: pointer(p.Index), x: pointer(p.X), limit: p.limit(),
		rows: p.rows(), windows: p.Windows, vectors: p.Channels / lanes, tail: last, mask: l.mask(last, size),
		yRow: p.YRow * size, indexRow: p.IndexRow, xRows: p.Step * p.XRow * size,
		yPixel: p.YPixel * size, indexPixel: p.IndexPixel, xStep: p.Step * p.XPixel * size,
		xRow: p.XRow * size, xPixel: p.XPixel * size,
		size: p.Size, one: 1, none: NoMaximum,
	}
}

func (p *Pooling[T]) maxVectors(l Level) {
	size := size(p.X)
	if narrow := p.narrow(l, size); narrow != Go {
		a := p.narrowArgs(narrow, size)
		a.max(narrow, size)
		return
	}
	a := p.args(l, size)
	if size == 8 {
		a.max64(l)
	} else {
		a.max32(l)
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
		a.spread(narrow, size)
		return
	}
	a := p.args(l, size)
	if size == 8 {
		a.spread64(l, p.Accumulate)
	} else {
		a.spread32(l, p.Accumulate)
	}
}

// A call through a table would move the arguments to the heap.

func (a *poolArgs) max32(l Level) {
	switch {
	case l == AVX512 && a.size == 2:
		maxPool2x2AVX512F32(a)
	case l == AVX512:
		maxPoolAVX512F32(a)
	case a.size == 2:
		maxPool2x2AVX2F32(a)
	default:
		maxPoolAVX2F32(a)
	}
}

func (a *poolArgs) max64(l Level) {
	switch {
	case l == AVX512 && a.size == 2:
		maxPool2x2AVX512F64(a)
	case l == AVX512:
		maxPoolAVX512F64(a)
	case a.size == 2:
		maxPool2x2AVX2F64(a)
	default:
		maxPoolAVX2F64(a)
	}
}

func (a *poolArgs) spread32(l Level, add bool) {
	switch {
	case l == AVX512 && add:
		unpoolAddAVX512F32(a)
	case l == AVX512 && a.size == 2:
		unpool2x2AVX512F32(a)
	case l == AVX512:
		unpoolAVX512F32(a)
	case add:
		unpoolAddAVX2F32(a)
	case a.size == 2:
		unpool2x2AVX2F32(a)
	default:
		unpoolAVX2F32(a)
	}
}

func (a *poolArgs) spread64(l Level, add bool) {
	switch {
	case l == AVX512 && add:
		unpoolAddAVX512F64(a)
	case l == AVX512 && a.size == 2:
		unpool2x2AVX512F64(a)
	case l == AVX512:
		unpoolAVX512F64(a)
	case add:
		unpoolAddAVX2F64(a)
	case a.size == 2:
		unpool2x2AVX2F64(a)
	default:
		unpoolAVX2F64(a)
	}
}
