package kernels

import (
	"dahl/dag"
	"dahl/kernels/simd"
)

// The variants at levels of dense layers: the forward pass is dot products of rows of
// x and w, both contiguous along i; the gradients are products of columns.

func denseAt[T Float](relu bool) func(simd.Level, *Call) {
	return func(l simd.Level, call *Call) { denseDots[T](l, call, relu) }
}

func denseDots[T Float](l simd.Level, call *Call, relu bool) {
	y, x, w := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	d := simd.Dot[T]{
		M: y.rows, N: y.columns, K: x.columns, ReLU: relu,
		A: x.elems, ARow: x.stride, B: w.elems, BRow: w.stride, C: y.elems, CRow: y.stride,
	}
	if len(call.Args) > 3 {
		d.Bias = Data[T](&call.Args[3])
	}
	if !call.Args[0].Accumulates() {
		d.Run(l)
		return
	}
	d.C, _ = scratch[T](call.Work, y.rows*y.columns)
	d.CRow = y.columns
	d.Run(l)
	for n := range y.rows {
		for o, v := range d.C[n*y.columns:][:y.columns] {
			y.row(n)[o] += v
		}
	}
}

// denseWorkspace is for the sums that are added to what is there.
func denseWorkspace(s *Spec) int64 {
	if s.Operands[0].Mode != dag.ReadWrite {
		return 0
	}
	return int64(s.volume(0)) * s.Type.SizeBytes()
}

func denseDxAt[T Float](l simd.Level, call *Call) {
	dx, dy, w := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	p := simd.Product[T]{
		M: dx.rows, N: dx.columns, K: dy.columns, Batch: 1, Accumulate: call.Args[0].Accumulates(),
		A: dy.elems, ARow: dy.stride, AStep: 1, B: w.elems, BRow: w.stride, C: dx.elems, CRow: dx.stride,
	}
	if len(call.Args) > 3 {
		x := map2Of[T](&call.Args[3])
		p.Where, p.WhereRow = x.elems, x.stride
	}
	p.Run(l)
}

// denseDwAt reads dy transposed.
func denseDwAt[T Float](l simd.Level, call *Call) {
	dw, dy, x := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	p := simd.Product[T]{
		M: dw.rows, N: dw.columns, K: dy.rows, Batch: 1, Accumulate: call.Args[0].Accumulates(),
		A: dy.elems, ARow: 1, AStep: dy.stride, B: x.elems, BRow: x.stride, C: dw.elems, CRow: dw.stride,
	}
	p.Run(l)
	if len(call.Args) > 3 {
		db := &call.Args[3]
		simd.ColumnSums(l, Data[T](db), dy.elems, dy.rows, dy.stride, db.Accumulates())
	}
}
