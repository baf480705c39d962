package simd

import "unsafe"

// productArgs is the argument of one call of the assembly: blocks blocks of rows rows of each of
// the groups, each across panels panels of up to four vectors. Distances are in bytes.
// gen/product.go knows the order of the fields.
type productArgs struct {
	a, b, c, start      unsafe.Pointer // start: initial values of the sums, nil for zero
	where               unsafe.Pointer // nil: keep all
	aAt, bAt, cAt       int            // start of the present block and panel
	startAt, whereAt    int
	k, batch            int
	blocks, groups      int
	left                int // blocks left of the present group
	panels, panelsLeft  int
	rows                int
	aRow, aStep, aBatch int
	aOuter              int // from the end of one to the next
	aBlock, aGroup      int // to the next block, and from there to the next group
	bRow, bBatch        int
	bOuter, outer       int
	cRow, cBlock        int
	cGroup              int
	startRow            int
	startBlock          int
	startGroup          int
	whereRow            int
	whereBlock          int
	whereGroup          int
	panel               int
	relu                int
	mask                uintptr // of the last vector: bits, or the address of a vector
	last                int     // 0 if the last vector is whole
	_                   int     // batchLeft: the assembly counts the batch down here
	outerLeft           int     // and outer here
	aheadAt, aheadStep  int     // from the block of A to lines that are fetched, step by step; 0: none are
	aheadPanel          int     // to lines that are fetched during the next panel; 0: the same during all
	aheadBlock          int     // and block
	aheadGroup          int     // and group
}

// productRows is the largest number of rows of a block by vectors, see gen/product.go.
var productRows = [...][5]int{AVX2: {1: 12, 2: 6}, AVX512: {1: 14, 2: 14, 3: 9, 4: 6}}

// products are by vectors.
var products = [...]forms[productArgs]{
	1: {AVX2: {productAVX2F32x1, productAVX2F64x1}, AVX512: {productAVX512F32x1, productAVX512F64x1}},
	2: {AVX2: {productAVX2F32x2, productAVX2F64x2}, AVX512: {productAVX512F32x2, productAVX512F64x2}},
	3: {AVX512: {productAVX512F32x3, productAVX512F64x3}},
	4: {AVX512: {productAVX512F32x4, productAVX512F64x4}},
}

// acrossBytes bounds a B over which every block of rows passes completely before the next block.
// C is then written along its rows.
const acrossBytes = 512 << 10

// runVectors computes panels of columns, each of whole vectors but the last.
func (p *Product[T]) runVectors(l Level) {
	size := size(p.A)
	lanes := l.bytes() / size
	vectors, most := (p.N+lanes-1)/lanes, p.panelVectors(l)
	panels := (vectors + most - 1) / most
	nv := (vectors + panels - 1) / panels
	whole := p.N / (nv * lanes)
	step := 1
	next := p.upcoming(l, nv, panels)
	if p.steps()*p.N*size <= acrossBytes && next.step == 0 {
		step = max(whole, 1)
	}
	for j := range whole / step {
		p.panels(l, j*step*nv*lanes, step, nv, lanes, &next)
	}
	if rest := p.N - whole*nv*lanes; rest > 0 {
		nv = (rest + lanes - 1) / lanes
		p.panels(l, p.N-rest, 1, nv, rest-(nv-1)*lanes, &next)
	}
}

// panelVectors is the most vectors of columns computed together. It is larger where there are too
// few rows to keep the multipliers busy.
func (p *Product[T]) panelVectors(l Level) int {
	if l == AVX512 && p.M < 8 {
		return 4
	}
	return 2
}

// panels computes count panels of nv vectors of columns from j. The last one has last elements.
// The blocks have equal height; if M does not divide, the first ones have one row more.
func (p *Product[T]) panels(l Level, j, count, nv, last int, next *upcoming[T]) {
	size := size(p.A)
	blocks := (p.M + productRows[l][nv] - 1) / productRows[l][nv]
	rows, higher := p.M/blocks, p.M%blocks
	args := productArgs{k: p.K, batch: p.Batch, mask: l.mask(last, size), panels: count, panel: nv * l.bytes()}
	if last*size < l.bytes() {
		args.last = last
	}
	if p.ReLU {
		args.relu = 1
	}
	if higher > 0 {
		p.rows(l, &args, 0, j, nv, higher, rows+1, next)
	}
	p.rows(l, &args, higher*(rows+1), j, nv, blocks-higher, rows, next)
}

