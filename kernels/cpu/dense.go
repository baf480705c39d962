package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// The variants at levels of dense layers. Large ones are products in blocks. Of others the forward pass is dot products of rows of
// x and w, both contiguous along i; the gradients are products of columns.

// DenseAt computes what has blocks as a product with w transposed.
func DenseAt[T calls.Float](relu bool) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		d := dotOf[T](call.Args)
		d.ReLU = relu
		if forwardInBlocks(l, call.Work, &d, call.Args[0].Accumulates()) {
			return
		}
		if !call.Args[0].Accumulates() {
			d.Run(l)
			return
		}
		y := calls.Map2Of[T](&call.Args[0])
		d.C, _ = calls.Scratch[T](call.Work, y.Rows*y.Columns)
		d.CRow = y.Columns
		d.Run(l)
		for n := range y.Rows {
			for o, v := range d.C[n*y.Columns:][:y.Columns] {
				y.Row(n)[o] += v
			}
		}
	}
}

// forwardInBlocks computes dot products as a product in blocks, if it has blocks.
func forwardInBlocks[T calls.Float](l simd.Level, work []byte, d *simd.Dot[T], add bool) bool {
	p := simd.Product[T]{
		M: d.M, N: d.N, K: d.K, Batch: 1, A: d.A, ARow: d.ARow, AStep: 1, B: d.B, BRow: d.BRow, Turned: true, C: d.C, CRow: d.CRow,
		Bias: d.Bias, Accumulate: add, ReLU: d.ReLU,
	}
	if !takeBlocks(l, &p, work) {
		return false
	}
	p.Run(l)
	return true
}

// takeBlocks gives a product a workspace. It reports false if the product has no blocks.
func takeBlocks[T calls.Float](l simd.Level, p *simd.Product[T], work []byte) bool {
	p.Work, _ = calls.Scratch[T](work, simd.Blocks[T](l, p.M, p.N, p.K))
	return len(p.Work) > 0
}

// blocksOf is the bytes for the blocks of a product.
func blocksOf(l simd.Level, t dag.DType, m, n, k int) int64 {
	if t == dag.Float64 {
		return int64(simd.Blocks[float64](l, m, n, k)) * t.SizeBytes()
	}
	return int64(simd.Blocks[float32](l, m, n, k)) * t.SizeBytes()
}

// dotOf is the product of a dense layer with some operands.
func dotOf[T calls.Float](args []calls.Arg) simd.Dot[T] {
	y, x, w := calls.Map2Of[T](&args[0]), calls.Map2Of[T](&args[1]), calls.Map2Of[T](&args[2])
	d := simd.Dot[T]{
		M: y.Rows, N: y.Columns, K: x.Columns,
		A: x.Elems, ARow: x.Stride, B: w.Elems, BRow: w.Stride, C: y.Elems, CRow: y.Stride,
	}
	if len(args) > 3 {
		d.Bias = calls.Data[T](&args[3])
	}
	return d
}

// RowFunction computes elements of a row of results from elements of another operand, by the parameters of a call.
type RowFunction[T calls.Float] func(l simd.Level, params []float64, to, of []T)

// thenBytes bounds the sums that a function follows at a time, so that they are still in a cache. A piece of sums has all rows, since the weights would pass
// by for each block of rows, and thenColumns columns at least.
const (
	thenBytes   = 128 << 10
	thenColumns = 512
)

// DenseThen is a dense layer followed by a function. The sums are in the first operand, or with kept = 1 in the second one.
func DenseThen[T calls.Float](kept int, then RowFunction[T]) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		y, z, all := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[kept]), dotOf[T](call.Args[kept:])
		inBlocks := forwardInBlocks(l, call.Work, &all, false)
		columns := max(thenColumns, thenBytes/(all.M*calls.SizeOf[T]())/thenColumns*thenColumns)
		for j := 0; j < all.N; j += columns {
			d := all
			d.N = min(columns, all.N-j)
			if !inBlocks {
				d.B, d.C = all.B[j*all.BRow:], all.C[j:]
				if d.Bias != nil {
					d.Bias = d.Bias[j:]
				}
				d.Run(l)
			}
			for i := range d.M {
				then(l, call.Params, y.Row(i)[j:][:d.N], z.Row(i)[j:][:d.N])
			}
		}
	}
}

