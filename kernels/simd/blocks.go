package simd

import "unsafe"

// A product with AVX2 may be computed from copies of its operands (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34, 2008): a
// block of A that stays in the second-level cache, and panels of B in the first. Both lie in the order in which the inner loop reads them. Where they are, rows at
// distances of kilobytes share few sets of a cache, and each block of rows reads its columns of B from the second-level cache again.

const (
	blockHeight = 6         // rows of A that are multiplied at a time
	blockDepth  = 256       // steps of the sum in a panel
	blockBytes  = 264 << 10 // of a block of A
	panelBytes  = 64        // of a row of a panel
	panelStrip  = 2         // panels that are copied at a time

	// Fewer rows, columns or steps do not pay, nor do smaller products: their operands are in a near cache anyway. Fewer than 14 rows would have other sums, see TestProductOrder.
	blockRows, blockColumns, blockSteps = 32, 128, 64
	blockProducts                       = 1 << 20
)

// Blocks is how many elements of Work a product of one batch and group needs to be computed in blocks, and 0 if it is not.
func Blocks[T Float](l Level, m, n, k int) int {
	if l != AVX2 || m < blockRows || n < blockColumns || k < blockSteps || m*n*k < blockProducts {
		return 0
	}
	size := size[T](nil)
	depth, parts := blockExtents(m, k, size)
	return blockElements(depth, (m+parts-1)/parts, size) + panelStrip*panelBytes/size*depth
}

// blockExtents are the steps of the blocks of A, except the last one, and into how many parts its rows are divided.
func blockExtents(m, k, size int) (depth, parts int) {
	parts = (k + blockDepth - 1) / blockDepth
	depth = (k + parts*16 - 1) / (parts * 16) * 16
	return depth, (m*depth*size + blockBytes - 1) / blockBytes
}

// blockElements is the room for a block of A: its rows, and a line behind those that are multiplied at a time, so that these begin in different sets of a cache.
func blockElements(depth, rows, size int) int {
	return rows*depth + (rows/blockHeight+1)*lineBytes/size
}

// heights are the rows of the higher blocks of m rows, and how many there are, and the same of the lower ones.
func heights(m int) [2]struct{ rows, count int } {
	blocks := (m + blockHeight - 1) / blockHeight
	return [2]struct{ rows, count int }{{m/blocks + 1, m % blocks}, {m / blocks, blocks - m%blocks}}
}

// block is some rows of A and steps of the sum, copied to a.
type block[T Float] struct {
	*Product[T]
	l           Level
	a           []T
	row, step   int
	height      int
	depth       int
	first, last bool // steps of the sum
}

// runBlocks computes the product from copies.
func (p *Product[T]) runBlocks(l Level) {
	size := size(p.A)
	depth, parts := blockExtents(p.M, p.K, size)
	work := blockElements(depth, (p.M+parts-1)/parts, size)
	strip := panelStrip * panelBytes / size
	for part := range parts {
		row, end := part*p.M/parts, (part+1)*p.M/parts
		for q := 0; q < p.K; q += depth {
			b := block[T]{Product: p, l: l, a: p.Work[:work], row: row, step: q, height: end - row, depth: min(depth, p.K-q)}
			b.first, b.last = q == 0, q+depth >= p.K
			b.packRows()
			for j := 0; j < p.N; j += strip {
				b.columns(p.Work[work:], j, min(strip, p.N-j))
			}
		}
	}
}

// columns computes n columns from j.
func (b *block[T]) columns(panels []T, j, n int) {
	b.packColumns(panels, j, n)
	lanes := b.l.bytes() / size(panels)
	for ; n > 0; n, j = n-2*lanes, j+2*lanes {
		if n > lanes {
			b.panel(panels, j, min(n, 2*lanes))
		} else {
			b.narrow(panels, j, n)
		}
		panels = panels[min(len(panels), 2*lanes*b.depth):]
	}
}

// at is an operand from a position on, or nil for an operand that is missing.
func at[T Float](of []T, position int) []T {
	if of == nil {
		return nil
	}
	return of[position:]
}

// narrow computes columns of one vector, for which there is no loop over packed rows.
func (b *block[T]) narrow(panel []T, j, n int) {
	p := Product[T]{
		M: b.height, N: n, K: b.depth, Batch: 1,
		A: b.A[b.row*b.ARow+b.step*b.AStep:], ARow: b.ARow, AStep: b.AStep,
		B: panel, BRow: panelBytes / size(panel), C: b.C[b.row*b.CRow+j:], CRow: b.CRow,
		Bias: at(b.Bias, j), Accumulate: b.Accumulate || !b.first, ReLU: b.ReLU && b.last,
	}
	if b.last {
		p.Where, p.WhereRow = at(b.Where, b.row*b.WhereRow+j), b.WhereRow
	}
	p.Run(b.l)
}

