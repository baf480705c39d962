package simd

import "unsafe"

// Gemm is a general matrix product of any extents and strides:
//
//	C[i,j] = Σ_{p<K} A[i,p]·B[p,j], or that added to C     i < M, j < N
//
// with A[i,p] = A[i·ARow + p·ACol], B[p,j] = B[p·BRow + j·BCol] and C[i,j] =
// C[i·CRow + j]; a transposed operand has its distances exchanged.
//
// Small matrices are multiplied where they lie. Blocks of large ones are first copied into the
// workspace, so that the inner loop reads contiguous memory in the right cache (Goto and van de
// Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008). The order of
// additions depends on M, N, K and the distances alone.
type Gemm[T Float] struct {
	M, N, K int

	A, B, C                []T
	ARow, ACol, BRow, BCol int
	CRow                   int

	Accumulate bool

	Work []T // of WorkElems elements at least
}

// Blocks, for caches of 48 KB and 1 MB: a panel of B, two vectors by gemmDepthBytes of
// a column (64 KB), comes from the second-level cache at the rate that 14 rows of A
// take; a block of A of half a megabyte stays there while panels pass over it,
// and a block of B in the cache behind.
const (
	gemmDepthBytes = 2 << 10
	gemmLeftBytes  = 512 << 10
	gemmRightBytes = 1 << 20
)

// inPlaceBytes bounds a B that is read where it lies. Copying it would cost more than it saves.
const inPlaceBytes = 1 << 20

// gemmPlan is the cut of a product.
type gemmPlan struct {
	depth, rows, columns int // of a block of A and B
	panel                int // columns of a panel of B
	leftRow              int // distance of the rows of a packed A
}

func (g *Gemm[T]) plan() gemmPlan {
	size := int(unsafe.Sizeof(g.A[0]))
	line := 64 / size
	p := gemmPlan{panel: 2 * line, depth: even(g.K, gemmDepthBytes/size, line)}
	p.rows = even(g.M, gemmLeftBytes/gemmDepthBytes, 1)
	p.columns = even(g.N, gemmRightBytes/gemmDepthBytes, p.panel)
	if g.ACol == 1 {
		p.leftRow = p.depth + line // not a multiple of the page size
	} else {
		p.leftRow = p.rows
	}
	return p
}

// even cuts n into the fewest parts of at most limit, as equal as multiples of unit
// allow, and returns their size. limit is a multiple of unit.
func even(n, limit, unit int) int {
	parts := (n + limit - 1) / limit
	size := (n + parts - 1) / parts
	return (size + unit - 1) / unit * unit
}

// way is a way to compute a product.
type way uint8

const (
	inPlace way = iota
	asDots      // in place, both operands contiguous along the sum
	packed
)

// way chooses. Dot products cost as much as 350 more steps. They also need B copied transposed,
// which per element costs as much as 150 of their steps.
func (g *Gemm[T]) way(l Level) way {
	switch {
	case g.BCol == 1 && (l == Go || g.M < 16 || g.K*g.N*int(unsafe.Sizeof(g.B[0])) <= inPlaceBytes):
		return inPlace
	case g.BRow == 1 && g.ACol == 1 && (l == Go || g.M*(350+g.K) < 150*g.K):
		return asDots
	}
	return packed
}

// WorkElems is the number of elements of workspace that the product needs at a level.
func (g *Gemm[T]) WorkElems(l Level) int {
	if g.way(l) != packed {
		return 0
	}
	p := g.plan()
	return p.leftElems() + p.columns*p.depth
}

func (p *gemmPlan) leftElems() int { return p.rows * (p.depth + p.panel) }

// Run computes the product at a level.
func (g *Gemm[T]) Run(l Level) {
	switch g.way(l) {
	case inPlace:
		p := Product[T]{
			M: g.M, N: g.N, K: g.K, Batch: 1, Accumulate: g.Accumulate,
			A: g.A, ARow: g.ARow, AStep: g.ACol, B: g.B, BRow: g.BRow, C: g.C, CRow: g.CRow,
		}
		p.Run(l)
	case asDots:
		d := Dot[T]{
			M: g.M, N: g.N, K: g.K, Accumulate: g.Accumulate,
			A: g.A, ARow: g.ARow, B: g.B, BRow: g.BCol, C: g.C, CRow: g.CRow,
		}
		d.Run(l)
	default:
		g.runPacked(l)
	}
}

func (g *Gemm[T]) runPacked(l Level) {
	p := g.plan()
	left, right := g.Work[:p.leftElems()], g.Work[p.leftElems():]
	for j := 0; j < g.N; j += p.columns {
		columns := min(p.columns, g.N-j)
		for k := 0; k < g.K; k += p.depth {
			depth := min(p.depth, g.K-k)
			packRight(l, right, g.B[k*g.BRow+j*g.BCol:], g.BRow, g.BCol, depth, columns, p.panel)
			for i := 0; i < g.M; i += p.rows {
				rows := min(p.rows, g.M-i)
				b := Product[T]{M: rows, K: depth, Batch: 1, Accumulate: g.Accumulate || k > 0, A: left, BRow: p.panel, CRow: g.CRow}
				b.ARow, b.AStep = packLeft(left, g.A[i*g.ARow+k*g.ACol:], g.ARow, g.ACol, rows, depth, p.leftRow)
				for q := 0; q < columns; q += p.panel {
					b.N, b.B, b.C = min(p.panel, columns-q), right[q*depth:], g.C[i*g.CRow+j+q:]
					b.Run(l)
				}
			}
		}
	}
}

// packLeft copies a block of A and returns the distances in the copy. Contiguous rows are copied
// as they are, others column by column.
func packLeft[T Float](to, a []T, row, column, rows, depth, gap int) (packedRow, packedStep int) {
	if column == 1 {
		for i := range rows {
			copy(to[i*gap:][:depth], a[i*row:])
		}
		return gap, 1
	}
	for p := range depth {
		if row == 1 {
			copy(to[p*gap:][:rows], a[p*column:])
			continue
		}
		for i := range rows {
			to[p*gap+i] = a[p*column+i*row]
		}
	}
	return 1, gap
}

// packRight copies a block of B panel by panel, each contiguous with panel columns. The last may
// have fewer.
func packRight[T Float](l Level, to, b []T, row, column, depth, columns, panel int) {
	// A few rows at a time are read on and on, instead of 128 bytes of each page.
	const rows = 8
	if column == 1 {
		for p := 0; p < depth; p += rows {
			for j := 0; j < columns; j += panel {
				width := min(panel, columns-j)
				for q := p; q < min(p+rows, depth); q++ {
					copy(to[j*depth+q*panel:][:width], b[q*row+j:])
				}
			}
		}
		return
	}
	for j := 0; j < columns; j += panel {
		width := min(panel, columns-j)
		block, from := to[j*depth:], b[j*column:]
		if row == 1 {
			t := Transpose[T]{Rows: width, Columns: depth, From: from, FromRow: column, To: block, ToRow: panel}
			t.Run(l)
			continue
		}
		for p := range depth {
			for q := range width {
				block[p*panel+q] = from[p*row+q*column]
			}
		}
	}
}
