package simd

import (
	"math"
	"unsafe"
)

// Dot is a matrix product whose operands are both contiguous along the sum:
//
//	C[i,j] = Bias[j] + Σ_{p<K} A[i,p]·B[j,p]     i < M, j < N
//
// with A[i,p] = A[i·ARow + p], B[j,p] = B[j·BRow + p] and C[i,j] = C[i·CRow + j]: a
// dense layer with weights of (outputs, inputs), however few the outputs.
//
// Element p of a sum is added to lane p mod L of L lanes in the order of p. The lanes are added
// in a tree, and bias or C last, whatever M, N and the position of the element. L is 16 for
// float32 with AVX-512, half of that for float64, half with AVX2, and 1 in plain Go. A sum longer
// than dotDepth is cut into parts of equal length, and each part is added to those before it.
type Dot[T Float] struct {
	M, N, K int

	A, B, C          []T
	ARow, BRow, CRow int

	Bias       []T  // of N elements, or nil
	Accumulate bool // add to C; Bias is not used
	ReLU       bool // replace a negative result by zero; NaN stays
}

// check panics if an operand is shorter than the extents and distances say.
func (d *Dot[T]) check() {
	if d.M < 1 || d.N < 1 || d.K < 1 {
		panic("simd: dot products of an empty matrix")
	}
	if d.ARow|d.BRow|d.CRow < 0 {
		panic("simd: dot products with a negative distance")
	}
	if (d.M-1)*d.ARow+d.K > len(d.A) || (d.N-1)*d.BRow+d.K > len(d.B) || (d.M-1)*d.CRow+d.N > len(d.C) ||
		d.Bias != nil && len(d.Bias) < d.N {
		panic("simd: dot products reach beyond an operand")
	}
}

// dotDepth bounds the part of the sums that is computed for all elements before the next. Ten
// such rows, four columns and six rows of C (40 or 80 KB), are about what fits the first-level
// cache, and a hundred rows of A the second.
const dotDepth = 1024

// Run computes the product at a level.
func (d *Dot[T]) Run(l Level) {
	d.check()
	parts := (d.K + dotDepth - 1) / dotDepth
	if parts == 1 {
		d.part(l)
		return
	}
	// Parts have whole cache lines, so that loads stay aligned if rows are.
	depth := ((d.K+parts-1)/parts + 15) &^ 15
	for p := 0; p < d.K; p += depth {
		e := *d
		e.A, e.B, e.K = d.A[p:], d.B[p:], min(depth, d.K-p)
		e.Accumulate = d.Accumulate || p > 0
		e.ReLU = d.ReLU && p+depth >= d.K
		e.part(l)
	}
}

// part computes sums of at most dotDepth products.
func (d *Dot[T]) part(l Level) {
	if l == Go {
		d.runGo()
		return
	}
	d.runVectors(l)
}

// runGo is the product in plain Go, four columns at a time.
func (d *Dot[T]) runGo() {
	j := 0
	for ; j+4 <= d.N; j += 4 {
		b := d.B[j*d.BRow:]
		b0, b1, b2, b3 := b[:d.K], b[d.BRow:][:d.K], b[2*d.BRow:][:d.K], b[3*d.BRow:][:d.K]
		for i := range d.M {
			s0, s1, s2, s3 := dot4(d.A[i*d.ARow:][:d.K], b0, b1, b2, b3)
			d.put(i, j, s0)
			d.put(i, j+1, s1)
			d.put(i, j+2, s2)
			d.put(i, j+3, s3)
		}
	}
	for ; j < d.N; j++ {
		b := d.B[j*d.BRow:][:d.K]
		for i := range d.M {
			var sum T
			for p, v := range d.A[i*d.ARow:][:d.K] {
				sum += b[p] * v
			}
			d.put(i, j, sum)
		}
	}
}

// dot4 is the dot products of a with four vectors of its length.
func dot4[T Float](a, b0, b1, b2, b3 []T) (s0, s1, s2, s3 T) {
	b0, b1, b2, b3 = b0[:len(a)], b1[:len(a)], b2[:len(a)], b3[:len(a)]
	for p, v := range a {
		s0 += b0[p] * v
		s1 += b1[p] * v
		s2 += b2[p] * v
		s3 += b3[p] * v
	}
	return s0, s1, s2, s3
}

// put adds the initial value of the sum of C[i,j], and stores it.
func (d *Dot[T]) put(i, j int, sum T) {
	c := &d.C[i*d.CRow+j]
	switch {
	case d.Accumulate:
		sum += *c
	case d.Bias != nil:
		sum += d.Bias[j]
	}
	if d.ReLU && sum < 0 {
		sum = 0
	}
	*c = sum
}

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
var dots = [...]*forms[dotArgs]{1: &dotx1, 2: &dotx2, 4: &dotx4}

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