// DenseDxThen is a gradient of an input that a function of the last operand follows. All rows are computed at once, since their number decides
// how sums are put together.
func DenseDxThen[T calls.Float](then RowFunction[T]) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		dx, v, p := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[3]), dxProductOf[T](l, call)
		p.Run(l)
		for i := range dx.Rows {
			then(l, call.Params, dx.Row(i), v.Row(i))
		}
	}
}

// DenseWorkspace is the bytes of blocks, or of sums on their way to an operand with old contents. The operands of the layer are those from one on.
func DenseWorkspace(first int) func(simd.Level, *calls.Spec) int64 {
	return func(l simd.Level, s *calls.Spec) int64 {
		y, x := s.Operands[first], s.Operands[first+1]
		blocks := blocksOf(l, s.Type, y.Shape[0], y.Shape[1], x.Shape[1])
		if blocks == 0 && y.Mode == dag.ReadWrite {
			return int64(s.Volume(first)) * s.Type.SizeBytes()
		}
		return blocks
	}
}

// DenseDxWorkspace is the bytes of blocks of dense.dx.
func DenseDxWorkspace(l simd.Level, s *calls.Spec) int64 {
	dx, dy := s.Operands[0].Shape, s.Operands[1].Shape
	return blocksOf(l, s.Type, dx[0], dx[1], dy[1])
}

// DenseDwWorkspace is the bytes of blocks of dense.dw.
func DenseDwWorkspace(l simd.Level, s *calls.Spec) int64 {
	dw, dy := s.Operands[0].Shape, s.Operands[1].Shape
	return blocksOf(l, s.Type, dw[0], dw[1], dy[0])
}

// DenseDxAt is dense.dx: dx = dy·w, added to dx where the call accumulates. Operands are dx of n×c, dy of n×f, w of f×c, and
// with ReLU also x of n×c, where dx is 0 unless x is above 0.
func DenseDxAt[T calls.Float](l simd.Level, call *calls.Call) {
	p := dxProductOf[T](l, call)
	if len(call.Args) > 3 {
		x := calls.Map2Of[T](&call.Args[3])
		p.Where, p.WhereRow = x.Elems, x.Stride
	}
	p.Run(l)
}

// dxProductOf is the product of a gradient of an input.
func dxProductOf[T calls.Float](l simd.Level, call *calls.Call) simd.Product[T] {
	dx, dy, w := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2])
	p := simd.Product[T]{
		M: dx.Rows, N: dx.Columns, K: dy.Columns, Batch: 1, Accumulate: call.Args[0].Accumulates(),
		A: dy.Elems, ARow: dy.Stride, AStep: 1, B: w.Elems, BRow: w.Stride, C: dx.Elems, CRow: dx.Stride,
	}
	takeBlocks(l, &p, call.Work)
	return p
}

// DenseDwAt reads dy transposed.
func DenseDwAt[T calls.Float](l simd.Level, call *calls.Call) {
	dw, dy, x := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2])
	p := simd.Product[T]{
		M: dw.Rows, N: dw.Columns, K: dy.Rows, Batch: 1, Accumulate: call.Args[0].Accumulates(),
		A: dy.Elems, ARow: 1, AStep: dy.Stride, B: x.Elems, BRow: x.Stride, C: dw.Elems, CRow: dw.Stride,
	}
	takeBlocks(l, &p, call.Work)
	p.Run(l)
	if len(call.Args) > 3 {
		db := &call.Args[3]
		simd.ColumnSums(l, calls.Data[T](db), dy.Elems, dy.Rows, dy.Stride, db.Accumulates())
	}
}
