package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// The variants at levels of dense layers: the forward pass is dot products of rows of
// x and w, both contiguous along i; the gradients are products of columns.

func DenseAt[T calls.Float](relu bool) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		y, x, w := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2])
		d := simd.Dot[T]{
			M: y.Rows, N: y.Columns, K: x.Columns, ReLU: relu,
			A: x.Elems, ARow: x.Stride, B: w.Elems, BRow: w.Stride, C: y.Elems, CRow: y.Stride,
		}
		if len(call.Args) > 3 {
			d.Bias = calls.Data[T](&call.Args[3])
		}
		if !call.Args[0].Accumulates() {
			d.Run(l)
			return
		}
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

// DenseWorkspace is the bytes of sums on their way to an operand with old contents.
func DenseWorkspace(s *calls.Spec) int64 {
	if s.Operands[0].Mode != dag.ReadWrite {
		return 0
	}
	return int64(s.Volume(0)) * s.Type.SizeBytes()
}

func DenseDxAt[T calls.Float](l simd.Level, call *calls.Call) {
	dx, dy, w := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2])
	p := simd.Product[T]{
		M: dx.Rows, N: dx.Columns, K: dy.Columns, Batch: 1, Accumulate: call.Args[0].Accumulates(),
		A: dy.Elems, ARow: dy.Stride, AStep: 1, B: w.Elems, BRow: w.Stride, C: dx.Elems, CRow: dx.Stride,
	}
	if len(call.Args) > 3 {
		x := calls.Map2Of[T](&call.Args[3])
		p.Where, p.WhereRow = x.Elems, x.Stride
	}
	p.Run(l)
}

// DenseDwAt reads dy transposed.
func DenseDwAt[T calls.Float](l simd.Level, call *calls.Call) {
	dw, dy, x := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2])
	p := simd.Product[T]{
		M: dw.Rows, N: dw.Columns, K: dy.Rows, Batch: 1, Accumulate: call.Args[0].Accumulates(),
		A: dy.Elems, ARow: 1, AStep: dy.Stride, B: x.Elems, BRow: x.Stride, C: dw.Elems, CRow: dw.Stride,
	}
	p.Run(l)
	if len(call.Args) > 3 {
		db := &call.Args[3]
		simd.ColumnSums(l, calls.Data[T](db), dy.Elems, dy.Rows, dy.Stride, db.Accumulates())
	}
}