// panel computes n columns, of two vectors.
func (b *block[T]) panel(columns []T, j, n int) {
	size := size(columns)
	lanes := b.l.bytes() / size
	args := productArgs{
		a: pointer(b.a), b: pointer(columns), k: b.depth, mask: b.l.mask(n-lanes, size), last: (n - lanes) % lanes,
		cRow: b.CRow * size, whereRow: b.WhereRow * size,
	}
	if b.ReLU && b.last {
		args.relu = 1
	}
	b.fetch(&args, j)
	i := b.row
	for _, h := range heights(b.height) {
		if h.count == 0 {
			continue
		}
		args.rows, args.left = h.rows, h.count
		args.aAt, args.cAt, args.startAt, args.whereAt = 0, 0, 0, 0
		args.aBlock, args.cBlock = h.rows*b.depth*size+lineBytes, h.rows*args.cRow
		args.c = pointer(b.C[i*b.CRow+j:])
		switch {
		case b.Accumulate || !b.first:
			args.start, args.startRow, args.startBlock = args.c, args.cRow, args.cBlock
		case b.Bias != nil:
			args.start = pointer(b.Bias[j:])
		}
		if b.Where != nil && b.last {
			args.where, args.whereBlock = pointer(b.Where[i*b.WhereRow+j:]), h.rows*args.whereRow
		}
		panel.call(b.l, size, &args)
		i += h.rows * h.count
		args.a = unsafe.Add(args.a, h.count*args.aBlock)
		args.aheadAt -= h.count * args.aBlock
	}
}

// fetch tells the assembly which lines of B to fetch: of the panel that takes the place of the one from column j.
func (b *block[T]) fetch(args *productArgs, j int) {
	size := size(b.B)
	strip := panelStrip * panelBytes / size
	q := b.step
	if j += strip; j >= b.N {
		j %= strip
		if q += b.depth; q >= b.K {
			q = 0
		}
	}
	next, step := q*b.BRow+j, b.BRow*size
	if b.Turned {
		next, step = j*b.BRow+q, lineBytes
	}
	args.aheadAt, args.aheadStep = int(uintptr(pointer(b.B[next:]))-uintptr(args.a)), step
}

// packRows copies the rows of A, a few side by side.
func (b *block[T]) packRows() {
	to, line := b.a, lineBytes/size(b.a)
	from := b.A[b.row*b.ARow+b.step*b.AStep:]
	for _, h := range heights(b.height) {
		room := h.rows*b.depth + line
		if b.AStep != 1 && h.count > 0 {
			copyPanels(b.l, to, from, b.AStep, b.depth, h.rows, h.count, room)
			to, from = to[h.count*room:], from[min(len(from), h.count*h.rows):]
			continue
		}
		for range h.count {
			t := Transpose[T]{Rows: h.rows, Columns: b.depth, To: to, ToRow: h.rows, From: from, FromRow: b.ARow}
			t.Run(b.l)
			to, from = to[room:], from[min(len(from), h.rows*b.ARow):]
		}
	}
}

// packColumns copies n columns of B from j to panels. Zeros fill the last one.
func (b *block[T]) packColumns(to []T, j, n int) {
	width := panelBytes / size(to)
	whole, rest := n/width, n%width
	if b.Turned {
		for i := 0; i < n; i += width {
			t := Transpose[T]{Rows: min(width, n-i), Columns: b.depth, To: to[i*b.depth:], ToRow: width, From: b.B[(j+i)*b.BRow+b.step:], FromRow: b.BRow}
			t.Run(b.l)
		}
	} else {
		from := b.B[b.step*b.BRow+j:]
		if whole > 0 {
			copyPanels(b.l, to, from, b.BRow, b.depth, width, whole, width*b.depth)
		}
		for s := 0; s < b.depth && rest > 0; s++ {
			copy(to[(whole*b.depth+s)*width:], from[s*b.BRow+whole*width:][:rest])
		}
	}
	for s := 0; s < b.depth && rest > 0; s++ {
		clear(to[(whole*b.depth+s)*width:][rest:width])
	}
}

// packArgs is the argument of one call of the assembly. Distances are in bytes. gen/panel.go knows the order of the fields.
type packArgs struct {
	from, to                unsafe.Pointer
	fromRow, toRow, toPanel int // toRow: bytes of a row of a panel
	rows, panels            int
}

// copyPanels copies some rows of panels: element j of row i of panel n is To[n·toPanel + i·width + j] and From[i·fromRow + n·width + j].
func copyPanels[T Float](l Level, to, from []T, fromRow, rows, width, panels, toPanel int) {
	size := size(to)
	if (panels-1)*toPanel+rows*width > len(to) || (rows-1)*fromRow+panels*width > len(from) {
		panic("simd: panels reach beyond an operand")
	}
	pack.call(l, size, &packArgs{pointer(from), pointer(to), fromRow * size, width * size, toPanel * size, rows, panels})
}
