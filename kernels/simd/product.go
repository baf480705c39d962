package simd

import "unsafe"

// Product is a batch-reduced matrix product, the building block of dense layers and convolutions
// (Georganas et al., "Harnessing Deep Learning via a Single Building Block", IPDPS 2020):
//
//	C[i,j] = Bias[j] + Σ_{o<Outer} Σ_{b<Batch} Σ_{p<K} A_ob[i,p]·B_ob[p,j]     i < M, j < N
//
// with A_ob[i,p] = A[o·AOuter + b·ABatch + i·ARow + p·AStep], B_ob[p,j] = B[o·BOuter + b·BBatch + p·BRow + j]
// and C[i,j] = C[i·CRow + j]. Rows of B and C are contiguous, A has any two strides:
// ARow = 1 reads it transposed. A convolution over channels-last images is one
// product per run of output pixels, with the rows of the window as the batch.
//
// Groups above 1 do the same for groups g of M rows. They add g·AGroup to the positions in A and
// g·CGroup to those in C. The rows of an output map are such groups.
//
// The sum of one element starts from zero, from the bias or from C, and takes the products in the
// order of o, b, then p. Vectors of a few rows and columns would wait for each other. For these,
// every second or fourth step of each b is summed separately, and the partial sums are added at
// the end. M, N and the level decide for which elements.
type Product[T Float] struct {
	M, N, K, Batch int
	Outer, Groups  int // 0 is 1

	A, B, C                             []T
	ARow, AStep, ABatch, AOuter, AGroup int
	BRow, BBatch, BOuter                int
	CRow, CGroup                        int

	// Next, if not empty, is memory that the next product reads. Vector instructions fetch it to the
	// cache meanwhile.
	Next [2][]T

	Bias       []T  // of N elements, or nil
	Accumulate bool // start from C; Bias is not used
	ReLU       bool // replace a negative result by zero; NaN stays

	// Where, if not nil, has an element for each element of C, at i·WhereRow + j of its group. A
	// result is set to zero where that element is not positive.
	Where                []T
	WhereRow, WhereGroup int

	// Work is room for copies of the operands. A product of one batch and group is computed from them if there are at least as many elements as Blocks says,
	// and A has an AStep or an ARow of 1. With Turned it needs them, and B is transposed: B[j·BRow + p] stands for B[p·BRow + j].
	Work   []T
	Turned bool
}

// check panics if an operand is shorter than the extents and distances say.
func (p *Product[T]) check() {
	if p.M < 1 || p.N < 1 || p.K < 1 || p.Batch < 1 || p.Outer < 0 || p.Groups < 0 {
		panic("simd: product of an empty matrix")
	}
	if p.ARow|p.AStep|p.ABatch|p.AOuter|p.AGroup|p.BRow|p.BBatch|p.BOuter|p.CRow|p.CGroup|p.WhereRow|p.WhereGroup < 0 {
		panic("simd: product with a negative distance")
	}
	last, outer := max(p.Groups, 1)-1, max(p.Outer, 1)-1
	lastA := (p.M-1)*p.ARow + (p.K-1)*p.AStep + (p.Batch-1)*p.ABatch + outer*p.AOuter + last*p.AGroup
	lastB := (p.K-1)*p.BRow + (p.Batch-1)*p.BBatch + outer*p.BOuter + p.N - 1
	if p.Turned {
		lastB = (p.N-1)*p.BRow + p.K - 1
	}
	lastC := (p.M-1)*p.CRow + p.N - 1 + last*p.CGroup
	lastWhere := (p.M-1)*p.WhereRow + p.N - 1 + last*p.WhereGroup
	if lastA >= len(p.A) || lastB >= len(p.B) || lastC >= len(p.C) ||
		p.Bias != nil && p.N > len(p.Bias) || p.Where != nil && lastWhere >= len(p.Where) {
		panic("simd: product reaches beyond an operand")
	}
}

