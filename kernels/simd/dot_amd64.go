package simd

import (
	"math"
	"unsafe"
)

// dotArgs is the argument of one call of the assembly: blocks blocks of rows rows, and one, two
// or four columns. Distances are in bytes. gen/dot.go knows the order of the fields.
type dotArgs struct {
	a, b, c, start       unsafe.Pointer // start: initial values of the sums
	aAt, cAt, startAt    int            // start of the present block
	vectors              int            // whole vectors of a row
	blocks, rows         int
	aRow, aBlock         int
	bRow                 int
	cRow, cBlock         int
	startRow, startBlock int
	floor                uint64  // the least result: zero or minus infinity
	mask                 uintptr // of the elements after the whole vectors: see Level.mask
	rest                 int     // 0 if no elements follow
}

// dotRows is the largest number of rows of a block, see gen/dot.go.
var dotRows = [...]int{AVX2: 3, AVX512: 6}

// dots are by columns.
var dots = [...]forms[dotArgs]{
	1: {AVX2: {dotAVX2F32x1, dotAVX2F64x1}, AVX512: {dotAVX512F32x1, dotAVX512F64x1}},
	2: {AVX2: {dotAVX2F32x2, dotAVX2F64x2}, AVX512: {dotAVX512F32x2, dotAVX512F64x2}},
	4: {AVX2: {dotAVX2F32x4, dotAVX2F64x4}, AVX512: {dotAVX512F32x4, dotAVX512F64x4}},
}

// zeros are the initial values of sums that start from nothing.
var zeros [4]float64

// runVectors computes four columns at a time, then two, then one.
func (d *Dot[T]) runVectors(l Level) {
	size := size(d.A)
	lanes := l.bytes() / size
	args := dotArgs{vectors: d.K / lanes, rest: d.K % lanes, aRow: d.ARow * size, bRow: d.BRow * size, cRow: d.CRow * size}
	args.mask = l.mask(args.rest, size)
	if !d.ReLU && size == 4 {
		args.floor = uint64(math.Float32bits(float32(math.Inf(-1))))
	} else if !d.ReLU {
		args.floor = math.Float64bits(math.Inf(-1))
	}
	blocks := (d.M + dotRows[l] - 1) / dotRows[l]
	rows, higher := d.M/blocks, d.M%blocks
	for j := 0; j < d.N; {
		n := 4
		for n > d.N-j {
			n /= 2
		}
		if higher > 0 {
			d.rows(l, &args, 0, j, n, higher, rows+1)
		}
		d.rows(l, &args, higher*(rows+1), j, n, blocks-higher, rows)
		j += n
	}
}

// rows computes count blocks of rows rows each from row i, and n columns from j.
func (d *Dot[T]) rows(l Level, args *dotArgs, i, j, n, count, rows int) {
	args.a, args.b, args.c = unsafe.Pointer(&d.A[i*d.ARow]), unsafe.Pointer(&d.B[j*d.BRow]), unsafe.Pointer(&d.C[i*d.CRow+j])
	args.aAt, args.cAt, args.startAt = 0, 0, 0
	args.blocks, args.rows = count, rows
	args.aBlock, args.cBlock = rows*args.aRow, rows*args.cRow
	switch {
	case d.Accumulate:
		args.start, args.startRow, args.startBlock = args.c, args.cRow, args.cBlock
	case d.Bias != nil:
		args.start = unsafe.Pointer(&d.Bias[j])
	default:
		args.start = unsafe.Pointer(&zeros)
	}
	dots[n].call(l, size(d.A), args)
}