// rows computes count blocks of rows rows each from row i, of every group.
func (p *Product[T]) rows(l Level, args *productArgs, i, j, nv, count, rows int, next *upcoming[T]) {
	size := size(p.A)
	args.a, args.b, args.c = unsafe.Pointer(&p.A[i*p.ARow]), unsafe.Pointer(&p.B[j]), unsafe.Pointer(&p.C[i*p.CRow+j])
	args.aAt, args.bAt, args.cAt, args.startAt, args.whereAt = 0, 0, 0, 0, 0
	args.blocks, args.left, args.rows, args.groups = count, count, rows, max(p.Groups, 1)
	args.panelsLeft = args.panels
	back := (args.panels - 1) * args.panel // from the last panel to the first
	args.aRow, args.aStep, args.aBatch = p.ARow*size, p.AStep*size, p.ABatch*size
	args.aBlock, args.aGroup = rows*p.ARow*size, (p.AGroup-count*rows*p.ARow)*size
	p.fetch(args, next)
	args.aOuter, args.bOuter, args.outer = (p.AOuter-p.Batch*p.ABatch)*size, (p.BOuter-p.Batch*p.BBatch)*size, max(p.Outer, 1)
	args.outerLeft = args.outer
	args.bRow, args.bBatch = p.BRow*size, p.BBatch*size
	args.cRow, args.cBlock, args.cGroup = p.CRow*size, rows*p.CRow*size-back, (p.CGroup-count*rows*p.CRow)*size
	if p.Where != nil {
		args.where = unsafe.Pointer(&p.Where[i*p.WhereRow+j])
		args.whereRow, args.whereBlock = p.WhereRow*size, rows*p.WhereRow*size-back
		args.whereGroup = (p.WhereGroup - count*rows*p.WhereRow) * size
	}
	switch {
	case p.Accumulate:
		args.start, args.startRow, args.startBlock, args.startGroup = args.c, args.cRow, args.cBlock, args.cGroup
	case p.Bias != nil:
		args.start, args.startBlock = unsafe.Pointer(&p.Bias[j]), -back
	}
	products[nv].call(l, size, args)
}

// fetch tells the assembly which lines to fetch: of A for the next block, or of the operands of the next
// product. Of the former it is lines of the last batch, as the others are likely there. One line per
// step has to do: rows far from each other are not fetched, nor rows of a transposed A.
func (p *Product[T]) fetch(args *productArgs, next *upcoming[T]) {
	args.aheadAt, args.aheadStep, args.aheadPanel, args.aheadBlock, args.aheadGroup = 0, 0, 0, 0, 0
	if next.step > 0 {
		next.fetch(args, p.steps())
	} else if step := args.aBlock/p.steps() + 1; p.AStep == 1 && step <= lineBytes {
		args.aheadAt, args.aheadStep = args.aBlock+(p.Batch-1)*args.aBatch, step
	}
}

// steps is how many products one element of C is the sum of.
func (p *Product[T]) steps() int { return p.K * p.Batch * max(p.Outer, 1) }

const lineBytes = 64

// upcoming is the rest of the next product's operands, still to be fetched, and the bytes to fetch per step.
type upcoming[T Float] struct {
	left [2][]T
	step int
}

// upcoming spreads the next operands over all steps of the product.
func (p *Product[T]) upcoming(l Level, nv, panels int) upcoming[T] {
	bytes := (len(p.Next[0]) + len(p.Next[1])) * size(p.A)
	if bytes == 0 {
		return upcoming[T]{}
	}
	blocks := (p.M + productRows[l][nv] - 1) / productRows[l][nv]
	return upcoming[T]{p.Next, min(lineBytes, bytes/(p.steps()*blocks*panels*max(p.Groups, 1))+1)}
}

// fetch takes the lines for the blocks of one call. steps is the steps of a block.
func (u *upcoming[T]) fetch(args *productArgs, steps int) {
	if len(u.left[0]) == 0 {
		u.left[0], u.left[1] = u.left[1], nil
	}
	if len(u.left[0]) == 0 {
		return
	}
	args.aheadAt, args.aheadStep = int(uintptr(unsafe.Pointer(&u.left[0][0]))-uintptr(args.a)), u.step
	args.aheadPanel = u.step * steps
	args.aheadBlock, args.aheadGroup = args.aheadPanel-args.aBlock, -args.aGroup
	taken := args.aheadPanel * args.panels * args.blocks * args.groups / size(u.left[0])
	u.left[0] = u.left[0][min(taken, len(u.left[0])):]
}
