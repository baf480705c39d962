package simd

import "unsafe"

// productArgs is what one call of the assembly computes: blocks blocks of rows rows
// of each of the groups, and up to four vectors of columns. Distances are in bytes.
// The order of the fields is known to gen/product.go.
type productArgs struct {
	a, b, c, start      unsafe.Pointer // start: what the sums start from, nil for zero
	where               unsafe.Pointer // nil: keep all
	aAt, cAt, startAt   int            // where the present block begins
	whereAt             int
	k, batch            int
	blocks, groups      int
	left                int // blocks left of the present group
	rows                int
	aRow, aStep, aBatch int
	aBlock, aGroup      int // from a block to the next, from behind a group to the next
	bRow, bBatch        int
	cRow, cBlock        int
	cGroup              int
	startRow            int
	startBlock          int
	startGroup          int
	whereRow            int
	whereBlock          int
	whereGroup          int
	relu                int
	mask                uintptr // of the last vector: bits, or the address of a vector
	last                int     // 0 if the last vector is whole
}

// productRows is the largest number of rows of a block by vectors, see gen/product.go.
var productRows = [...][5]int{AVX2: {1: 12, 2: 6}, AVX512: {1: 14, 2: 14, 3: 9, 4: 6}}

// runVectors computes panels of columns, each of whole vectors but the last.
func (p *Product[T]) runVectors(l Level) {
	var zero T
	lanes := l.bytes() / int(unsafe.Sizeof(zero))
	vectors := (p.N + lanes - 1) / lanes
	most := p.panelVectors(l)
	panels := (vectors + most - 1) / most
	for j := 0; j < p.N; panels-- {
		nv := (vectors + panels - 1) / panels
		width := min(nv*lanes, p.N-j)
		p.panel(l, j, nv, width-(nv-1)*lanes, lanes)
		vectors -= nv
		j += width
	}
}

// panelVectors is how many vectors of columns are computed together at most: more of
// them where there are too few rows to keep the multipliers busy.
func (p *Product[T]) panelVectors(l Level) int {
	if l == AVX512 && p.M < 8 {
		return 4
	}
	return 2
}

// panel computes nv vectors of columns from j, the last of them of last elements:
// blocks of equal height, and before them blocks of one row more if M does not divide.
func (p *Product[T]) panel(l Level, j, nv, last, lanes int) {
	blocks := (p.M + productRows[l][nv] - 1) / productRows[l][nv]
	rows, higher := p.M/blocks, p.M%blocks
	args := productArgs{k: p.K, batch: p.Batch, mask: l.mask(last, int(unsafe.Sizeof(p.A[0])))}
	if last < lanes {
		args.last = last
	}
	if p.ReLU {
		args.relu = 1
	}
	if higher > 0 {
		p.rows(l, &args, 0, j, nv, higher, rows+1)
	}
	p.rows(l, &args, higher*(rows+1), j, nv, blocks-higher, rows)
}

// rows computes count blocks of rows rows each from row i, of every group.
func (p *Product[T]) rows(l Level, args *productArgs, i, j, nv, count, rows int) {
	size := int(unsafe.Sizeof(p.A[0]))
	args.a, args.b, args.c = unsafe.Pointer(&p.A[i*p.ARow]), unsafe.Pointer(&p.B[j]), unsafe.Pointer(&p.C[i*p.CRow+j])
	args.aAt, args.cAt, args.startAt, args.whereAt = 0, 0, 0, 0
	args.blocks, args.left, args.rows, args.groups = count, count, rows, max(p.Groups, 1)
	args.aRow, args.aStep, args.aBatch = p.ARow*size, p.AStep*size, p.ABatch*size
	args.aBlock, args.aGroup = rows*p.ARow*size, (p.AGroup-count*rows*p.ARow)*size
	args.bRow, args.bBatch = p.BRow*size, p.BBatch*size
	args.cRow, args.cBlock, args.cGroup = p.CRow*size, rows*p.CRow*size, (p.CGroup-count*rows*p.CRow)*size
	if p.Where != nil {
		args.where = unsafe.Pointer(&p.Where[i*p.WhereRow+j])
		args.whereRow, args.whereBlock = p.WhereRow*size, rows*p.WhereRow*size
		args.whereGroup = (p.WhereGroup - count*rows*p.WhereRow) * size
	}
	switch {
	case p.Accumulate:
		args.start, args.startRow, args.startBlock, args.startGroup = args.c, args.cRow, args.cBlock, args.cGroup
	case p.Bias != nil:
		args.start = unsafe.Pointer(&p.Bias[j])
	}
	if size == 8 {
		args.runF64(l, nv)
	} else {
		args.runF32(l, nv)
	}
}

func (args *productArgs) runF32(l Level, nv int) {
	switch {
	case l == AVX2 && nv == 1:
		productAVX2F32x1(args)
	case l == AVX2:
		productAVX2F32x2(args)
	case nv == 1:
		productAVX512F32x1(args)
	case nv == 2:
		productAVX512F32x2(args)
	case nv == 3:
		productAVX512F32x3(args)
	default:
		productAVX512F32x4(args)
	}
}

func (args *productArgs) runF64(l Level, nv int) {
	switch {
	case l == AVX2 && nv == 1:
		productAVX2F64x1(args)
	case l == AVX2:
		productAVX2F64x2(args)
	case nv == 1:
		productAVX512F64x1(args)
	case nv == 2:
		productAVX512F64x2(args)
	case nv == 3:
		productAVX512F64x3(args)
	default:
		productAVX512F64x4(args)
	}
}