// Run computes the product at a level.
func (p *Product[T]) Run(l Level) {
	p.check()
	switch blocks := Blocks[T](l, p.M, p.N, p.K); {
	case blocks > 0 && len(p.Work) >= blocks && p.Batch*max(p.Outer, 1)*max(p.Groups, 1) == 1 && min(p.AStep, p.ARow) == 1:
		p.runBlocks(l)
	case p.Turned:
		panic("simd: product with a transposed matrix is not computed in blocks")
	case l == Go:
		p.runGo()
	default:
		p.runVectors(l)
	}
}

// Plain Go computes a product as rank-4 updates of two rows of C at a time. Per element of C that
// is eight multiplications and additions for six loads and two stores, with the eight scalars of
// A in registers. The usual choice, a 4×4 tile of C in registers, spills on amd64, where Go has
// 15 scalar float registers, and runs at half speed.

// Blocks of B of goRows×goColumns elements (64 or 128 KB) stay in the L2 cache while
// all rows of C pass over them; two rows of C stay in L1.
const (
	goRows    = 64
	goColumns = 256
)

// steps are consecutive steps of the sum, across the batch, with their positions in A and in B.
type steps struct {
	a, b  [goRows]int
	count int
}

// runGo is the product in plain Go.
func (p *Product[T]) runGo() {
	var s steps
	all := max(p.Outer, 1) * p.Batch * p.K
	for g := range max(p.Groups, 1) {
		c, a := p.C[g*p.CGroup:], p.A[g*p.AGroup:]
		p.startGo(c)
		for first := 0; first < all; first += goRows {
			if g == 0 || all > goRows {
				p.stepsFrom(&s, first)
			}
			for j := 0; j < p.N; j += goColumns {
				p.blockGo(c[j:], a, p.B[j:], min(goColumns, p.N-j), &s)
			}
		}
		p.endGo(c, g)
	}
}

// stepsFrom sets s to the steps from first, at most goRows.
func (p *Product[T]) stepsFrom(s *steps, first int) {
	s.count = min(goRows, max(p.Outer, 1)*p.Batch*p.K-first)
	o, b, q := first/(p.K*p.Batch), first/p.K%p.Batch, first%p.K
	for i := range s.count {
		s.a[i], s.b[i] = o*p.AOuter+b*p.ABatch+q*p.AStep, o*p.BOuter+b*p.BBatch+q*p.BRow
		if q++; q == p.K {
			b, q = b+1, 0
		}
		if b == p.Batch {
			o, b = o+1, 0
		}
	}
}

// startGo sets the rows of c to the initial values of the sums.
func (p *Product[T]) startGo(c []T) {
	if p.Accumulate {
		return
	}
	for i := range p.M {
		row := c[i*p.CRow:][:p.N]
		if p.Bias != nil {
			copy(row, p.Bias)
		} else {
			clear(row)
		}
	}
}

// endGo sets the required sums of group g to zero.
func (p *Product[T]) endGo(c []T, g int) {
	for i := range p.M {
		row := c[i*p.CRow:][:p.N]
		if p.ReLU {
			for j, v := range row {
				if v < 0 {
					row[j] = 0
				}
			}
		}
		if p.Where != nil {
			for j, v := range p.Where[g*p.WhereGroup+i*p.WhereRow:][:p.N] {
				if !(v > 0) {
					row[j] = 0
				}
			}
		}
	}
}

// blockGo adds the products of some steps to width columns of all rows of c.
func (p *Product[T]) blockGo(c, a, b []T, width int, s *steps) {
	i := 0
	for ; i+2 <= p.M; i += 2 {
		c0, c1 := c[i*p.CRow:][:width], c[(i+1)*p.CRow:][:width]
		addRows2(c0, c1, a[i*p.ARow:], a[(i+1)*p.ARow:], b, s)
	}
	if i < p.M {
		addRow(c[i*p.CRow:][:width], a[i*p.ARow:], b, s)
	}
}

