package simd

import (
	"math"
	"unsafe"
)

// winogradArgs is the argument of one call of the assembly. Distances are in bytes. gen/winograd.go knows
// the order of the fields.
type winogradArgs struct {
	x, domain            unsafe.Pointer
	_                    [2]int // xAt, domainAt: the assembly notes where the present tile begins
	tiles                int
	vectors, tail        int // whole vectors of channels, and channels beyond them
	mask                 uintptr
	constants            unsafe.Pointer
	xRow, xPixel, xTile  int
	position, domainTile int
	rows, columns        int
	bias                 unsafe.Pointer // nil: none
	floor                uint64         // bits of the value below which no result is
	add                  int
	where                unsafe.Pointer // nil: keep all
	whereRow, wherePixel int
	whereTile            int
	_                    int // whereAt
}

var winogradForms = [...]forms[winogradArgs]{
	winogradData:           {AVX2: {winogradDataAVX2F32}, AVX512: {winogradDataAVX512F32}},
	winogradGradient:       {AVX2: {winogradGradientAVX2F32}, AVX512: {winogradGradientAVX512F32}},
	winogradFilter:         {AVX2: {winogradFilterAVX2F32}, AVX512: {winogradFilterAVX512F32}},
	winogradResult:         {AVX2: {winogradResultAVX2F32}, AVX512: {winogradResultAVX512F32}},
	winogradFilterGradient: {AVX2: {winogradFilterGradientAVX2F32}, AVX512: {winogradFilterGradientAVX512F32}},
}

func (w *Winograd) runVectors(l Level, t winogradTransform) {
	const size = 4
	lanes := l.bytes() / size
	tail := w.Channels % lanes
	a := winogradArgs{
		x: pointer(w.X), domain: pointer(w.Domain), tiles: w.Tiles,
		vectors: w.Channels / lanes, tail: tail, mask: l.mask(tail, size), constants: pointer(winogradLines[t].constants[:]),
		xRow: w.XRow * size, xPixel: w.XPixel * size, xTile: w.XTile * size,
		position: w.Position * size, domainTile: w.DomainTile * size,
		rows: w.Rows, columns: w.Columns, bias: pointer(w.Bias), floor: uint64(math.Float32bits(w.floor())),
		where: pointer(w.Where), whereRow: w.WhereRow * size, wherePixel: w.WherePixel * size, whereTile: w.WhereTile * size,
	}
	if w.Accumulate {
		a.add = 1
	}
	winogradForms[t].call(l, size, &a)
}
