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

// args are the arguments of the pooling without the operands.
func (s *poolShape) args(l Level, size int) poolArgs {
	lanes := l.bytes() / size
	last := s.channels % lanes
	return poolArgs{
		rows: s.rows, windows: s.windows, vectors: s.channels / lanes, tail: last, mask: l.mask(last, size),
		yRow: s.yRow * size, indexRow: s.indexRow, xRows: s.step * s.xRow * size,
		yPixel: s.yPixel * size, indexPixel: s.indexPixel, xStep: s.step * s.xPixel * size,
		xRow: s.xRow * size, xPixel: s.xPixel * size,
		size: s.size, one: 1, none: NoMaximum,
	}
}

func runMaxPool[T Float](l Level, s *poolShape, p *MaxPool[T]) bool {
	size := size(p.X)
	if narrow := s.narrow(l, size); narrow != Go {
		a := s.narrowArgs(narrow, size)
		a.y, a.index, a.x = pointer(p.Y), pointer(p.Index), pointer(p.X)
		a.limit = limit[T](p.ReLU)
		a.max(narrow, size)
		return true
	}
	a := s.args(l, size)
	a.y, a.index, a.x = pointer(p.Y), pointer(p.Index), pointer(p.X)
	a.limit = limit[T](p.ReLU)
	if size == 8 {
		a.max64(l)
	} else {
		a.max32(l)
	}
	return true
}

// limit is the value up to which maxima are cut off: none is less than or equal to NaN.
func limit[T Float](relu bool) uint64 {
	if relu {
		return 0
	}
	return bits(T(math.NaN()))
}

func runUnpool[T Float](l Level, s *poolShape, p *Unpool[T]) bool {
	size := size(p.X)
	if narrow := s.narrow(l, size); narrow != Go && !p.Accumulate {
		a := s.narrowArgs(narrow, size)
		a.y, a.index, a.x = pointer(p.Y), pointer(p.Index), pointer(p.X)
		a.spread(narrow, size)
		return true
	}
	a := s.args(l, size)
	a.y, a.index, a.x = pointer(p.Y), pointer(p.Index), pointer(p.X)
	if size == 8 {
		a.spread64(l, p.Accumulate)
	} else {
		a.spread32(l, p.Accumulate)
	}
	return true
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