// addRows2 adds the products of a0 with rows of b to c0, and of a1 to c1.
func addRows2[T Float](c0, c1, a0, a1, b []T, s *steps) {
	n := len(c0)
	c1 = c1[:n]
	q := 0
	for ; q+4 <= s.count; q += 4 {
		at, row := s.a[q:q+4], s.b[q:q+4]
		a00, a01, a02, a03 := a0[at[0]], a0[at[1]], a0[at[2]], a0[at[3]]
		a10, a11, a12, a13 := a1[at[0]], a1[at[1]], a1[at[2]], a1[at[3]]
		b0, b1, b2, b3 := b[row[0]:][:n], b[row[1]:][:n], b[row[2]:][:n], b[row[3]:][:n]
		for j := range c0 {
			s, t := c0[j], c1[j]
			x := b0[j]
			s += a00 * x
			t += a10 * x
			x = b1[j]
			s += a01 * x
			t += a11 * x
			x = b2[j]
			s += a02 * x
			t += a12 * x
			x = b3[j]
			s += a03 * x
			t += a13 * x
			c0[j], c1[j] = s, t
		}
	}
	for ; q < s.count; q++ {
		v, w := a0[s.a[q]], a1[s.a[q]]
		for j, x := range b[s.b[q]:][:n] {
			c0[j] += v * x
			c1[j] += w * x
		}
	}
}

// addRow is addRows2 for one row.
func addRow[T Float](c, a, b []T, s *steps) {
	n := len(c)
	q := 0
	for ; q+4 <= s.count; q += 4 {
		at, row := s.a[q:q+4], s.b[q:q+4]
		a0, a1, a2, a3 := a[at[0]], a[at[1]], a[at[2]], a[at[3]]
		b0, b1, b2, b3 := b[row[0]:][:n], b[row[1]:][:n], b[row[2]:][:n], b[row[3]:][:n]
		for j := range c {
			s := c[j]
			s += a0 * b0[j]
			s += a1 * b1[j]
			s += a2 * b2[j]
			s += a3 * b3[j]
			c[j] = s
		}
	}
	for ; q < s.count; q++ {
		v := a[s.a[q]]
		for j, x := range b[s.b[q]:][:n] {
			c[j] += v * x
		}
	}
}

// productArgs is the argument of one call of the assembly: blocks blocks of rows rows of each of
// the groups, each across panels panels of up to four vectors. Distances are in bytes.
// gen/product.go knows the order of the fields.
type productArgs struct {
	a, b, c, start      unsafe.Pointer // start: initial values of the sums, nil for zero
	where               unsafe.Pointer // nil means keep all
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
	packed              int     // 1 if the rest of a last vector lies in the next row of C
	_                   int     // batchLeft: the assembly counts the batch down here
	outerLeft           int     // and outer here
	aheadAt, aheadStep  int     // from the block of A to lines that are fetched, step by step; zero means that none are
	aheadPanel          int     // to lines that are fetched during the next panel; zero means the same during all
	aheadBlock          int     // and block
	aheadGroup          int     // and group
}

// productRows is the largest number of rows of a block by vectors, see gen/product.go.
var productRows = [...][5]int{AVX2: {1: 12, 2: 6}, AVX512: {1: 14, 2: 14, 3: 9, 4: 6}}

// products are by vectors.
var products = [...]*forms[productArgs]{1: &productx1, 2: &productx2, 3: &productx3, 4: &productx4}

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
		args.last, args.packed = last, packed(p.CRow, (nv-1)*l.bytes()/size+last, l.bytes()/size)
	}
	if p.ReLU {
		args.relu = 1
	}
	if higher > 0 {
		p.rows(l, &args, 0, j, nv, higher, rows+1, next)
	}
	p.rows(l, &args, higher*(rows+1), j, nv, blocks-higher, rows, next)
}

// packed is 1 if rows of n elements, all in one panel, follow each other without gaps, and a vector from the last elements of a row ends in the next one.
func packed(distance, n, lanes int) int {
	if distance == n && (n+lanes-1)/lanes*lanes <= 2*n {
		return 1
	}
	return 0
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
