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

var (
	maxPool    = forms[poolArgs]{AVX2: {maxPoolAVX2F32, maxPoolAVX2F64}, AVX512: {maxPoolAVX512F32, maxPoolAVX512F64}}
	maxPool2x2 = forms[poolArgs]{AVX2: {maxPool2x2AVX2F32, maxPool2x2AVX2F64}, AVX512: {maxPool2x2AVX512F32, maxPool2x2AVX512F64}}
	unpool     = forms[poolArgs]{AVX2: {unpoolAVX2F32, unpoolAVX2F64}, AVX512: {unpoolAVX512F32, unpoolAVX512F64}}
	unpool2x2  = forms[poolArgs]{AVX2: {unpool2x2AVX2F32, unpool2x2AVX2F64}, AVX512: {unpool2x2AVX512F32, unpool2x2AVX512F64}}
	unpoolAdd  = forms[poolArgs]{AVX2: {unpoolAddAVX2F32, unpoolAddAVX2F64}, AVX512: {unpoolAddAVX512F32, unpoolAddAVX512F64}}
)

// args are the arguments for the pooling.
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
		narrowMax.call(narrow, size, &a)
		return
	}
	a := p.args(l, size)
	if p.Size == 2 {
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
		narrowSpread.call(narrow, size, &a)
		return
	}
	a := p.args(l, size)
	switch {
	case p.Accumulate:
		unpoolAdd.call(l, size, &a)
	case p.Size == 2:
		unpool2x2.call(l, size, &a)
	default:
		unpool.call(l, size, &a)
	}
}
